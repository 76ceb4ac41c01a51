// What stands below what: groups (the host, a GPU), their tracks, a row of slices a lane, and what is folded away.
(() => {
  "use strict";
  const timeline = (cuptiprof.timeline ??= {});

  timeline.LANE = 19;
  timeline.GROUP = 24;
  timeline.CURVE = 44;
  const GAP = 5;

  timeline.Rows = class {
    // levels: counter tracks, {group, name, ...}; changed: called when something was folded.
    constructor(slices, levels, changed) {
      this._changed = changed;
      this.groups = [];
      const byName = new Map();
      const groupOf = (name) => {
        if (!byName.has(name)) {
          const group = { name, folded: false, entries: [] };
          byName.set(name, group);
          this.groups.push(group);
        }
        return byName.get(name);
      };
      // Levels first: what a GPU did in all stands above its streams.
      for (const level of levels.filter((one) => one.isUse)) groupOf(level.group).entries.push({ level, name: level.name });
      for (const track of slices.tracks) {
        groupOf(track.group).entries.push({ track, name: track.name, folded: false });
      }
      for (const level of levels.filter((one) => !one.isUse)) groupOf(level.group).entries.push({ level, name: level.name });
      this.place();
    }

    // Tops and heights in CSS pixels.
    place() {
      let top = 0;
      this.lanes = []; // {lane, top}, of those that are not folded away, by top
      this.curves = []; // {level, top}
      this._topOfLane = new Map();
      for (const group of this.groups) {
        group.top = top;
        top += timeline.GROUP;
        for (const entry of group.entries) {
          entry.top = top;
          entry.height = 0;
          if (group.folded) continue;
          if (entry.level) {
            entry.height = timeline.CURVE + GAP;
            this.curves.push({ level: entry.level, top });
          } else {
            const { first, lanes } = entry.track;
            const shown = entry.folded ? Math.min(1, lanes) : lanes;
            for (let i = 0; i < shown; i++) {
              const row = { lane: first + i, top: top + i * timeline.LANE };
              this._topOfLane.set(row.lane, row.top);
              this.lanes.push(row);
            }
            entry.height = shown * timeline.LANE + GAP;
          }
          top += entry.height;
        }
        group.bottom = top;
      }
      this.height = top;
    }

    fold(one) {
      one.folded = !one.folded;
      this.place();
      this._changed();
    }

    // Unfolds what hides a lane.
    show(lane) {
      if (this._topOfLane.has(lane)) return;
      for (const group of this.groups) {
        for (const entry of group.entries) {
          if (!entry.track || lane < entry.track.first || lane >= entry.track.first + entry.track.lanes) continue;
          group.folded = entry.folded = false;
        }
      }
      this.place();
      this._changed();
    }

    // Top of a lane; undefined: it is folded away.
    top(lane) {
      return this._topOfLane.get(lane);
    }

    // Where an arrow to a lane ends: in its row, else in that of what it is folded into.
    middle(lane) {
      const top = this.top(lane);
      if (top !== undefined) return top + timeline.LANE / 2;
      for (const group of this.groups) {
        for (const entry of group.entries) {
          if (!entry.track || lane < entry.track.first || lane >= entry.track.first + entry.track.lanes) continue;
          return group.folded ? group.top + timeline.GROUP / 2 : entry.top + timeline.LANE / 2;
        }
      }
      return 0;
    }

    // {lane} or {level} or nothing at a height.
    at(y) {
      const row = this.lanes.find(({ top }) => y >= top && y < top + timeline.LANE);
      if (row) return { lane: row.lane };
      return this.curves.find(({ top }) => y >= top && y < top + timeline.CURVE) ?? null;
    }
  };
})();
