// The timeline: what was where at what time, from the columns that page/sections/timeline.py packs.
(() => {
  "use strict";
  const timeline = (cuptiprof.timeline ??= {});

  const TALLEST = 0.7; // of the window

  class Timeline {
    constructor(element, columns, page) {
      const slices = new timeline.Slices(columns);
      const parts = (this.parts = timeline.frame(element));
      const state = (this.state = { slices, chosen: null, hovered: null, area: null, pointer: null, marks: new timeline.Marks(slices) });
      state.levels = timeline.levelsOf(slices, columns);
      state.unobserved = new timeline.Unobserved(columns);
      state.view = new timeline.View(slices.span, () => this._ask());
      state.rows = new timeline.Rows(slices, state.levels, () => this._placed());
      this._colour();
      this.painter = new timeline.Painter(state);
      this.overlay = new timeline.Overlay(state);
      this.map = new timeline.Map(parts.map, state);
      this.panel = new timeline.Panel(parts.panel, parts.said, state, { choose: (slice) => this.choose(slice), fit: () => this.fit(), clear: () => this.clear() });
      this._bind();
      this._placed();
      page.onTheme(() => this._repaint());
    }

    // --- what can be done ---

    choose(slice) {
      const { state, parts } = this;
      state.chosen = slice;
      state.area = null;
      if (!(state.marks.isOn && state.marks.dims)) state.marks.alike(slice);
      state.rows.show(state.slices.lane[slice]);
      const top = state.rows.top(state.slices.lane[slice]);
      const { scrollTop, clientHeight } = parts.scroll;
      if (top < scrollTop || top + timeline.LANE > scrollTop + clientHeight) parts.scroll.scrollTop = top - clientHeight / 2;
      state.view.reveal(state.slices.start[slice], state.slices.end[slice]);
      this.panel.showSlice(slice);
      this._count();
      this._ask();
    }

    clear() {
      const { state, parts } = this;
      state.chosen = state.area = null;
      state.marks.clear();
      parts.search.value = "";
      this.panel.showNothing();
      parts.said.textContent = "";
      this._count();
      parts.top.focus({ preventScroll: true });
      this._ask();
    }

    fit() {
      const { slices, view, chosen, area } = this.state;
      if (chosen !== null) view.fit(slices.start[chosen], slices.end[chosen], 1);
      else if (area) {
        view.fit(area.from, area.to, 0);
      } else view.whole();
    }

    find(text) {
      const { marks, chosen } = this.state;
      marks.clear();
      if (text) marks.find(text);
      else if (chosen !== null) marks.alike(chosen);
      this._count();
      this._ask();
    }

    next(backwards) {
      const { marks, chosen } = this.state;
      if (!marks.isOn) return;
      const slice = marks.next(chosen, backwards);
      if (slice !== null) this.choose(slice);
    }

    // The slice beside the chosen one in its row, or moves.
    beside(by) {
      const { slices, chosen, view } = this.state;
      if (chosen === null) {
        view.pan(by * 0.12);
        return;
      }
      const lane = slices.lane[chosen];
      const other = chosen + by;
      if (other >= slices.laneFrom[lane] && other < slices.laneFrom[lane + 1]) this.choose(other);
    }

    // What is at the same time in the next row that has anything there.
    above(by) {
      const { slices, chosen, rows, view } = this.state;
      const order = rows.lanes.map(({ lane }) => lane);
      let at = chosen === null ? (by > 0 ? -1 : order.length) : order.indexOf(slices.lane[chosen]);
      const [from, to] = chosen === null ? [view.start, view.end] : [slices.start[chosen], Math.max(slices.end[chosen], slices.start[chosen] + 1)];
      for (at += by; at >= 0 && at < order.length; at += by) {
        let other = slices.seen(order[at], from, to);
        if (other < 0) other = slices.seen(order[at], view.start, view.end);
        if (other >= 0) {
          this.choose(other);
          return;
        }
      }
    }

    // From work to its launch, and back to the first work of a launch.
    launch() {
      const { slices, chosen } = this.state;
      if (chosen === null) return;
      const call = slices.cause[chosen];
      const other = call >= 0 ? call : slices.causedBy(chosen)[0];
      if (other !== undefined) this.choose(other);
    }

    // What is drawn at a place of the canvas: {slice} or {level}, or neither.
    at({ x, y }) {
      const { rows, slices, view } = this.state;
      const found = rows.at(y + this.parts.scroll.scrollTop) ?? {};
      const per = view.length / this.parts.top.clientWidth;
      const from = view.start + Math.floor(x) * per;
      if (found.lane === undefined) return { level: found.level, from, to: from + per };
      let slice = slices.seen(found.lane, from, from + per);
      if (slice < 0) slice = slices.seen(found.lane, from - 2 * per, from + 3 * per);
      return slice < 0 ? {} : { slice };
    }

    // --- how it is drawn ---

    _ask() {
      this._asked ||= requestAnimationFrame((now) => {
        this._asked = 0;
        this._draw(now);
      });
    }

    _draw(now) {
      const { parts, state } = this;
      const goesOn = state.view.step(now);
      const scroll = parts.scroll.scrollTop;
      this.painter.paint(...sized(parts.lanes, scroll));
      this.overlay.paint(...sized(parts.top, scroll));
      timeline.paintRuler(...sized(parts.ruler, 0), state);
      this.map.paint(...sized(parts.map, 0));
      parts.corner.textContent = timeline.time(state.view.length);
      parts.root.dataset.start = state.view.start;
      parts.root.dataset.end = state.view.end;
      clearTimeout(this._later);
      if (parts.inSight.open) this._later = setTimeout(() => this._list(), 200);
      if (goesOn) this._ask();
    }

    _list() {
      this.parts.inSight.querySelector("table")?.remove();
      this.parts.inSight.append(timeline.inSight(this.state));
    }

    _placed() {
      const { parts, state } = this;
      timeline.fillLabels(parts.labels, state.rows);
      const height = Math.min(state.rows.height, Math.max(240, innerHeight * TALLEST));
      parts.scroll.style.height = `${height}px`;
      parts.window.style.height = `${height}px`;
      parts.stage.style.height = `${state.rows.height}px`;
      this._ask();
    }

    _colour() {
      const { state, parts } = this;
      state.palette = timeline.paletteOf(parts.root);
      state.colours = new timeline.Colours(state.slices.faces, state.palette.theme, state.palette.surface);
    }

    _repaint() {
      this._colour();
      this.map.forget();
      this._draw(performance.now());
    }

    _count() {
      const { marks, chosen } = this.state;
      const on = marks.isOn && marks.dims;
      const rank = on && chosen !== null && marks.has(chosen) ? `${timeline.integer(marks.rank(chosen))} of ` : "";
      this.parts.found.textContent = on ? `${rank}${timeline.integer(marks.total)} found` : "";
    }

    // --- what is done with it ---

    _bind() {
      const { parts, state } = this;
      const { view } = state;
      const actions = {
        zoom: (factor) => view.zoom(factor, this._share()),
        pan: (share) => view.pan(share),
        whole: () => view.whole(),
        search: () => parts.search.focus(),
      };
      for (const name of ["fit", "beside", "above", "launch", "next", "clear"]) actions[name] = (...given) => this[name](...given);
      timeline.bindKeys(parts.root, actions);
      for (const [part, run] of [
        ["previous", () => this.next(true)],
        ["next", () => this.next(false)],
        ["nearer", () => view.zoom(1 / 1.5)],
        ["farther", () => view.zoom(1.5)],
        ["whole", () => view.whole()],
        ["image", () => this._save()],
      ]) {
        parts[part].addEventListener("click", run);
      }
      parts.search.addEventListener("input", () => {
        clearTimeout(this._typing);
        this._typing = setTimeout(() => this.find(parts.search.value.trim()), 120);
      });
      parts.inSight.addEventListener("toggle", () => parts.inSight.open && this._list());
      parts.scroll.addEventListener("scroll", () => this._ask());
      this._bindCanvases();
      new ResizeObserver(() => this._placed()).observe(parts.root);
    }

    _bindCanvases() {
      const { parts, state } = this;
      const { view } = state;
      const time = (x) => Math.min(view.span, Math.max(0, view.start + (x / parts.top.clientWidth) * view.length));
      const drag = (from, to) => {
        state.area = { from: Math.min(from, to), to: Math.max(from, to) };
        state.chosen = null;
        this._ask();
      };
      const pan = (share) => view.pan(share, false);
      timeline.bindPointer(parts.top, {
        time,
        drag,
        pan,
        press: (at) => {
          const { slice } = this.at(at);
          if (slice === undefined) this.clear();
          else this.choose(slice);
        },
        drop: () => this.panel.showArea(state.area),
        hover: (at) => this._hover(at),
        leave: () => this._leave(),
      });
      const toArea = () => {
        this.fit();
        state.area = null;
      };
      timeline.bindPointer(parts.ruler, { time, drag, pan, press: () => {}, drop: toArea });
      timeline.bindWheel(parts.top, view, false);
      timeline.bindWheel(parts.ruler, view, true);
      timeline.bindWheel(parts.map, view, true);
    }

    _share() {
      const { pointer } = this.state;
      return pointer === null ? 0.5 : pointer / this.parts.top.clientWidth;
    }

    _hover(at) {
      const { parts, state } = this;
      const found = this.at(at);
      state.pointer = at.x;
      state.hovered = found.slice ?? null;
      const { tip } = parts;
      const lines = this._said(found);
      tip.hidden = !lines;
      if (lines) {
        tip.replaceChildren(...lines.map((line, i) => timeline.node("div", i ? "" : "tl-name", line)));
        const box = parts.root.getBoundingClientRect();
        const over = parts.top.getBoundingClientRect();
        const x = over.left - box.left + at.x;
        const left = x + tip.offsetWidth + 24 > box.width ? x - tip.offsetWidth - 12 : x + 14;
        tip.style.left = `${Math.max(0, left)}px`;
        tip.style.top = `${over.top - box.top + at.y + 16}px`;
      }
      this._ask();
    }

    // Lines for what the pointer is over.
    _said({ slice, level, from, to }) {
      const { slices } = this.state;
      if (level) {
        if (level.isUse && this.state.unobserved.covers(from, to)) return [level.name, timeline.NOT_OBSERVED];
        const value = level.between(from, to);
        return value === null ? null : [level.name, timeline.level(value, level.unit)];
      }
      if (slice === undefined) return null;
      const face = slices.face[slice];
      const lines = [slices.faces.name[face], timeline.time(slices.end[slice] - slices.start[slice])];
      const region = slices.faces.region[face];
      return region ? [...lines, `region ${region}`] : lines;
    }

    _leave() {
      this.state.pointer = this.state.hovered = null;
      this.parts.tip.hidden = true;
      this._ask();
    }

    _save() {
      const { parts } = this;
      const both = document.createElement("canvas");
      both.width = parts.lanes.width;
      both.height = parts.ruler.height + parts.lanes.height;
      const context = both.getContext("2d");
      context.drawImage(parts.ruler, 0, 0);
      context.drawImage(parts.lanes, 0, parts.ruler.height);
      context.drawImage(parts.top, 0, parts.ruler.height);
      const link = Object.assign(document.createElement("a"), { href: both.toDataURL("image/png"), download: "timeline.png" });
      link.click();
    }
  }

  // A canvas as large as its element, and what is known of it.
  function sized(canvas, scroll) {
    const ratio = devicePixelRatio || 1;
    const [width, height] = [Math.max(1, canvas.clientWidth), Math.max(1, canvas.clientHeight)];
    if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
    if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
    return [canvas.getContext("2d"), { width, height, ratio, scroll }];
  }

  // Texts as lists: the timeline looks at them by slice.
  const listed = (column) => (column instanceof cuptiprof.Texts ? Array.from(column.codes, (code) => (code < 0 ? "" : column.texts[code])) : column);

  cuptiprof.mount("timeline", (element, { columns }, page) => {
    new Timeline(element, Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, listed(column)])), page);
  });
})();
