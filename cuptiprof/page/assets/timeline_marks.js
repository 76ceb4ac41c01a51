// Which slices are found or alike: by their faces, and counted so that any stretch of a lane can say how many are in it.
(() => {
  "use strict";
  const timeline = (cuptiprof.timeline ??= {});

  timeline.Marks = class {
    constructor(slices) {
      this._slices = slices;
      this._before = new Uint32Array(slices.count + 1);
      this.clear();
    }

    clear() {
      this.isOn = this.dims = false;
      this.total = 0;
    }

    // Those whose name has the text in it.
    find(text) {
      const wanted = text.toLowerCase();
      const { name, label } = this._slices.faces;
      this._mark((face) => name[face].toLowerCase().includes(wanted) || label[face].toLowerCase().includes(wanted), true);
    }

    // Those of the same name as a slice.
    alike(slice) {
      const { name, kind } = this._slices.faces;
      const face = this._slices.face[slice];
      this._mark((other) => name[other] === name[face] && kind[other] === kind[face], false);
    }

    has(slice) {
      return this.isOn && this._marked[this._slices.face[slice]] === 1;
    }

    // How many of the slices [from, to).
    between(from, to) {
      return this._before[to] - this._before[from];
    }

    // The one after (or before) a slice in order of time; the first (last) where there is none.
    next(slice, backwards) {
      const { start, count } = this._slices;
      const sign = backwards ? -1 : 1;
      const later = (a, b) => sign * (start[a] - start[b]) || sign * (a - b);
      let best = -1;
      let first = -1;
      for (let i = 0; i < count; i++) {
        if (!this.has(i)) continue;
        if (first < 0 || later(i, first) < 0) first = i;
        if (slice !== null && later(i, slice) > 0 && (best < 0 || later(i, best) < 0)) best = i;
      }
      return best >= 0 ? best : first >= 0 ? first : null;
    }

    // Which of the marked it is in order of time, from 1.
    rank(slice) {
      const { start, count } = this._slices;
      let rank = 1;
      for (let i = 0; i < count; i++) {
        if (this.has(i) && (start[i] < start[slice] || (start[i] === start[slice] && i < slice))) rank++;
      }
      return rank;
    }

    _mark(wanted, dims) {
      const { face, faces, count } = this._slices;
      this._marked = Uint8Array.from(faces.name, (_, i) => (wanted(i) ? 1 : 0));
      let sum = 0;
      for (let i = 0; i < count; i++) this._before[i + 1] = sum += this._marked[face[i]];
      this.total = sum;
      this.isOn = true;
      this.dims = dims;
    }
  };
})();
