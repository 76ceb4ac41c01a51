// Counter tracks: levels over time (memory, samples of hardware counters), and how much of the time a GPU ran kernels.
(() => {
  "use strict";
  const timeline = (cuptiprof.timeline ??= {});

  // A track of points that the page brings with it; each holds until the next.
  class Points {
    constructor(group, name, unit, times, values) {
      Object.assign(this, { group, name, unit, times, values });
      this.isUse = false;
      this.most = values.reduce((most, value) => Math.max(most, value), 0);
      this.least = values.reduce((least, value) => Math.min(least, value), 0);
    }

    // Level in [from, to): its largest there; null before the first point.
    between(from, to) {
      let at = upper(this.times, from) - 1;
      let most = at >= 0 ? this.values[at] : null;
      for (at++; at < this.times.length && this.times[at] < to; at++) {
        if (most === null || this.values[at] > most) most = this.values[at];
      }
      return most;
    }
  }

  // Share of each moment in which any kernel of a GPU ran, from the slices themselves: exact at every zoom.
  class Use {
    constructor(slices, group, lanes) {
      Object.assign(this, { group, name: "GPU utilisation", unit: "share", most: 1, least: 0, isUse: true });
      const isKernel = slices.faces.kind.map((kind) => kind === "kernel" || kind === "graph");
      const order = [];
      for (const lane of lanes) {
        for (let i = slices.laneFrom[lane]; i < slices.laneFrom[lane + 1]; i++) if (isKernel[slices.face[i]]) order.push(i);
      }
      const rows = Uint32Array.from(order);
      if (lanes.length > 1) rows.sort((one, other) => slices.start[one] - slices.start[other]);
      const start = new Float64Array(rows.length);
      const end = new Float64Array(rows.length);
      let count = 0;
      for (const row of rows) {
        if (count && slices.start[row] <= end[count - 1]) end[count - 1] = Math.max(end[count - 1], slices.end[row]);
        else {
          start[count] = slices.start[row];
          end[count++] = slices.end[row];
        }
      }
      this.start = start.slice(0, count);
      this.end = end.slice(0, count);
      this.sum = new Float64Array(count + 1);
      for (let i = 0; i < count; i++) this.sum[i + 1] = this.sum[i] + this.end[i] - this.start[i];
    }

    between(from, to) {
      return (this._before(to) - this._before(from)) / (to - from);
    }

    // Busy time before a moment.
    _before(time) {
      const at = upper(this.start, time);
      return at ? this.sum[at] - Math.max(0, this.end[at - 1] - time) : 0;
    }
  }

  timeline.levelsOf = (slices, columns) => {
    const out = [];
    const groups = new Map();
    for (const track of slices.tracks) {
      if (track.kind !== "work") continue;
      const lanes = groups.get(track.group) ?? [];
      for (let i = 0; i < track.lanes; i++) lanes.push(track.first + i);
      groups.set(track.group, lanes);
    }
    for (const [group, lanes] of groups) out.push(new Use(slices, group, lanes));
    let from = 0;
    columns.level_name.forEach((name, i) => {
      const until = from + columns.level_points[i];
      const times = new Float64Array(until - from);
      let time = 0;
      for (let at = from; at < until; at++) times[at - from] = time += columns.point_gap[at];
      const values = Float64Array.from(columns.point_value.subarray(from, until));
      out.push(new Points(columns.level_group[i], name, columns.level_unit[i], times, values));
      from = until;
    });
    return out;
  };

  // How many of the ascending values are at most `wanted`.
  function upper(values, wanted) {
    let low = 0;
    let high = values.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (values[middle] <= wanted) low = middle + 1;
      else high = middle;
    }
    return low;
  }
})();
