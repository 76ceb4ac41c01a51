// The slices of a run in typed arrays: lane after lane, in each by time, none over another.
//
// Level of detail without a picture for each zoom: what a pixel column needs of the slices below it are the first and the last of
// them (binary search: the starts of a lane ascend), how much of it they cover (differences of one running sum of durations) and
// the longest (a tree of maxima, FAN slices a node). All are made once, when the section is opened; a pixel costs O(log n), and a
// frame as much with 10^7 slices as with 10^3.
(() => {
  "use strict";
  const timeline = (cuptiprof.timeline ??= {});

  const FAN = 16;
  const NONE = -1;

  timeline.Slices = class {
    // columns: what page/timeline/ packs; see its docstring for what each is.
    constructor(columns) {
      const counts = columns.lane_count;
      this.laneFrom = new Uint32Array(counts.length + 1);
      for (let lane = 0; lane < counts.length; lane++) this.laneFrom[lane + 1] = this.laneFrom[lane] + counts[lane];
      this.count = this.laneFrom[counts.length];
      this.face = Uint32Array.from(columns.face);
      this.faces = facesOf(columns);
      this.tracks = tracksOf(columns);
      this._place(columns.gap, columns.duration);
      this._links(columns);
      this._tree();
      this.span = Math.max(1, columns.span[0]);
    }

    get lanes() {
      return this.laneFrom.length - 1;
    }

    // Times from the gaps between slices of a lane and their durations: sums of integers below 2^53, so exact.
    _place(gap, duration) {
      const { count, laneFrom } = this;
      this.start = new Float64Array(count);
      this.end = new Float64Array(count);
      this.covered = new Float64Array(count + 1);
      this.lane = new Uint32Array(count);
      for (let lane = 0; lane < this.lanes; lane++) {
        let time = 0;
        for (let i = laneFrom[lane]; i < laneFrom[lane + 1]; i++) {
          time += gap[i];
          this.start[i] = time;
          time += duration[i];
          this.end[i] = time;
          this.covered[i + 1] = this.covered[i] + duration[i];
          this.lane[i] = lane;
        }
      }
    }

    // The call that caused a piece of GPU work, and which operators of backward belong to which of forward.
    _links(columns) {
      this.cause = new Int32Array(this.count).fill(NONE);
      let at = 0;
      let value = 0;
      for (const track of this.tracks) {
        if (track.kind !== "work") continue;
        for (let i = this.laneFrom[track.first]; i < this.laneFrom[track.first + track.lanes]; i++) {
          value += columns.cause[at++];
          this.cause[i] = value;
        }
      }
      this.forward = summed(columns.pair_forward);
      this.backward = summed(columns.pair_backward);
      this.sized = summed(columns.sized);
      this.sizes = columns.size;
    }

    _tree() {
      this._levels = [null];
      let length = this.count;
      while (length > FAN) {
        const below = this._levels.at(-1);
        const above = new Uint32Array(Math.ceil(length / FAN));
        for (let node = 0; node < above.length; node++) {
          let best = NONE;
          let most = -1;
          for (let i = node * FAN; i < Math.min(length, (node + 1) * FAN); i++) {
            const slice = below ? below[i] : i;
            const duration = this.end[slice] - this.start[slice];
            if (duration > most) [best, most] = [slice, duration];
          }
          above[node] = best;
        }
        this._levels.push(above);
        length = above.length;
      }
    }

    // The longest of the slices [from, to); of several the first.
    longest(from, to) {
      let best = from;
      let most = -1;
      let level = 0;
      const look = (ids, at) => {
        const slice = ids ? ids[at] : at;
        const duration = this.end[slice] - this.start[slice];
        if (duration > most || (duration === most && slice < best)) [best, most] = [slice, duration];
      };
      while (from < to) {
        const ids = this._levels[level];
        const isTop = level === this._levels.length - 1;
        while (from < to && (isTop || from % FAN)) look(ids, from++);
        while (from < to && to % FAN) look(ids, --to);
        from /= FAN;
        to /= FAN;
        level++;
      }
      return best;
    }

    // First slice of [from, to) that starts at or after `time`; looks near `from` first.
    startingAt(time, from, to) {
      return search(this.start, time, from, to, false);
    }

    // First slice of [from, to) that ends after `time`.
    endingAfter(time, from, to) {
      return search(this.end, time, from, to, true);
    }

    // The slice of a lane that is seen within [from, to) of time: the longest of those that touch it, or none.
    seen(lane, from, to) {
      const until = this.laneFrom[lane + 1];
      const first = Math.min(this.endingAfter(from, this.laneFrom[lane], until), until);
      const start = this._before(first, lane, from);
      const after = this.startingAt(to, start, until);
      return after > start ? this.longest(start, after) : NONE;
    }

    // Marks have no length, so that none "ends after" its own moment: those at `from` itself count.
    _before(first, lane, from) {
      while (first > this.laneFrom[lane] && this.end[first - 1] === from && this.start[first - 1] === from) first--;
      return first;
    }

    // Work that a call caused, ascending.
    causedBy(call) {
      const out = [];
      for (const track of this.tracks) {
        if (track.kind !== "work") continue;
        const until = this.laneFrom[track.first + track.lanes];
        for (let i = this.laneFrom[track.first]; i < until; i++) if (this.cause[i] === call) out.push(i);
      }
      return out;
    }

    // Operators at the other end of an arrow between forward and backward.
    passOf(slice) {
      const out = { forward: [], backward: [] };
      for (let i = 0; i < this.forward.length; i++) {
        if (this.forward[i] === slice) out.backward.push(this.backward[i]);
        if (this.backward[i] === slice) out.forward.push(this.forward[i]);
      }
      return out;
    }

    // Bytes of a copy or set; null for anything else.
    size(slice) {
      const at = search(this.sized, slice, 0, this.sized.length, false);
      return this.sized[at] === slice ? this.sizes[at] : null;
    }

    track(slice) {
      return this.tracks[this.trackOfLane[this.lane[slice]]];
    }

    get trackOfLane() {
      this._trackOfLane ??= Uint32Array.from(this.tracks.flatMap((track, i) => Array(track.lanes).fill(i)));
      return this._trackOfLane;
    }
  };

  function search(values, wanted, from, to, after) {
    // Doubling steps first: the next slice that is looked for is mostly near the last.
    let step = 1;
    let low = from;
    let high = from;
    const before = (i) => (after ? values[i] <= wanted : values[i] < wanted);
    while (high < to && before(high)) {
      low = high + 1;
      high += step;
      step *= 2;
    }
    high = Math.min(high, to);
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (before(middle)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  function summed(steps) {
    const out = new Uint32Array(steps.length);
    let value = 0;
    for (let i = 0; i < steps.length; i++) out[i] = value += steps[i];
    return out;
  }

  function facesOf(columns) {
    const faces = {};
    for (const [name, column] of Object.entries(columns)) {
      if (name.startsWith("face_")) faces[name.slice(5)] = column;
    }
    return faces;
  }

  function tracksOf(columns) {
    let first = 0;
    return columns.track_name.map((name, i) => {
      const track = {
        name,
        group: columns.track_group[i],
        kind: columns.track_kind[i],
        first,
        lanes: columns.track_lanes[i],
      };
      first += track.lanes;
      return track;
    });
  }
})();
