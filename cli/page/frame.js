/* What all parts of the page share: numbers, elements, tables, tabs. Parts add to TABS. */
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const ROWS_STEP = 100;
/* { id, name, draw(section), cards(): elements } */
const TABS = [];
let tab = null, rowsMost = ROWS_STEP;

/* ---- numbers ---- */
function bytes(n) {
  const sign = n < 0 ? "−" : "";
  n = Math.abs(n);
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) { n /= 1024; i++; }
  return sign + (i ? n.toFixed(n < 100 ? 1 : 0) : Math.round(n)) + " " + units[i];
}
const count = n => Math.round(n).toLocaleString("en");
function seconds(s) {
  if (s < 1e-3) return (s * 1e6).toFixed(s < 1e-5 ? 1 : 0) + " µs";
  if (s < 1) return (s * 1e3).toFixed(s < 1e-2 ? 1 : 0) + " ms";
  if (s < 120) return s.toFixed(s < 10 ? 1 : 0) + " s";
  return s < 7200 ? (s / 60).toFixed(0) + " min" : (s / 3600).toFixed(1) + " h";
}
const percent = (part, all) => all ? (100 * part / all).toFixed(part && part < all / 100 ? 1 : 0) + " %" : "";

/* ---- elements ---- */
function element(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {}))
    if (key === "on") for (const [event, f] of Object.entries(value)) e.addEventListener(event, f);
    else if (value !== null && value !== undefined) e.setAttribute(key, value);
  e.append(...children.filter(c => c !== null && c !== undefined));
  return e;
}
const SVG = "http://www.w3.org/2000/svg";
function drawn(tag, attributes, ...children) {
  const e = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes || {})) e.setAttribute(key, value);
  e.append(...children.filter(c => c !== null && c !== undefined));
  return e;
}
function card(name, value, below, choose, chosen) {
  return element(choose ? "button" : "div", { class: "card", type: choose ? "button" : null,
    "aria-pressed": choose ? chosen : null, on: choose ? { click: choose } : {} },
    name, element("b", {}, value), element("span", {}, below || ""));
}
/* Buttons of which one is chosen. */
function choice(label, options, chosen, choose) {
  return element("div", { class: "tools", role: "group", "aria-label": label },
    ...options.map(([id, name]) => element("button", { type: "button", "aria-pressed": id === chosen,
      on: { click: () => choose(id) } }, name)));
}
function table(columns, rows, sortBy, onSort) {
  const head = element("tr", {}, ...columns.map((c, i) =>
    element("th", { class: c.class, scope: "col", "aria-sort": sortBy === i ? "descending" : null },
      onSort && c.sort ? element("button", { type: "button", on: { click: () => onSort(i) } }, c.name)
                       : c.name)));
  return element("div", { class: "scroll" }, element("table", {}, element("thead", {}, head),
    element("tbody", {}, ...rows)));
}
const empty = text => element("p", { class: "empty" }, text);


/* A button for the rest of @all rows. */
function showMore(section, all) {
  if (all > rowsMost)
    section.append(element("p", {}, element("button", { type: "button",
      on: { click: () => { rowsMost += 5 * ROWS_STEP; draw(); } } }, `Show more of ${count(all)}`)));
}

/*
 * Lines over time: @lines: { name, values }, of the times @at in seconds. Values are bytes.
 * The picture is as wide as its place, and drawn anew with it.
 */
function chart(at, lines, width) {
  const height = 240, left = 64, right = 10, top = 10, bottom = 26;
  const most = Math.max(1, ...lines.flatMap(l => l.values)), end = at[at.length - 1] || 1, begin = at[0] || 0;
  const step = 2 ** Math.ceil(Math.log2(most / 5));
  const x = s => left + (width - left - right) * (s - begin) / (end - begin || 1);
  const y = v => height - bottom - (height - top - bottom) * v / most;
  const svg = drawn("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": lines.map(l => l.name).join(", ") + " over time" });
  for (let v = 0; v <= most; v += step)
    svg.append(drawn("line", { class: "grid", x1: left, x2: width - right, y1: y(v), y2: y(v) }),
               drawn("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, bytes(v)));
  const marks = width < 500 ? 2 : 5;
  for (let i = 0; i <= marks; i++) {
    const s = begin + (end - begin) * i / marks;
    svg.append(drawn("text", { x: x(s), y: height - 8,
      "text-anchor": i === 0 ? "start" : i === marks ? "end" : "middle" }, seconds(s)));
  }
  lines.forEach((l, i) => svg.append(drawn("polyline", { class: "line line" + i,
    points: l.values.map((v, k) => `${x(at[k]).toFixed(1)},${y(v).toFixed(1)}`).join(" ") })));
  return element("div", {}, svg, element("p", { class: "legend" }, ...lines.map((l, i) =>
    element("span", { class: "key key" + i }, `${l.name}, at most ${bytes(Math.max(...l.values))}`))));
}

/* ---- tabs ---- */
function draw() {
  $("cards").replaceChildren(...(tab.cards ? tab.cards() : []));
  $("tabs").replaceChildren(...TABS.map(t => element("button", { type: "button", role: "tab",
    "aria-selected": t === tab, "aria-controls": t.id,
    on: { click: () => { tab = t; rowsMost = ROWS_STEP; draw(); } } }, t.name)));
  for (const t of TABS) $(t.id).hidden = t !== tab;
  tab.draw($(tab.id));
}
function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  $("theme").textContent = dark ? "Light" : "Dark";
}
/* Once TABS has them all. */
function openTabs() {
  for (const t of TABS)
    $("views").append(element("section", { id: t.id, role: "tabpanel", "aria-label": t.name }));
  addEventListener("resize", draw);
  tab = TABS[0];
  draw();
}
function start() {
  setTheme(matchMedia("(prefers-color-scheme: dark)").matches);
  $("theme").onclick = () => setTheme(document.documentElement.dataset.theme !== "dark");
  $("title").textContent = data.name;
  document.title = data.name + ": heap";
  drawFacts();
  if (data.live) look();
  else openTabs();
}
