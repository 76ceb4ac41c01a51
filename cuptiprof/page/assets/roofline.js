"use strict";
// The roofline of a GPU, both axes logarithmic: roofs of compute and of memory, and a dot for each row of the table that has both rates.
// Williams, Waterman, Patterson, Roofline, CACM 52 (2009).

(() => {
  const WIDTH = 960, HEIGHT = 480;
  const FRAME = { left: 90, right: 20, top: 16, bottom: 48 };
  const ROOM = 3; // beyond what is drawn, as a factor
  const LEVELS = { dram: "DRAM", l2: "L2", l1tex: "L1" };
  const ALL = "";

  const known = (value) => Number.isFinite(value) && value > 0;
  const distinct = (values) => [...new Set(values)];

  class Roofline {
    constructor(element, { columns }, page) {
      this.page = page;
      this.element = element;
      this.column = (key) => columns[`0:${key}`];
      this.dots = [];
      const intensity = this.column("intensity"), rate = this.column("flop_per_s");
      for (let row = 0; row < intensity.length; row++) if (known(intensity[row]) && known(rate[row])) this.dots.push(this.dot(row));
      this.precisions = distinct(this.dots.map((dot) => dot.precision));
      const levels = distinct(this.dots.map((dot) => dot.level));
      this.chosen = { device: this.dots[0].device, level: levels.includes("dram") ? "dram" : ALL, precision: ALL };
      this.build();
      this.draw();
    }

    dot(row) {
      const of = (key) => this.column(key)[row];
      return {
        row, name: this.column("name").at(row), precision: this.column("precision").at(row) ?? "", level: this.column("level").at(row) ?? "",
        device: of("device"), time: known(of("time_ns")) ? of("time_ns") : 0, intensity: of("intensity"), rate: of("flop_per_s"),
        peak: of("peak_flop_per_s"), bandwidth: of("peak_bytes_per_s"), share: of("share_pct"),
      };
    }

    build() {
      const { make } = this.page;
      const choice = (title, key, values, text) => {
        const options = [...(key === "device" ? [] : [ALL]), ...values];
        if (values.length < 2) return null;
        const select = make("select", {}, ...options.map((value) => make("option", { value: String(value), text: value === ALL ? "all" : text(value), selected: value === this.chosen[key] })));
        select.addEventListener("change", () => {
          this.chosen[key] = options[select.selectedIndex];
          this.draw();
        });
        return make("label", {}, `${title} `, select);
      };
      const tools = make("div", { class: "tools", role: "group", "aria-label": "What the roofline shows" },
        choice("GPU", "device", distinct(this.dots.map((dot) => dot.device)), String),
        choice("Memory", "level", distinct(this.dots.map((dot) => dot.level)), (level) => LEVELS[level] ?? level),
        choice("Precision", "precision", this.precisions, String));
      this.figure = make("figure", {});
      this.status = make("p", { class: "readout", role: "status" });
      this.legend = make("ul", { class: "keys" }, ...this.precisions.map((precision) => {
        const swatch = make("span", { class: `swatch p${this.hue(precision)}`, "aria-hidden": "true" });
        return make("li", {}, swatch, precision);
      }));
      this.element.append(tools, this.figure, this.legend, this.status);
    }

    hue(precision) {
      return 1 + (this.precisions.indexOf(precision) % 8);
    }

    shown() {
      const { device, level, precision } = this.chosen;
      return this.dots.filter((dot) => dot.device === device && (level === ALL || dot.level === level) && (precision === ALL || dot.precision === precision));
    }

    draw() {
      const dots = this.shown();
      const svg = cuptiprof.svg;
      const image = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "roofline", role: "group", "aria-label": "Roofline: operations/s over operations per byte. Each dot leads to its row in the table." });
      this.image = image;
      this.figure.replaceChildren(image);
      this.say(dots.length ? `${cuptiprof.format.count(dots.length)} dots; larger ones took longer.` : "Nothing measured of these.");
      if (!dots.length) return;
      const compute = distinct(dots.filter((dot) => known(dot.peak)).map((dot) => `${dot.precision}\n${dot.peak}`)).map((text) => text.split("\n"));
      const memory = distinct(dots.filter((dot) => known(dot.bandwidth)).map((dot) => `${dot.level}\n${dot.bandwidth}`)).map((text) => text.split("\n"));
      const peaks = compute.map(([, peak]) => Number(peak)), bands = memory.map(([, peak]) => Number(peak));
      const xs = [...dots.map((dot) => dot.intensity), ...peaks.flatMap((peak) => bands.map((band) => peak / band))];
      const ys = [...dots.map((dot) => dot.rate), ...peaks];
      this.x = cuptiprof.logScale(Math.min(...xs) / ROOM, Math.max(...xs) * ROOM, FRAME.left, WIDTH - FRAME.right);
      this.y = cuptiprof.logScale(Math.min(...ys) / ROOM, Math.max(...ys) * ROOM, HEIGHT - FRAME.bottom, FRAME.top);
      this.axes();
      this.roofs(compute, memory, peaks, bands);
      const longest = Math.max(...dots.map((dot) => dot.time), 1);
      for (const dot of [...dots].sort((a, b) => b.time - a.time)) image.append(this.mark(dot, longest));
    }

    axes() {
      const svg = cuptiprof.svg;
      const bottom = HEIGHT - FRAME.bottom;
      for (const mark of this.x.marks) {
        const x = this.x.at(mark);
        this.image.append(svg("line", { x1: x, x2: x, y1: FRAME.top, y2: bottom, class: "grid" }));
        this.image.append(svg("text", { x, y: bottom + 16, "text-anchor": "middle", text: String(mark) }));
      }
      for (const mark of this.y.marks) {
        const y = this.y.at(mark);
        this.image.append(svg("line", { x1: FRAME.left, x2: WIDTH - FRAME.right, y1: y, y2: y, class: "grid" }));
        this.image.append(svg("text", { x: FRAME.left - 6, y: y + 4, "text-anchor": "end", text: cuptiprof.chartText("flop_rate", mark) }));
      }
      this.image.append(svg("text", { x: (FRAME.left + WIDTH) / 2, y: HEIGHT - 8, "text-anchor": "middle", text: "Operations per byte" }));
    }

    // Lines of memory rise up to the highest roof of compute, those of compute begin at the steepest of memory.
    roofs(compute, memory, peaks, bands) {
      const { x, y } = this;
      const highest = peaks.length ? Math.max(...peaks) : y.high, steepest = bands.length ? Math.max(...bands) : Infinity;
      for (const [level, text] of memory) {
        const band = Number(text);
        const from = Math.max(x.low, y.low / band), to = Math.min(x.high, highest / band);
        if (!(to > from)) continue;
        const label = `${LEVELS[level] ?? level} ${cuptiprof.chartText("byte_rate", band)}`;
        this.roof([from, from * band], [to, to * band], label, 0.5);
      }
      for (const peak of distinct(peaks)) {
        const of = compute.filter(([, text]) => Number(text) === peak).map(([precision]) => precision);
        const names = of.length > 2 ? `${of.length} precisions` : of.join(", ");
        this.roof([Math.max(x.low, peak / steepest), peak], [x.high, peak], `${names} ${cuptiprof.chartText("flop_rate", peak)}`, 0.99);
      }
    }

    roof([x1, y1], [x2, y2], text, share) {
      const svg = cuptiprof.svg;
      const ends = { x1: this.x.at(x1), x2: this.x.at(x2), y1: this.y.at(y1), y2: this.y.at(y2) };
      const x = ends.x1 + share * (ends.x2 - ends.x1), y = ends.y1 + share * (ends.y2 - ends.y1) - 5;
      const turn = (Math.atan2(ends.y2 - ends.y1, ends.x2 - ends.x1) * 180) / Math.PI;
      this.image.append(svg("line", { ...ends, class: "roof" }));
      this.image.append(svg("text", { x, y, class: "roof", "text-anchor": share > 0.9 ? "end" : "middle", transform: `rotate(${turn} ${x} ${y + 5})`, text }));
    }

    mark(dot, longest) {
      const svg = cuptiprof.svg;
      const about = this.text(dot);
      const section = this.element.closest("section");
      const link = svg("a", { href: `#${section.id}`, "aria-label": about, "data-row": dot.row });
      const radius = 4 + 8 * Math.sqrt(dot.time / longest);
      link.append(svg("title", { text: about }), svg("circle", { cx: this.x.at(dot.intensity), cy: this.y.at(dot.rate), r: radius, class: `p${this.hue(dot.precision)}` }));
      link.addEventListener("click", (event) => {
        event.preventDefault();
        section.dispatchEvent(new CustomEvent("cuptiprof:open", { detail: { search: dot.name } }));
        section.querySelector(`.table tr[data-row="${dot.row}"]`)?.scrollIntoView({ block: "center" });
        this.say(about);
      });
      for (const name of ["focus", "mouseenter"]) link.addEventListener(name, () => this.say(about));
      return link;
    }

    text(dot) {
      const share = Number.isFinite(dot.share) ? `, ${cuptiprof.format.percent(dot.share)} of its roof` : "";
      const where = `${dot.precision}, ${LEVELS[dot.level] ?? dot.level}`;
      return `${dot.name} (${where}): ${cuptiprof.format("flop_rate", dot.rate)} at ${Number(dot.intensity.toPrecision(4))} operations per byte${share}`;
    }

    say(text) {
      this.status.textContent = text;
    }
  }

  cuptiprof.mount("roofline", (element, data, page) => new Roofline(element, data, page));
})();
