// The whole run in a strip: how much of each stretch the GPUs and the host were busy, and a window that shows and moves what is in sight.
(() => {
  "use strict";
  const timeline = (cuptiprof.timeline ??= {});

  const GRIP = 6;

  timeline.Map = class {
    // state: {slices, view, palette, levels, unobserved}
    constructor(canvas, state) {
      this.canvas = canvas;
      this.state = state;
      canvas.addEventListener("pointerdown", (event) => this._begin(event));
      canvas.addEventListener("pointermove", (event) => this._move(event));
      canvas.addEventListener("pointerup", (event) => this._end(event));
      canvas.addEventListener("pointercancel", () => (this._drag = null));
    }

    // The picture without the window, kept until the colours or the size change.
    forget() {
      this._picture = null;
    }

    paint(context, box) {
      const { width, height, ratio } = box;
      const { view, palette } = this.state;
      if (!this._picture || this._picture.width !== this.canvas.width) this._picture = this._drawn(box);
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.drawImage(this._picture, 0, 0);
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      const left = (view.start / view.span) * width;
      const right = (view.end / view.span) * width;
      context.fillStyle = palette.veil;
      context.fillRect(0, 0, Math.max(0, left), height);
      context.fillRect(right, 0, Math.max(0, width - right), height);
      context.strokeStyle = palette.accent;
      context.lineWidth = 2;
      const x = Math.max(1, left);
      context.strokeRect(x, 1, Math.max(3, Math.min(width - 1, right) - x), height - 2);
    }

    _drawn({ width, height, ratio }) {
      const { palette, view, levels, slices } = this.state;
      const picture = document.createElement("canvas");
      picture.width = this.canvas.width;
      picture.height = this.canvas.height;
      const context = picture.getContext("2d");
      context.scale(ratio, ratio);
      context.fillStyle = palette.surface;
      context.fillRect(0, 0, width, height);
      this.state.unobserved.paint(context, palette, 0, view.span, { width, height });
      const use = levels.filter((level) => level.isUse);
      const threads = new Map(); // outermost lanes of the host, by thread
      for (const track of slices.tracks) {
        if (track.kind === "host" && track.lanes && !threads.has(track.group)) threads.set(track.group, []);
        if (track.kind === "host" && track.lanes) threads.get(track.group).push(track.first);
      }
      const strips = [...use.map((level) => (a, b) => level.between(a, b)), ...[...threads.values()].map((lanes) => this._host(lanes))];
      const tall = (height - 4) / Math.max(1, strips.length);
      strips.forEach((share, i) => {
        context.fillStyle = i < use.length ? palette.use : palette.curve;
        const bottom = 2 + tall * (i + 1);
        for (let x = 0; x < width; x++) {
          const level = share((x / width) * view.span, ((x + 1) / width) * view.span);
          if (level > 0) context.fillRect(x, bottom - Math.max(1, level * (tall - 2)), 1, Math.max(1, level * (tall - 2)));
        }
      });
      return picture;
    }

    // The largest share of a stretch that one of some lanes has covered.
    _host(lanes) {
      const { slices } = this.state;
      const { covered, start, end, laneFrom } = slices;
      return (from, to) => {
        let most = 0;
        for (const lane of lanes) {
          const first = slices.endingAfter(from, laneFrom[lane], laneFrom[lane + 1]);
          const after = slices.startingAt(to, first, laneFrom[lane + 1]);
          if (after <= first) continue;
          const outside = Math.max(0, from - start[first]) + Math.max(0, end[after - 1] - to);
          most = Math.max(most, (covered[after] - covered[first] - outside) / (to - from));
        }
        return Math.min(1, most);
      };
    }

    _time(event) {
      const box = this.canvas.getBoundingClientRect();
      return ((event.clientX - box.left) / box.width) * this.state.view.span;
    }

    _begin(event) {
      const { view } = this.state;
      const time = this._time(event);
      const near = (GRIP / this.canvas.clientWidth) * view.span;
      const isAll = view.length >= view.span;
      if (!isAll && Math.abs(time - view.start) < near) this._drag = { fixed: view.end };
      else if (!isAll && Math.abs(time - view.end) < near) this._drag = { fixed: view.start };
      else if (!isAll && time > view.start && time < view.end) this._drag = { by: time - view.start, length: view.length };
      else this._drag = { fixed: time };
      this.canvas.setPointerCapture(event.pointerId);
    }

    _move(event) {
      if (!this._drag) return;
      const { view } = this.state;
      const time = this._time(event);
      if (this._drag.by !== undefined) view.set(time - this._drag.by, time - this._drag.by + this._drag.length);
      else if (time !== this._drag.fixed) view.set(Math.min(time, this._drag.fixed), Math.max(time, this._drag.fixed));
    }

    // A click without a movement brings that moment into the middle.
    _end(event) {
      const { view } = this.state;
      const time = this._time(event);
      if (this._drag?.fixed === time) view.glide(time - view.length / 2, time + view.length / 2);
      this._drag = null;
    }
  };
})();
