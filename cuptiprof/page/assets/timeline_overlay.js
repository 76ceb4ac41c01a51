// What lies over the lanes and changes with the pointer: the chosen slice and its arrows, the stretch that is being chosen, the ruler.
(() => {
  "use strict";
  const timeline = (cuptiprof.timeline ??= {});

  const FAR = 20000; // pixels; a canvas draws what is nearer than this exactly
  const MOST_ARROWS = 200;

  timeline.Overlay = class {
    // state: {slices, rows, view, palette, chosen, hovered, area, pointer}
    constructor(state) {
      this.state = state;
    }

    paint(context, box) {
      context.setTransform(box.ratio, 0, 0, box.ratio, 0, 0);
      context.clearRect(0, 0, box.width, box.height);
      this.box = box;
      const { area, pointer, palette, hovered, chosen } = this.state;
      if (area) this._area(context, area);
      if (pointer !== null) {
        context.fillStyle = palette.pointer;
        context.fillRect(pointer, 0, 1, box.height);
      }
      if (hovered !== null && hovered !== chosen) this._frame(context, hovered, palette.text, 1);
      if (chosen !== null) {
        this._arrows(context, chosen);
        this._frame(context, chosen, palette.accent, 2);
      }
    }

    _x(time) {
      const { view } = this.state;
      const x = ((time - view.start) / view.length) * this.box.width;
      return Math.min(FAR, Math.max(-FAR, x));
    }

    _area(context, { from, to }) {
      const { palette } = this.state;
      const [left, right] = [this._x(from), this._x(to)];
      context.fillStyle = palette.area;
      context.fillRect(left, 0, right - left, this.box.height);
      context.fillStyle = palette.accent;
      context.fillRect(left, 0, 1, this.box.height);
      context.fillRect(right - 1, 0, 1, this.box.height);
    }

    _frame(context, slice, colour, line) {
      const { slices, rows } = this.state;
      const top = rows.top(slices.lane[slice]);
      if (top === undefined) return;
      const left = this._x(slices.start[slice]);
      const right = Math.max(left + 2, this._x(slices.end[slice]));
      context.strokeStyle = colour;
      context.lineWidth = line;
      context.strokeRect(left - line / 2, top - this.box.scroll - line / 2, right - left + line, timeline.LANE - 1 + line);
    }

    _arrows(context, chosen) {
      const { slices, palette } = this.state;
      const call = slices.cause[chosen];
      if (call >= 0) this._arrow(context, call, chosen, palette.accent);
      else for (const work of this._caused(chosen)) this._arrow(context, chosen, work, palette.accent);
      const { forward, backward } = this._passes(chosen);
      for (const other of forward) this._arrow(context, other, chosen, palette.other);
      for (const other of backward.slice(0, MOST_ARROWS)) this._arrow(context, chosen, other, palette.other);
    }

    _arrow(context, from, to, colour) {
      const { slices, rows } = this.state;
      const x0 = this._x(slices.start[from]);
      const x1 = this._x(slices.start[to]);
      const y0 = rows.middle(slices.lane[from]) - this.box.scroll;
      const y1 = rows.middle(slices.lane[to]) - this.box.scroll;
      const bend = Math.max(24, Math.abs(x1 - x0) / 2);
      context.strokeStyle = context.fillStyle = colour;
      context.lineWidth = 1.5;
      context.beginPath();
      context.moveTo(x0, y0);
      context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 5, y1);
      context.stroke();
      context.beginPath();
      context.moveTo(x1, y1);
      context.lineTo(x1 - 7, y1 - 4);
      context.lineTo(x1 - 7, y1 + 4);
      context.fill();
    }

    // What was looked for stays until another slice is chosen.
    _caused(slice) {
      if (this._of !== slice) [this._of, this._works] = [slice, this.state.slices.causedBy(slice).slice(0, MOST_ARROWS)];
      return this._works;
    }

    _passes(slice) {
      if (this._passesOf !== slice) [this._passesOf, this._both] = [slice, this.state.slices.passOf(slice)];
      return this._both;
    }
  };

  timeline.paintRuler = (context, { width, height, ratio }, { view, palette, area }) => {
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = palette.head;
    context.fillRect(0, 0, width, height);
    if (area) {
      const x = (time) => ((time - view.start) / view.length) * width;
      context.fillStyle = palette.area;
      context.fillRect(x(area.from), 0, x(area.to) - x(area.from), height);
    }
    context.font = '11px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
    context.textBaseline = "middle";
    for (const { x, text } of timeline.ticks(view, width)) {
      context.fillStyle = palette.faint;
      context.fillRect(Math.round(x), height - 7, 1, 7);
      context.fillStyle = palette.text;
      context.fillText(text, Math.round(x) + 4, height / 2);
    }
  };
})();
