/* A heap profile: a flame graph, and tables of stacks, lifetimes and suspects. */
const profile = data.profile;
const KINDS = { peak: "Peak", inuse: "In use", growth: "Growth", alloc: "Allocated" };
const KIND_NUMBERS = { alloc: 0, inuse: 1, peak: 2, growth: 3 };
let type = profile ? profile.type : 0, zoom = [], query = "";

/* ---- values ---- */
const amount = (n, t) => profile.types[t].bytes ? bytes(n) : count(n);
const kindOf = t => profile.types[t].name.replace(/_(space|objects)$/, "");
const labelOf = t => KINDS[kindOf(t)] || profile.types[t].name;
function spreadOf(stack, t) {
  const k = KIND_NUMBERS[kindOf(t)];
  return stack.variances && k !== undefined
    ? Math.sqrt(stack.variances[2 * k + (profile.types[t].bytes ? 1 : 0)]) : null;
}
function samplesOf(stack, t) {
  const k = KIND_NUMBERS[kindOf(t)];
  return stack.samples && k !== undefined ? stack.samples[k] : null;
}
const nameOf = f => profile.functions[f][0];
const shortOf = f => profile.functions[f][1];
const lineOf = f => profile.functions[f].length > 2 ? profile.functions[f][2] + ":" + profile.functions[f][3] : "";

/* ---- the tree ---- */
function makeTree(t) {
  const root = { name: "all", short: "all", value: 0, self: 0, children: new Map(), parent: null };
  for (const s of profile.stacks) {
    const value = s.values[t];
    if (value <= 0) continue;
    let node = root;
    root.value += value;
    for (const f of s.stack) {
      const name = nameOf(f);
      let child = node.children.get(name);
      if (!child) {
        child = { name, short: shortOf(f), value: 0, self: 0, children: new Map(), parent: node };
        node.children.set(name, child);
      }
      child.value += value;
      node = child;
    }
    node.self += value;
  }
  return root;
}
let tree = null;

function nodeAt(path) {
  let node = tree;
  for (const name of path) {
    const child = node.children.get(name);
    if (!child) break;
    node = child;
  }
  return node;
}
function pathOf(node) {
  const path = [];
  for (; node.parent; node = node.parent) path.unshift(node.name);
  return path;
}
const isHit = node => query && node.name.toLowerCase().includes(query);
function hits(node) {
  if (isHit(node)) return node.value;
  let sum = 0;
  for (const child of node.children.values()) sum += hits(child);
  return sum;
}
function hue(name) {
  let h = 2166136261;
  for (let i = 0; i < name.length; i++) h = Math.imul(h ^ name.charCodeAt(i), 16777619);
  return 12 + ((h >>> 0) % 40);
}

/* ---- the flame graph: the outermost function on top ---- */
function tell(node) {
  const all = tree.value || 1;
  $("about").replaceChildren(
    element("b", {}, node.name), element("br"),
    `${amount(node.value, type)}, ${(100 * node.value / all).toFixed(1)} % of all` +
    (node.self && node.children.size ? `; ${amount(node.self, type)} by itself` : ""));
}
function zoomTo(node) {
  zoom = pathOf(node);
  drawGraph();
}
function drawTools(section) {
  section.append(element("div", { class: "tools" },
    element("input", { id: "search", type: "search", placeholder: "Search functions", "aria-label": "Search functions",
      on: { input: e => { query = e.target.value.trim().toLowerCase(); drawGraph(); } } }),
    element("button", { id: "unit", type: "button" }),
    element("button", { id: "reset", type: "button", on: { click: () => zoomTo(tree) } }, "Reset zoom"),
    element("span", { class: "found", id: "found", "aria-live": "polite" })),
    element("div", { id: "path", "aria-label": "Where the graph begins" }), element("div", { id: "graph" }),
    element("div", { id: "about", "aria-live": "polite" }));
}
function drawFlame(section) {
  tree = makeTree(type);
  if (!section.childElementCount) drawTools(section);
  drawUnit();
  drawGraph();
}
function drawGraph() {
  const base = nodeAt(zoom), graph = $("graph"), width = graph.clientWidth || 1000;
  const boxes = document.createDocumentFragment();
  let deepest = 0;
  const put = (node, x, w, level) => {
    if (w * width < 1 && level) return;
    deepest = Math.max(deepest, level + 1);
    const label = `${node.name}: ${amount(node.value, type)}`;
    const box = element("div", { class: "box" + (query ? isHit(node) ? " hit" : " dim" : "") +
        (w * width > 30 ? " named" : w * width < 4 ? " narrow" : ""),
      title: label, role: "button", tabindex: w * width > 24 ? "0" : null, "aria-label": label,
      on: { click: () => zoomTo(node), mouseenter: () => tell(node), focus: () => tell(node),
            keydown: e => { if (e.key === "Enter") zoomTo(node); } } },
      w * width > 30 ? node.short : "");
    box.style.cssText = `left:${100 * x}%;width:${100 * w}%;top:${21 * level}px;` +
      `background:hsl(${hue(node.name)} var(--box-s) var(--box-l))`;
    boxes.append(box);
    const children = [...node.children.values()].sort((a, b) => b.value - a.value);
    for (const child of children) {
      const share = node.value ? w * child.value / node.value : 0;
      put(child, x, share, level + 1);
      x += share;
    }
  };
  if (base.value) put(base, 0, 1, 0);
  graph.replaceChildren(boxes);
  graph.style.height = 21 * deepest + "px";
  if (!base.value)
    graph.replaceChildren(element("p", { class: "empty" }, `Nothing to show for “${labelOf(type)}”.`));
  const path = [];
  for (let node = base; node.parent; node = node.parent) {
    const to = node.parent;
    path.unshift(element("button", { type: "button", title: to.name,
      on: { click: () => zoomTo(to) } }, to.short));
  }
  $("path").replaceChildren(...(path.length ? ["Within "] : ["Click a box to look into it."]), ...path);
  $("reset").disabled = !zoom.length;
  tell(base);
  const found = query ? hits(tree) : 0;
  $("found").textContent = query
    ? `${amount(found, type)}, ${tree.value ? (100 * found / tree.value).toFixed(1) : 0} % found` : "";
}

