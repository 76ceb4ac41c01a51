"use strict";
// Sections are drawn when they are about to be seen, and the rest when the browser has nothing else to do (a page may be printed).

(() => {
  const draws = new Map();
  const waiting = new Map(); // section -> its promise
  const wished = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;

  // An element with its text; attributes by name. Texts get into the page by this only.
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "text") element.textContent = value;
      else if (typeof value === "boolean") element.toggleAttribute(name, value);
      else element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null));
    return element;
  };

  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : wished.matches);

  // A colour of theme.css as a canvas takes it: color("--accent").
  const color = (name) => {
    const probe = make("span", { hidden: true });
    document.body.append(probe);
    probe.style.color = `var(${name})`;
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };

  const told = () => document.dispatchEvent(new CustomEvent("cuptiprof:theme"));

  const page = {
    make,
    color,
    dark,
    onTheme: (call) => document.addEventListener("cuptiprof:theme", call),
    // Shows a section and, where its drawing listens, a place in it: the link of advice to a table.
    open: async (key, wanted = {}) => {
      const section = document.getElementById(`s-${key}`);
      if (section === null) return;
      await drawn(section);
      section.scrollIntoView();
      section.querySelector("h2").focus();
      section.dispatchEvent(new CustomEvent("cuptiprof:open", { detail: wanted }));
    },
  };

  const draw = async (section) => {
    const body = section.querySelector(".body");
    const id = section.id.slice(2);
    section.dataset.state = "drawing";
    try {
      const data = await cuptiprof.unpack(`data-${id}`);
      const element = make("div");
      body.append(element);
      if (section.dataset.mount !== "tables") await draws.get(section.dataset.mount)(element, data, page);
      await cuptiprof.tables(section, body, data, page);
      section.dataset.state = "drawn";
    } catch (error) {
      section.dataset.state = "failed";
      body.append(make("p", { role: "alert", class: "warning", text: `This section could not be drawn: ${error.message}` }));
      console.error(error);
    }
  };

  const drawn = (section) => {
    if (!waiting.has(section)) waiting.set(section, draw(section));
    return waiting.get(section);
  };

  const idle = () => new Promise((resolve) => (window.requestIdleCallback ?? setTimeout)(() => resolve(), { timeout: 200 }));

  const start = async () => {
    const sections = [...document.querySelectorAll("section[data-mount]")];
    const seen = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting) drawn(entry.target);
    }, { rootMargin: "300px" });
    for (const section of sections) seen.observe(section);
    for (const section of sections) {
      await idle();
      await drawn(section);
    }
    seen.disconnect();
    root.dataset.state = "complete";
  };

  const themed = () => {
    const button = document.getElementById("theme");
    const name = () => { button.textContent = dark() ? "Light colours" : "Dark colours"; };
    button.hidden = false;
    name();
    button.addEventListener("click", () => {
      root.dataset.theme = dark() ? "light" : "dark";
      name();
      told();
    });
    wished.addEventListener("change", () => { name(); told(); });
    for (const [when, prints] of [["beforeprint", true], ["afterprint", false]]) {
      addEventListener(when, () => {
        root.toggleAttribute("data-printing", prints);
        told();
      });
    }
  };

  // draw(element, {facts, columns}, page) fills the element of each section that names it; it may be async.
  cuptiprof.mount = (name, draw) => draws.set(name, draw);

  document.addEventListener("DOMContentLoaded", () => {
    themed();
    start();
  });
})();
