"use strict";
// One chart: uPlot in a box that has the focus, a legend that switches series, and what is under the pointer in words.

(() => {
  const HEIGHT = 260;
  const MOST_BAR = 60; // pixels
  const paths = {
    line: () => uPlot.paths.linear(),
    steps: () => uPlot.paths.stepped({ align: 1 }),
    bars: () => uPlot.paths.bars({ size: [0.8, MOST_BAR] }),
    points: () => () => null,
  };

  class Chart {
    constructor(element, chart, columns, page) {
      Object.assign(this, { chart, page, colors: new Map() });
      this.data = cuptiprof.chartData(chart, columns);
      this.build(element);
      page.onTheme(() => this.recolor());
      new ResizeObserver(() => this.resize()).observe(this.box);
    }

    build(element) {
      const { make } = this.page;
      this.box = make("div", { class: "chart", tabindex: "0", role: "img", "aria-label": this.described() });
      this.readout = make("p", { class: "readout", "aria-live": "polite" });
      const out = make("button", { type: "button", text: "Whole range" });
      out.addEventListener("click", () => this.whole());
      this.legend = make("div", { class: "tools legend", role: "group", "aria-label": `${this.chart.title}: what is drawn` });
      element.append(make("figure", {}, make("figcaption", { text: this.chart.title }), this.legend, this.box, this.readout));
      this.plot = new uPlot(this.options(), [this.data.x, ...this.data.ys], this.box);
      this.chart.series.forEach((series, i) => this.legend.append(this.switch(series, i + 1)));
      this.legend.append(out);
      this.box.addEventListener("keydown", (event) => this.key(event));
      this.say(null);
    }

    described() {
      const { chart, data } = this;
      const most = chart.series.map((series, i) => `${series.title} up to ${cuptiprof.chartText(chart.kind, this.most(data.ys[i]))}`);
      return `${chart.title}: ${most.join(", ")}. Arrow keys read values, + and - zoom. The table below has all numbers.`;
    }

    most(values) {
      return values.reduce((most, value) => (value !== null && (most === null || value > most) ? value : most), null);
    }

    color(name) {
      if (!this.colors.has(name)) this.colors.set(name, this.page.color(name));
      return this.colors.get(name);
    }

    // The name of the colour of a series, the same in the legend.
    static hue(place) {
      return `--series-${((place - 1) % 8) + 1}`;
    }

    options() {
      const { chart, data } = this;
      const { labels } = data;
      const last = data.x.length - 1;
      const ink = () => this.color("--quiet");
      const grid = { stroke: () => this.color("--line"), width: 1 };
      const across = labels ? "label" : "instant";
      return {
        width: Math.max(this.box.clientWidth, 200),
        height: HEIGHT,
        legend: { show: false },
        scales: {
          x: { time: false, range: labels ? (u, low, high) => [Math.max(low, 0) - 0.5, Math.min(high, last) + 0.5] : undefined },
          y: { range: (u, low, high) => [0, chart.high ?? (high > 0 ? high * 1.08 : 1)] },
        },
        axes: [
          {
            stroke: ink, grid, ticks: grid, label: chart.x_title, labelSize: 22, space: labels ? 90 : 80,
            incrs: labels ? cuptiprof.axisSteps("count") : cuptiprof.axisSteps("duration"),
            values: (u, marks) => marks.map((mark) => (labels ? labels[mark] ?? "" : cuptiprof.chartText(across, mark))),
          },
          {
            stroke: ink, grid, ticks: grid, label: chart.y_title, size: 80, labelSize: 22, incrs: cuptiprof.axisSteps(chart.kind),
            values: (u, marks) => marks.map((mark) => cuptiprof.chartText(chart.kind, mark)),
          },
        ],
        series: [{}, ...chart.series.map((series, i) => this.series(series, i + 1))],
        hooks: { setCursor: [(u) => this.say(u.cursor.idx)] },
        cursor: { y: false, drag: { x: true, y: false } },
      };
    }

    series({ title, draw }, place) {
      const stroke = () => this.color(Chart.hue(place));
      const few = this.data.x.length < 2;
      return {
        label: title,
        stroke,
        width: draw === "points" ? 0 : 1.5,
        fill: draw === "bars" ? stroke : undefined,
        paths: paths[draw](),
        points: { show: draw === "points" || few, size: 8, width: 2, stroke, fill: () => this.color("--paper") },
      };
    }

    switch({ title }, place) {
      const { make } = this.page;
      const box = make("input", { type: "checkbox", checked: true });
      box.addEventListener("change", () => this.plot.setSeries(place, { show: box.checked }));
      const swatch = make("span", { class: "swatch", "aria-hidden": "true" });
      swatch.style.background = `var(${Chart.hue(place)})`;
      return make("label", {}, box, swatch, title);
    }

    say(place) {
      const { chart, data } = this;
      if (place === null || place === undefined || place < 0) {
        this.readout.textContent = data.x.length ? "Point at the chart to read values; drag to zoom." : "Nothing to draw.";
        return;
      }
      const at = data.labels ? data.labels[place] : cuptiprof.format("instant", data.x[place]);
      const values = chart.series.map((series, i) => `${series.title} ${cuptiprof.format(chart.kind, data.ys[i][place])}`);
      this.readout.textContent = `${at}: ${values.join(", ")}`;
    }

    // A place of the data under the cursor, by keys.
    at(place) {
      this.place = Math.max(0, Math.min(place, this.data.x.length - 1));
      this.plot.setCursor({ left: this.plot.valToPos(this.data.x[this.place], "x"), top: 0 });
      this.say(this.place);
    }

    key(event) {
      const { min, max } = this.plot.scales.x;
      const calls = {
        ArrowRight: () => this.at((this.place ?? -1) + 1),
        ArrowLeft: () => this.at((this.place ?? 1) - 1),
        Home: () => this.at(0),
        End: () => this.at(this.data.x.length - 1),
        "+": () => this.zoom(0.5),
        "-": () => this.zoom(2),
        Escape: () => this.whole(),
      };
      if (!(event.key in calls) || !(max > min)) return;
      event.preventDefault();
      calls[event.key]();
    }

    // By a factor, about the place that is read.
    zoom(factor) {
      const { min, max } = this.plot.scales.x;
      const first = this.data.x[0], last = this.data.x.at(-1);
      const about = Math.min(Math.max(this.data.x[this.place] ?? (min + max) / 2, min), max);
      const low = Math.max(about - (about - min) * factor, first), high = Math.min(about + (max - about) * factor, last);
      if (high > low) this.plot.setScale("x", { min: low, max: high });
    }

    whole() {
      this.plot.setScale("x", { min: this.data.x[0], max: this.data.x.at(-1) });
    }

    recolor() {
      this.colors.clear();
      this.plot.redraw(false, true);
    }

    resize() {
      const width = this.box.clientWidth;
      if (width > 0 && width !== this.plot.width) this.plot.setSize({ width, height: HEIGHT });
    }
  }

  cuptiprof.Chart = Chart;
})();
