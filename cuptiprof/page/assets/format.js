"use strict";
// Numbers as the reports print them: the same as text/units.py, which a test holds them against.

(() => {
  const TIMES = [["us", 1e3, 5], ["ms", 1e6, 5], ["s", 1e9, 6]];
  const BYTES = ["B", "KB", "MB", "GB", "TB", "PB", "EB"];
  const PREFIXES = ["", "K", "M", "G", "T", "P", "E", "Z"];

  // toFixed rounds a tie up, Python to the even digit.
  const fixed = (value, digits) => {
    const text = value.toFixed(digits);
    if (Math.abs(value) >= 1e15) return text;
    const whole = value.toFixed(Math.min(digits + 55, 100));
    const rest = whole.slice(whole.indexOf(".") + 1 + digits);
    if (!/^50*$/.test(rest)) return text;
    const even = whole.slice(0, whole.length - rest.length).replace(/\.$/, "");
    return "02468".includes(even.at(-1)) ? even : text;
  };

  const significant = (value, digits) => {
    const whole = value < 1 ? 1 : Math.floor(Math.log10(value)) + 1;
    return fixed(value, Math.max(digits - whole, 0));
  };

  const roundHalfEven = (value) => Number(fixed(value, 0));

  const time = (ns) => {
    if (ns < 0) return `-${time(-ns)}`;
    const whole = roundHalfEven(ns);
    if (whole < 1000) return `${whole}ns`;
    for (const [name, scale, digits] of TIMES) {
      const text = significant(whole / scale, digits);
      if (name === "s" || Number(text) < 1000) return significant(Number(text), digits) + name;
    }
    return "";
  };

  const scaled = (value, step, units) => {
    let left = value;
    for (const unit of units.slice(0, -1)) {
      const text = significant(left, 5);
      if (Number(text) < step) return text + unit;
      left /= step;
    }
    return significant(left, 5) + units.at(-1);
  };

  const bytes = (value) => {
    if (value < 0) return `-${bytes(-value)}`;
    return value < 1024 ? `${fixed(value, 0)}B` : scaled(value, 1024, BYTES);
  };

  const byteRate = (value) => `${scaled(value, 1000, BYTES)}/s`;
  const flop = (value) => scaled(value, 1000, PREFIXES.map((prefix) => `${prefix}FLOP`));
  const percent = (value) => `${fixed(value, 2)}%`;

  const KINDS = {
    duration: time, instant: time, bytes, byte_rate: byteRate, flop, flop_rate: (value) => `${flop(value)}/s`, percent, count: String,
  };

  // A raw value (a number, NaN or null for none, or a text) of a kind of report/model.py.
  const format = (kind, value) => {
    if (value === null || Number.isNaN(value)) return "-";
    return typeof value === "number" ? (KINDS[kind] ?? String)(value) : value;
  };

  cuptiprof.format = Object.assign(format, { time, bytes, byteRate, flop, percent, fixed, count: (n) => n.toLocaleString("en-US") });
})();