/* ---- tables ---- */
function stackList(stack) {                       /* the innermost first */
  return element("ol", {}, ...[...stack].reverse().map(f =>
    element("li", {}, element("b", {}, nameOf(f)), lineOf(f) ? " " + lineOf(f) : "")));
}
function stackCell(stack) {
  const inner = stack.length ? nameOf(stack[stack.length - 1]) : "[no stack]";
  const details = element("details", {}, element("summary", {}, inner));
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(stackList(stack));
  });
  return element("td", { class: "name" }, details);
}

let stackSort = null;
function drawStacks(section) {
  const types = typesLike(profile.types[type].bytes);
  const by = stackSort === null || !types.includes(stackSort) ? type : stackSort;
  const stacks = profile.stacks.filter(s => types.some(t => s.values[t]))
    .sort((a, b) => b.values[by] - a.values[by]);
  const columns = [{ name: "Innermost function (open for the stack)", class: "name" },
    ...types.map(t => ({ name: labelOf(t), sort: true, class: t === by ? null : "wide", type: t })),
    { name: "Samples", class: "wide" }];
  const rows = stacks.slice(0, rowsMost).map(s => element("tr", {}, stackCell(s.stack),
    ...types.map(t => {
      const spread = spreadOf(s, t);
      return element("td", { class: t === by ? null : "wide" }, amount(s.values[t], t),
        spread !== null && spread >= 0.5 ? element("small", {}, "± " + amount(spread, t)) : null);
    }), element("td", { class: "wide" }, samplesOf(s, by) === null ? "" : count(samplesOf(s, by)))));
  section.replaceChildren(rows.length
    ? table(columns, rows, columns.findIndex(c => c.type === by),
            i => { stackSort = columns[i].type; draw(); })
    : empty("No allocation was sampled."));
  showMore(section, stacks.length);
}

