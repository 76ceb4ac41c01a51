// Times and sizes as text.
(() => {
  "use strict";
  const timeline = (cuptiprof.timeline ??= {});

  const UNITS = [
    [1e9, "s"],
    [1e6, "ms"],
    [1e3, "us"],
    [1, "ns"],
  ];

  const grouped = new Intl.NumberFormat("en-US");

  // An integer with thousands apart.
  timeline.integer = (value) => grouped.format(value);

  // A time as people say it: four digits and a unit.
  timeline.time = (ns) => {
    const size = Math.abs(ns);
    const [scale, unit] = UNITS.find(([least]) => size >= least) ?? UNITS.at(-1);
    const value = ns / scale;
    const digits = unit === "ns" ? 0 : Math.max(0, 3 - Math.floor(Math.log10(Math.abs(value) || 1)));
    return `${value.toFixed(digits)} ${unit}`;
  };

  // The same with all its nanoseconds.
  timeline.exactTime = (ns) => {
    const said = timeline.time(ns);
    return said.endsWith(" ns") ? said : `${said} (${timeline.integer(ns)} ns)`;
  };

  // A moment on the ruler, as exactly as the distance of its neighbours asks for.
  timeline.moment = (ns, step) => {
    const [scale, unit] = UNITS.find(([least]) => Math.max(Math.abs(ns), step) >= least) ?? UNITS.at(-1);
    const digits = Math.max(0, Math.ceil(Math.log10(scale / step) - 1e-9));
    return `${(ns / scale).toFixed(digits)} ${unit}`;
  };

  // Distance of the marks of a ruler of which about `count` fit: 1, 2 or 5 times a power of ten, in ns.
  timeline.niceStep = (span, count) => {
    const rough = Math.max(span / count, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    return power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
  };

  timeline.bytes = (value) => {
    const units = ["B", "KB", "MB", "GB", "TB"];
    let i = 0;
    while (value >= 1000 && i < units.length - 1) {
      value /= 1000;
      i++;
    }
    return `${i ? value.toFixed(2) : value} ${units[i]}`;
  };

  // A value of a counter track in its unit.
  timeline.level = (value, unit) => {
    if (unit === "bytes") return timeline.bytes(value);
    if (unit === "share") return `${(100 * value).toFixed(1)} %`;
    const text = Math.abs(value) >= 1e5 ? value.toExponential(3) : String(Number(value.toPrecision(5)));
    return unit ? `${text} ${unit}` : text;
  };
})();
