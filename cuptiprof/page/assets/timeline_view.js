// Which stretch of time is shown, and how it moves: [start, end) in ns since the beginning of the section.
(() => {
  "use strict";
  const timeline = (cuptiprof.timeline ??= {});

  const SHORTEST = 10; // ns over the whole width
  const MARGIN = 0.02; // of the run, to either side
  const GLIDE = 140; // ms

  timeline.View = class {
    constructor(span, changed) {
      this.span = span;
      this._changed = changed;
      this._still = matchMedia("(prefers-reduced-motion: reduce)");
      this.whole();
      this.settle();
    }

    get length() {
      return this.end - this.start;
    }

    // Moves there at once.
    set(start, end) {
      this._glide = null;
      [this.start, this.end] = this._bounded(start, end);
      this._target = [this.start, this.end];
      this._changed();
    }

    // Moves there in a moment; what is asked for on the way begins where it would have ended.
    glide(start, end) {
      this._target = this._bounded(start, end);
      if (this._still.matches) {
        this.set(...this._target);
        return;
      }
      this._glide = { from: [this.start, this.end], to: this._target, since: performance.now() };
      this._changed();
    }

    // Ends a movement.
    settle() {
      if (this._glide) this.set(...this._target);
    }

    // Advances a movement; true: it goes on.
    step(now) {
      if (!this._glide) return false;
      const { from, to, since } = this._glide;
      const part = Math.min(1, Math.max(0, (now - since) / GLIDE));
      const eased = 1 - (1 - part) ** 3;
      this.start = from[0] + (to[0] - from[0]) * eased;
      this.end = from[1] + (to[1] - from[1]) * eased;
      if (part === 1) {
        [this.start, this.end] = to;
        this._glide = null;
      }
      return part < 1;
    }

    whole() {
      const more = this.span * MARGIN;
      const go = this.start === undefined ? "set" : "glide";
      this[go](-more, this.span + more);
    }

    // `factor` < 1: nearer. `share` of the width stays where it is.
    zoom(factor, share = 0.5, smooth = true) {
      const [start, end] = smooth ? this._target : [this.start, this.end];
      const at = start + (end - start) * share;
      const length = Math.max(SHORTEST, (end - start) * factor);
      this[smooth ? "glide" : "set"](at - length * share, at + length * (1 - share));
    }

    // By a share of the width.
    pan(share, smooth = true) {
      const [start, end] = smooth ? this._target : [this.start, this.end];
      const by = (end - start) * share;
      this[smooth ? "glide" : "set"](start + by, end + by);
    }

    // Shows a stretch with some room around it.
    fit(start, end, room = 0.15) {
      const more = Math.max((end - start) * room, SHORTEST / 2);
      this.glide(start - more, end + more);
    }

    // Shows a stretch of the length there is, if it is not in sight.
    reveal(start, end) {
      const [from, to] = this._target;
      const length = to - from;
      if (end - start > length) this.fit(start, end);
      else if (start < from || end > to) {
        const middle = (start + end) / 2;
        this.glide(middle - length / 2, middle + length / 2);
      }
    }

    _bounded(start, end) {
      const lowest = -this.span * MARGIN;
      const highest = this.span * (1 + MARGIN);
      const length = Math.min(Math.max(end - start, SHORTEST), Math.max(highest - lowest, SHORTEST));
      const begin = Math.min(Math.max(start, lowest), Math.max(lowest, highest - length));
      return [begin, begin + length];
    }
  };
})();
