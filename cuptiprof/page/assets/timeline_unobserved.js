// Times in which nothing was observed, since the session was paused: grey behind all that is drawn.
(() => {
  "use strict";
  const timeline = (cuptiprof.timeline ??= {});

  const TEXT = (timeline.NOT_OBSERVED = "not observed");
  const TEXT_FROM = 90; // CSS pixels from which on it is said
  const FONT = '11px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';

  timeline.Unobserved = class {
    constructor(columns) {
      const { unobserved_gap: gap, unobserved_length: length } = columns;
      this._start = new Float64Array(gap.length);
      this._end = new Float64Array(gap.length);
      let time = 0;
      for (let i = 0; i < gap.length; i++) {
        this._start[i] = time += gap[i];
        this._end[i] = time += length[i];
      }
    }

    // What of [from, until) is in sight, in `width` pixels; what lies in one pixel is painted once.
    paint(context, palette, from, until, { width, height }) {
      const { _start: start, _end: end } = this;
      const scale = width / (until - from);
      let painted = 0;
      context.font = FONT;
      context.textBaseline = "top";
      for (let i = this._endingAfter(from); i < start.length && start[i] < until; i++) {
        const left = Math.max(painted, Math.floor((start[i] - from) * scale));
        const right = Math.min(width, Math.max(left + 1, Math.round((end[i] - from) * scale)));
        if (right <= painted) continue;
        context.fillStyle = palette.veil;
        context.fillRect(left, 0, right - left, height);
        if (right - left >= TEXT_FROM) {
          context.fillStyle = palette.faint;
          context.fillText(TEXT, left + 6, 4);
        }
        painted = right;
      }
    }

    // Whether nothing was observed from one of these times to the other.
    covers(from, to) {
      const i = this._endingAfter(from);
      return i < this._start.length && this._start[i] <= from && this._end[i] >= to;
    }

    _endingAfter(time) {
      let [low, high] = [0, this._end.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this._end[middle] > time) high = middle;
        else low = middle + 1;
      }
      return low;
    }
  };
})();
