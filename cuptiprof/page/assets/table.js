"use strict";
// Tables of reports: sorted by a click on a title, searched, grouped, the first N rows of each group, and more on demand.

(() => {
  const STEPS = [10, 25, 100, 1000];
  const PLACES = [["kernel", "kernels"], ["operator", "operators"], ["module", "modules"], ["region", "regions"]]; // of advice, and their tables
  const LATER = 1000; // rows that "more" adds
  const LONG = 200; // characters that a cell shows at once

  class ReportTable {
    constructor(element, facts, columns, page, prefix) {
      Object.assign(this, { facts, columns, page, prefix });
      this.length = facts.rows;
      this.parent = facts.tree ? cuptiprof.parents(columns["#depth"]) : null;
      this.hasBelow = new Set(this.parent ?? []);
      this.state = { search: "", sort: null, descending: true, group: columns["#above"] ? "#above" : "", closed: new Set(), limit: 25, all: false };
      this.searched = facts.columns.map((column) => columns[column.key]);
      if (columns["#above"]) this.searched.push(columns["#above"]);
      this.element = element;
      this.build();
      this.show();
    }

    build() {
      const { make } = this.page;
      if (this.length > 5) this.element.append(this.tools());
      this.head = make("thead");
      this.count = make("p", { class: "quiet", role: "status" });
      this.table = make("table", { "aria-label": this.facts.title }, this.head);
      const scroll = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${this.facts.title}: table` }, this.table);
      this.element.append(scroll, this.count);
      for (const line of this.facts.lines) this.element.append(make("p", { class: "quiet line", text: line }));
    }

    tools() {
      const { make } = this.page;
      const search = make("input", { type: "search", placeholder: "Search" , "aria-label": `Search ${this.facts.title}` });
      search.addEventListener("input", () => this.set({ search: search.value }));
      this.search = search;
      const limit = this.choice("Rows", STEPS.map((n) => [String(n), String(n)]), "25", (value) => this.set({ limit: Number(value) }));
      const names = this.facts.columns.filter((c) => this.columns[c.key] instanceof cuptiprof.Texts && c.human && !c.key.includes("#"));
      const groups = [["", "nothing"], ...(this.columns["#above"] ? [["#above", "block"]] : []), ...names.map((c) => [c.key, c.title || c.key])];
      const group = this.choice("Group by", groups, this.state.group, (value) => this.set({ group: value }));
      const all = make("input", { type: "checkbox" });
      all.addEventListener("change", () => this.set({ all: all.checked }));
      const more = this.facts.columns.some((c) => !c.human && c.machine);
      return make("div", { class: "tools", role: "group", "aria-label": `What is shown of ${this.facts.title}` }, search, limit,
        this.parent ? null : group, more ? make("label", {}, all, " All columns") : null);
    }

    choice(title, options, chosen, call) {
      const { make } = this.page;
      const select = make("select", {}, ...options.map(([value, text]) => make("option", { value, text, selected: value === chosen })));
      select.addEventListener("change", () => call(select.value));
      return make("label", {}, `${title} `, select);
    }

    set(change) {
      Object.assign(this.state, { extra: 0 }, change);
      this.show();
    }

    shown() {
      return this.facts.columns.filter((c) => (c.human || (this.state.all && c.machine)) && c.key !== this.facts.message);
    }

    show() {
      const columns = this.shown();
      this.heads(columns);
      while (this.table.tBodies.length) this.table.tBodies[0].remove();
      const groups = cuptiprof.tableRows(this, this.state);
      const limit = this.state.limit + (this.state.extra ?? 0);
      let all = 0, seen = 0;
      for (const { above, rows } of groups) {
        all += rows.length;
        seen += Math.min(rows.length, limit);
        this.table.append(this.body(above, rows.slice(0, limit), rows.length, columns));
      }
      this.counted(seen, all);
    }

    counted(seen, all) {
      const n = cuptiprof.format.count;
      const matching = this.state.search ? " that match" : "";
      this.count.textContent = all > seen || this.state.search ? `${n(seen)} of ${n(all)} rows${matching}. ` : all ? "" : "No rows.";
      if (all <= seen) return;
      const more = this.page.make("button", { type: "button", class: "tools", text: `Show ${n(LATER)} more` });
      more.addEventListener("click", () => this.set({ extra: (this.state.extra ?? 0) + LATER }));
      this.count.append(more);
    }

    heads(columns) {
      const { make } = this.page;
      const row = make("tr");
      for (const column of columns) {
        const isBy = this.state.sort === column.key;
        const button = make("button", { type: "button", text: column.title || column.key });
        button.addEventListener("click", () => {
          this.set({ sort: column.key, descending: isBy ? !this.state.descending : !column.left });
          this.head.querySelector(`th:nth-child(${columns.indexOf(column) + 1}) button`).focus();
        });
        row.append(make("th", {
          scope: "col", class: column.left ? "left" : "", "aria-sort": isBy ? (this.state.descending ? "descending" : "ascending") : "none",
        }, button));
      }
      this.head.replaceChildren(row);
    }

    body(above, rows, whole, columns) {
      const { make } = this.page;
      const body = make("tbody");
      if (above !== null) {
        const text = this.state.group === "#above" ? above : `${above} (${cuptiprof.format.count(whole)})`;
        body.append(make("tr", { class: "above" }, make("th", { scope: "rowgroup", colspan: String(columns.length), text })));
      }
      for (const row of rows) body.append(this.row(row, columns));
      return body;
    }

    row(row, columns) {
      const { make } = this.page;
      const sentence = this.facts.message ? this.columns[this.facts.message].at(row) : null;
      if (sentence !== null) {
        return make("tr", { class: "sentence" }, make("td", { class: "left", colspan: String(columns.length), text: sentence }));
      }
      const line = make("tr", { "data-row": String(row) });
      let first = true;
      for (const column of columns) {
        const cell = make("td", { class: column.left ? "left" : "" });
        if (column.left && this.parent && first) {
          cell.append(this.branch(row));
          first = false;
        }
        cell.append(this.link(column, row) ?? this.shortened(this.text(column, row)));
        line.append(cell);
      }
      return line;
    }

    text(column, row) {
      const shown = this.columns[`${column.key}#text`];
      if (shown) return shown.at(row);
      const values = this.columns[column.key];
      return cuptiprof.format(column.kind, values instanceof cuptiprof.Texts ? values.at(row) : values[row]);
    }

    // Names of kernels can be pages long: two lines of them, and all of it where that is asked for.
    shortened(text) {
      if (text.length <= LONG) return text;
      const { make } = this.page;
      const whole = make("span", { class: "long", text });
      const button = make("button", { type: "button", class: "more", "aria-expanded": "false", text: "whole name" });
      button.addEventListener("click", () => {
        const open = whole.classList.toggle("open");
        button.setAttribute("aria-expanded", String(open));
        button.textContent = open ? "less" : "whole name";
      });
      return make("span", {}, whole, button);
    }

    // What advice is about, as a way to its row; null: it is about nothing that has a table here.
    link(column, row) {
      if (this.facts.view !== "advise" || column.key !== "where") return null;
      for (const [place, key] of PLACES) {
        const name = this.columns[place]?.at(row);
        if (!name || !document.getElementById(`s-${this.prefix}${key}`)) continue;
        const button = this.page.make("button", { type: "button", class: "link", text: this.text(column, row) });
        button.addEventListener("click", () => this.page.open(`${this.prefix}${key}`, { search: name }));
        return button;
      }
      return null;
    }

    // The indent of a row in the tree, and what opens and closes it.
    branch(row) {
      const { make } = this.page;
      const indent = make("span", { class: "indent" });
      indent.style.width = `${this.columns["#depth"][row] * 1.1}rem`;
      if (!this.hasBelow.has(row)) return make("span", {}, indent, make("span", { class: "leaf" }));
      const closed = this.state.closed.has(row);
      const button = make("button", { type: "button", class: "branch", "aria-expanded": String(!closed), "aria-label": "Rows below", text: closed ? "+" : "\u2212" });
      button.addEventListener("click", () => {
        if (!this.state.closed.delete(row)) this.state.closed.add(row);
        this.show();
        this.table.querySelector(`tr[data-row="${row}"] .branch`).focus();
      });
      return make("span", {}, indent, button);
    }

    // From elsewhere in the page: only the rows with these words.
    find(search) {
      if (this.search) this.search.value = search;
      this.set({ search });
    }
  }

  // The tables of a section below what else is drawn in it.
  cuptiprof.tables = (section, body, data, page) => {
    const prefix = section.id.slice(2, section.id.length - section.dataset.key.length); // of the second of two runs
    const tables = data.facts.tables.map((facts, i) => {
      const element = page.make("div", { class: "table" });
      if (data.facts.tables.length > 1) element.append(page.make("h3", { text: facts.title }));
      const mine = Object.entries(data.columns).filter(([name]) => name.startsWith(`${i}:`));
      body.append(element);
      return new ReportTable(element, facts, Object.fromEntries(mine.map(([name, column]) => [name.slice(name.indexOf(":") + 1), column])), page, prefix);
    });
    section.addEventListener("cuptiprof:open", ({ detail }) => {
      if (detail.search) for (const table of tables) table.find(detail.search);
    });
  };
})();