function livesPicture(lives) {
  const most = Math.max(...lives) || 1;
  const svg = drawn("svg", { class: "lives", viewBox: "0 0 160 32", preserveAspectRatio: "none", role: "img",
    "aria-label": "Lifetimes by powers of two" });
  lives.forEach((n, i) => {
    const h = n ? Math.max(1, 31 * n / most) : 0;
    svg.append(drawn("rect", { x: 5 * i, y: 32 - h, width: 4, height: h }, drawn("title", {},
      `${i ? "from " + seconds(profile.life_from[i]) : "below " + seconds(profile.life_from[1])}: ${count(n)} objects`)));
  });
  return svg;
}
function median(lives) {
  const all = lives.reduce((a, b) => a + b, 0);
  let sum = 0, i = 0;
  while (i < lives.length - 1 && (sum += lives[i]) < all / 2) i++;
  return (i ? "about " : "below ") + seconds(profile.life_from[i || 1]);
}
function drawLives(section) {
  if (!profile.lifetimes) {
    section.replaceChildren(empty("No lifetimes were kept. The term “lifetimes” of STOOK_PROFILE " +
      "or stook run --profile FILE,lifetimes has them kept."));
    return;
  }
  const pairs = [...profile.pairs].sort((a, b) => b.bytes - a.bytes);
  const rows = pairs.slice(0, rowsMost).map(p => {
    const cell = stackCell(p.born), died = stackCell(p.died);
    return element("tr", {}, cell, died, element("td", {}, bytes(p.bytes)),
      element("td", { class: "wide" }, count(p.objects)), element("td", { class: "wide" }, median(p.lives)),
      element("td", { class: "wide" }, p.objects ? (100 * p.elsewhere / p.objects).toFixed(0) + " %" : ""),
      element("td", {}, livesPicture(p.lives)));
  });
  section.replaceChildren(rows.length ? table([{ name: "Allocated by", class: "name" },
    { name: "Freed by", class: "name" }, { name: "Bytes" }, { name: "Objects", class: "wide" },
    { name: "Median life", class: "wide" }, { name: "By another thread", class: "wide" },
    { name: "2 µs to 36 min" }], rows) : empty("No sampled object was freed."));
  showMore(section, pairs.length);
}
function drawSuspects(section) {
  const inUse = profile.types.findIndex(t => t.name === "inuse_space");
  const stacks = profile.stacks.filter(s => s.rate !== undefined).sort((a, b) => b.rate - a.rate);
  const minutes = profile.seconds / 60 || 1;
  const rows = stacks.slice(0, rowsMost).map(s => element("tr", {}, stackCell(s.stack),
    element("td", {}, bytes(s.rate), element("small", {}, "± " + bytes(spreadOf(s, inUse) / minutes))),
    element("td", {}, bytes(s.values[inUse])), element("td", { class: "wide" }, count(samplesOf(s, inUse)))));
  section.replaceChildren(empty("Stacks of which more was allocated than freed in each quarter of " +
    "the time, and less than a tenth of the oldest quarter was freed since."),
    rows.length ? table([{ name: "Innermost function (open for the stack)", class: "name" },
      { name: "A minute" }, { name: "In use" }, { name: "Samples", class: "wide" }], rows)
      : empty("There are none."));
  showMore(section, stacks.length);
}
/* ---- cards and tabs ---- */
function typesLike(isBytes) {
  const order = Object.keys(KINDS);
  return profile.types.map((_, i) => i).filter(i => profile.types[i].bytes === isBytes)
    .sort((a, b) => order.indexOf(kindOf(a)) - order.indexOf(kindOf(b)));
}
function choose(t) {
  type = t;
  stackSort = null;
  draw();
}
function profileCards() {
  return typesLike(profile.types[type].bytes).map(t => {
    const spread = profile.types[t].spread;
    return card(labelOf(t), amount(profile.types[t].total, t),
      spread >= 0.5 ? "± " + amount(spread, t) : spread < 0 ? "" : "exact", () => choose(t), t === type);
  });
}
function drawUnit() {
  const isBytes = profile.types[type].bytes;
  const other = profile.types.findIndex((t, i) => t.bytes !== isBytes && kindOf(i) === kindOf(type));
  $("unit").hidden = other < 0;
  $("unit").textContent = isBytes ? "Show objects" : "Show bytes";
  $("unit").onclick = () => choose(other);
}
function profileFacts() {
  return [profile.time ? new Date(1000 * profile.time).toISOString().slice(0, 19).replace("T", " ") + " UTC" : "",
    profile.seconds ? `${seconds(profile.seconds)} after the start` : "",
    profile.peak ? `peak at ${seconds(profile.peak)}` : "",
    profile.mark ? `mark at ${seconds(profile.mark)}` : "",
    profile.period > 1 ? `one sample in ${bytes(profile.period)}; ± is the standard deviation` : "every allocation",
    profile.lost ? `${count(profile.lost)} samples found no room` : ""].filter(Boolean);
}
if (profile) {
  const tabs = [["flame", "Flame graph", drawFlame], ["stacks", "Stacks", drawStacks]];
  if (!data.replay)     /* a trace has neither */
    tabs.push(["lives", "Lifetimes", drawLives], ["suspects", "Suspects", drawSuspects]);
  for (const [id, name, draw] of tabs)
    TABS.push({ id, name, draw, cards: profileCards });
  addEventListener("keydown", e => {
    if (e.key === "Escape" && tab.id === "flame" && zoom.length) zoomTo(tree);
  });
}
