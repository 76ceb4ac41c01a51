"use strict";
// The flame graph, outermost boxes at the top: elements, so that a screen reader and a printer have them, too.

(() => {
  const ROW = 21; // pixels from box to box
  const LEAST = 1.5; // pixels; narrower boxes are not drawn
  const COLORS = 8;

  const colorOf = (name) => {
    let hash = 0;
    for (let i = 0; i < Math.min(name.length, 200); i++) hash = (Math.imul(hash, 31) + name.charCodeAt(i)) | 0;
    return 1 + (Math.abs(hash) % COLORS);
  };

  class Flame {
    constructor(element, { facts, columns }, page) {
      Object.assign(this, { columns, page, element });
      this.build(facts.groupings);
      this.choose(0);
      new ResizeObserver(() => this.resized()).observe(this.tree);
    }

    build(groupings) {
      const { make } = this.page;
      const by = make("select", {}, ...groupings.map((title, i) => make("option", { value: String(i), text: title })));
      by.addEventListener("change", () => this.choose(Number(by.value)));
      this.search = make("input", { type: "search", placeholder: "Search", "aria-label": "Search the flame graph" });
      this.search.addEventListener("input", () => this.find(this.search.value));
      this.reset = make("button", { type: "button", text: "Whole graph" });
      this.reset.addEventListener("click", () => this.zoom(-1));
      this.status = make("p", { class: "readout", role: "status" });
      this.tree = make("div", { class: "flame", role: "tree", "aria-label": "Flame graph: arrow keys move, Enter zooms in, Escape zooms out" });
      this.tree.addEventListener("click", (event) => this.pressed(event));
      this.tree.addEventListener("keydown", (event) => this.key(event));
      for (const name of ["focusin", "mouseover"]) this.tree.addEventListener(name, (event) => this.pointed(event));
      const tools = make("div", { class: "tools", role: "group", "aria-label": "What the flame graph shows" },
        make("label", {}, "GPU time by ", by), this.search, this.reset);
      this.element.append(tools, this.tree, this.status);
    }

    choose(table) {
      this.element.closest("section").dataset.chosen = String(table); // the table below is that of the graph
      this.names = this.columns[`${table}:name`];
      this.what = this.columns[`${table}:what`];
      this.layout = cuptiprof.flameLayout(this.columns[`${table}:#depth`], this.columns[`${table}:total_ns`]);
      this.matched = new Set();
      this.focused = 0;
      this.zoomed = -1;
      this.find(this.search.value);
    }

    // The boxes that are shown when one (-1: none) is as wide as the graph: it, what is around it, and what lies in it.
    draw() {
      const { layout, zoomed } = this;
      const { start, total, depth, parent } = layout;
      const left = zoomed < 0 ? 0 : start[zoomed], span = (zoomed < 0 ? layout.whole : total[zoomed]) || 1;
      const width = this.tree.clientWidth, around = new Set();
      for (let row = zoomed; row >= 0; row = parent[row]) around.add(row);
      this.drawn = [];
      const boxes = [];
      for (let row = 0; row < start.length; row++) {
        const isAround = around.has(row);
        const x = isAround ? 0 : ((start[row] - left) / span) * width;
        const wide = isAround ? width : (total[row] / span) * width;
        if (!isAround && (wide < LEAST || x < -0.5 || x >= width || (zoomed >= 0 && depth[row] <= depth[zoomed]))) continue;
        this.drawn.push(row);
        boxes.push(this.box(row, x, Math.min(wide, width - x), isAround && row !== zoomed));
      }
      this.shownWidth = width;
      this.tree.style.height = `${layout.levels * ROW}px`;
      this.tree.replaceChildren(...boxes);
      this.reset.disabled = zoomed < 0;
      if (!this.drawn.includes(this.focused)) this.focused = zoomed < 0 ? this.drawn[0] ?? 0 : zoomed;
      this.at(this.focused)?.setAttribute("tabindex", "0");
    }

    box(row, x, wide, isAround) {
      const name = this.names.at(row);
      const search = this.matched.size ? (this.matched.has(row) ? " match" : " other") : "";
      const box = this.page.make("div", {
        role: "treeitem", tabindex: "-1", class: `c${colorOf(name)}${isAround ? " around" : ""}${search}`, "data-row": String(row),
        "aria-level": String(this.layout.depth[row] + 1), "aria-selected": String(row === this.zoomed), "aria-label": this.text(row),
        text: wide > 25 ? name : "",
      });
      box.style.left = `${x}px`;
      box.style.top = `${this.layout.depth[row] * ROW}px`;
      box.style.width = `${Math.max(wide - 1, 1)}px`;
      return box;
    }

    text(row) {
      const { total, whole } = this.layout;
      return `${this.names.at(row)} (${this.what.at(row)}): ${cuptiprof.format.time(total[row])}, ${cuptiprof.format.percent((100 * total[row]) / (whole || 1))} of all`;
    }

    at(row) {
      return this.tree.querySelector(`[data-row="${row}"]`);
    }

    zoom(row) {
      const hadFocus = this.tree.contains(document.activeElement);
      this.zoomed = row === this.zoomed ? -1 : row;
      this.draw();
      if (hadFocus) this.at(this.focused)?.focus();
    }

    find(search) {
      const wanted = search.toLowerCase();
      const rows = [];
      if (wanted) for (let row = 0; row < this.names.length; row++) if (this.names.at(row).toLowerCase().includes(wanted)) rows.push(row);
      this.matched = new Set(rows);
      const ns = cuptiprof.outermost(rows, this.layout.parent).reduce((sum, row) => sum + this.layout.total[row], 0);
      const share = cuptiprof.format.percent((100 * ns) / (this.layout.whole || 1));
      this.status.textContent = wanted ? `${cuptiprof.format.count(rows.length)} match: ${cuptiprof.format.time(ns)}, ${share} of all`
        : `All GPU work: ${cuptiprof.format.time(this.layout.whole)}`;
      this.draw();
    }

    rowOf(event) {
      const box = event.target.closest("[data-row]");
      return box ? Number(box.dataset.row) : -1;
    }

    pressed(event) {
      const row = this.rowOf(event);
      if (row < 0) return;
      this.focused = row;
      this.zoom(row);
    }

    pointed(event) {
      const row = this.rowOf(event);
      if (row >= 0) this.status.textContent = this.text(row);
    }

    key(event) {
      const row = this.rowOf(event);
      if (row < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
      const { parent, depth } = this.layout;
      const place = this.drawn.indexOf(row);
      const level = (step) => {
        for (let i = place + step; i >= 0 && i < this.drawn.length; i += step) if (depth[this.drawn[i]] === depth[row]) return this.drawn[i];
        return row;
      };
      const below = this.drawn[place + 1];
      const moves = {
        ArrowDown: () => (below !== undefined && parent[below] === row ? below : row),
        ArrowUp: () => (parent[row] >= 0 ? parent[row] : row),
        ArrowRight: () => level(1),
        ArrowLeft: () => level(-1),
        Home: () => this.drawn[0],
      };
      if (event.key in moves) this.move(moves[event.key]());
      else if (event.key === "Enter" || event.key === " ") this.zoom(row);
      else if (event.key === "Escape") this.zoom(-1);
      else return;
      event.preventDefault();
    }

    move(row) {
      this.at(this.focused)?.setAttribute("tabindex", "-1");
      this.focused = row;
      const box = this.at(row);
      box.setAttribute("tabindex", "0");
      box.focus();
    }

    resized() {
      if (this.tree.clientWidth !== this.shownWidth) this.draw();
    }
  }

  cuptiprof.mount("flame", (element, data, page) => new Flame(element, data, page));
})();
