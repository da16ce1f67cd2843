/* A heap, as `stook info --json` tells of it: what has its memory, slabs, sheaves, groups, caches. */
const CAUSES = [["live", "In use"], ["cached", "In sheaves"], ["free", "Free in slabs"], ["large", "Large objects"],
  ["pages", "Free pages"], ["own", "Stook's own"]];
let library = 0, byCache = false, cacheSort = 5;
const heap = () => data.libraries[library];

/* ---- totals ---- */
/* Bytes of a cache's slabs by cause; their sum is its space. */
function partsOf(c) {
  const live = c.objects_live * c.stride, cached = c.objects_cached * c.stride;
  return { live, cached, free: Math.max(0, c.space_bytes - live - cached) };
}
function totals(h) {
  const sum = { live: 0, cached: 0, free: 0, large: h.memory.large_bytes, pages: h.memory.free_dirty_bytes,
    own: h.memory.metadata_bytes };
  for (const c of h.caches)
    for (const [cause, value] of Object.entries(partsOf(c))) sum[cause] += value;
  return sum;
}
const sumOf = parts => Object.values(parts).reduce((a, b) => a + b, 0);
function heapCards() {
  const sum = totals(heap()), all = sumOf(sum), resident = heap().memory.resident;
  const cards = CAUSES.map(([id, name]) => card(element("span", {}, element("i", { class: "dot cause-" + id }), name),
    bytes(sum[id]), percent(sum[id], all)));
  if (resident) cards.push(card("Resident", bytes(sumOf(resident)), "of the heap's pages"));
  return cards;
}

/* ---- the treemap ---- */
/* Rectangles of an area in proportion to values, the largest first, as square as may be. */
function squarify(items, x, y, w, h) {
  const placed = [];
  let left = items.reduce((sum, i) => sum + i.value, 0), at = 0;
  while (at < items.length && left > 0) {
    const side = Math.min(w, h), scale = w * h / left;
    let row = 0, n = 0, worst = Infinity;
    for (; at + n < items.length; n++) {
      const area = (row + items[at + n].value) * scale, least = items[at + n].value * scale;
      const next = Math.max(side * side * items[at].value * scale / (area * area), area * area / (side * side * least));
      if (next > worst) break;
      worst = next;
      row += items[at + n].value;
    }
    const thick = row * scale / side;
    let along = 0;
    for (const item of items.slice(at, at + n)) {
      const long = side * item.value / row;
      placed.push(w < h ? { item, x: x + along, y, w: long, h: thick } : { item, x, y: y + along, w: thick, h: long });
      along += long;
    }
    if (w < h) { y += thick; h -= thick; } else { x += thick; w -= thick; }
    left -= row;
    at += n;
  }
  return placed;
}
/* { name, parts: [{ name, cause, value }] }, by cause or by cache. */
function treeOf(h) {
  const sum = totals(h), name = Object.fromEntries(CAUSES), groups = [];
  const rest = [["large", `${count(h.memory.large_objects)} objects`], ["pages", "kept for the next slabs"],
    ["own", "slots, tables, descriptors"]];
  if (byCache)
    for (const c of h.caches)
      groups.push({ name: c.name, parts: Object.entries(partsOf(c)).map(([cause, value]) => ({ name: name[cause], cause, value })) });
  else
    for (const cause of ["live", "cached", "free"])
      groups.push({ name: name[cause], parts: h.caches.map(c => ({ name: c.name, cause, value: partsOf(c)[cause] })) });
  for (const [cause, text] of rest) groups.push({ name: name[cause], parts: [{ name: text, cause, value: sum[cause] }] });
  for (const g of groups) {
    g.parts = g.parts.filter(p => p.value > 0).sort((a, b) => b.value - a.value);
    g.value = g.parts.reduce((s, p) => s + p.value, 0);
  }
  return groups.filter(g => g.value > 0).sort((a, b) => b.value - a.value);
}
function place(e, r) {
  e.style.cssText = `left:${r.x}px;top:${r.y}px;width:${r.w}px;height:${r.h}px`;
  return e;
}
function drawTree(map, about) {
  const groups = treeOf(heap()), all = groups.reduce((sum, g) => sum + g.value, 0);
  const w = map.clientWidth, h = map.clientHeight, head = 18;
  const tell = (g, p) => about.replaceChildren(element("b", {}, `${g.name}: ${p.name}`), element("br"),
    `${bytes(p.value)}, ${percent(p.value, all)} of ${bytes(all)}`);
  map.replaceChildren();
  for (const r of squarify(groups, 0, 0, w, h)) {
    const g = r.item, titled = r.h > 44 && r.w > 60, box = place(element("div", { class: "group" }), r);
    if (titled) box.append(element("span", { class: "head" }, `${g.name} ${bytes(g.value)}`));
    for (const inner of squarify(g.parts, 0, titled ? head : 0, r.w - 2, r.h - 2 - (titled ? head : 0))) {
      const p = inner.item, label = `${g.name}: ${p.name}, ${bytes(p.value)}`, big = inner.w > 44 && inner.h > 18;
      if (inner.w < 1 || inner.h < 1) continue;
      box.append(place(element("div", { class: `tile cause-${p.cause}${big ? " big" : ""}`, title: label, "aria-label": label, role: "img",
        tabindex: big ? "0" : null, on: { mouseenter: () => tell(g, p), focus: () => tell(g, p), click: () => tell(g, p) } },
        big ? p.name : "", big && inner.h > 34 ? element("small", {}, bytes(p.value)) : null), inner));
    }
    map.append(box);
  }
  if (!about.childElementCount && groups.length) tell(groups[0], groups[0].parts[0]);
}
function drawMemory(section) {
  const map = element("div", { class: "map", role: "group", "aria-label": "Memory" }), about = element("div", { class: "about", "aria-live": "polite" });
  section.replaceChildren(...libraries(),
    choice("Order", [[false, "By cause"], [true, "By cache"]], byCache, b => { byCache = b; draw(); }), map, about);
  if (!heap().caches.length) section.append(empty("The heap has no cache that was used."));
  if (looks.length > 1)
    section.append(element("h2", {}, "Since this page was opened"), chart(looks.map(p => p.at),
      [["live", "In use, in slabs"], ["large", "Large objects"], ["cached", "In sheaves"], ["free", "Free in slabs"], ["pages", "Free pages"]]
        .map(([id, name]) => ({ name, values: looks.map(p => p.sum[id]) })), Math.max(300, section.clientWidth - 30)));
  drawTree(map, about);
}
/* Which copy of the library, where there are several. */
function libraries() {
  return data.libraries.length < 2 ? [] : [choice("Copy of the library",
    data.libraries.map((l, i) => [i, l.library.replace(/.*\//, "")]), library, i => { library = i; looks.length = 0; draw(); })];
}

/* ---- heat maps ---- */
function heatCell(text, heat, title) {
  const cell = element("td", { class: "heat" + (heat > .5 ? " hot" : ""), title }, text);
  cell.style.setProperty("--heat", (100 * Math.sqrt(heat)).toFixed(0) + "%");
  return cell;
}
const SHARES = [["none", "0"], ["to_25_percent", "≤25"], ["to_50_percent", "≤50"], ["to_75_percent", "≤75"],
  ["below_100_percent", "<100"], ["all", "100"]];
function drawSlabs(section) {
  const caches = heap().caches.filter(c => c.slabs && c.slabs_by_objects_out).sort((a, b) => b.space_bytes - a.space_bytes);
  const rows = caches.slice(0, rowsMost).map(c => element("tr", {}, element("td", { class: "name" }, c.name),
    ...SHARES.map(([key, name]) => {
      const n = c.slabs_by_objects_out[key], bytesOf = n * c.slab_bytes;
      return heatCell(n ? count(n) : "", n / c.slabs, `${c.name}: ${count(n)} of ${count(c.slabs)} slabs, ${bytes(bytesOf)}`);
    }), element("td", { class: "wide" }, bytes(c.space_bytes)), element("td", { class: "wide" }, c.pinned_bytes ? bytes(c.pinned_bytes) : "")));
  section.replaceChildren(...libraries(), empty("Slabs of each cache by how many of their objects are out, with users or in " +
    "sheaves, in percent. Slabs on the left could be given back soon; what only sheaves keep is pinned."),
    rows.length ? table([{ name: "Cache", class: "name" }, ...SHARES.map(([, name]) => ({ name })),
      { name: "Space", class: "wide" }, { name: "Pinned", class: "wide" }], rows) : empty("There are no slabs."));
  showMore(section, caches.length);
}
function drawSheaves(section) {
  const h = heap(), caches = h.caches.filter(c => c.objects_cached).sort((a, b) => b.objects_cached * b.stride - a.objects_cached * a.stride);
  const slots = [...new Set(caches.flatMap(c => c.slots.map(s => s.slot)))].sort((a, b) => a - b);
  const held = c => [...slots.map(i => (c.slots.find(s => s.slot === i) || { objects: 0 }).objects), c.objects_in_barns, c.objects_in_other_sheaves];
  const columns = [...slots.map(i => `slot ${i}`), "barns", "elsewhere"];
  const all = caches.map(c => held(c).map(n => n * c.stride)), most = Math.max(1, ...all.flat());
  const sums = columns.map((_, k) => all.reduce((sum, row) => sum + row[k], 0));
  const rows = caches.slice(0, rowsMost).map((c, i) => element("tr", {}, element("td", { class: "name" }, c.name),
    ...held(c).map((n, k) => heatCell(n ? count(n) : "", all[i][k] / most, `${c.name}, ${columns[k]}: ${count(n)} objects, ${bytes(all[i][k])}`)),
    element("td", {}, bytes(c.objects_cached * c.stride))));
  if (rows.length) rows.unshift(element("tr", {}, element("td", { class: "name" }, element("b", {}, "Bytes")),
    ...sums.map(n => element("td", {}, n ? bytes(n) : "")), element("td", {}, bytes(sums.reduce((a, b) => a + b, 0)))));
  section.replaceChildren(...libraries(), empty(`Free objects in sheaves: of slots (${h.slot_index === "cpu_id" ? "one for each CPU" :
    h.slot_index === "mm_cid" ? "one for each CPU that the process runs on at once" : "threads share them"}), in barns, and elsewhere. The colour tells bytes.`),
    rows.length ? table([{ name: "Cache", class: "name" }, ...columns.map(name => ({ name })), { name: "Sum" }], rows)
      : empty("No sheaf has an object."));
  showMore(section, caches.length);
}

/* ---- groups and heaps ---- */
function limitBar(name, depth, used, peak, limit, more) {
  const all = Math.max(limit || 0, used, peak, 1), bar = element("div", { class: "bar" }), fill = element("i", {}), mark = element("b", {});
  fill.style.width = 100 * used / all + "%";
  fill.className = limit && used > .9 * limit ? "near" : "";
  mark.style.left = `calc(${100 * peak / all}% - 2px)`;
  mark.title = "peak " + bytes(peak);
  bar.append(fill, mark);
  const row = element("div", { class: "limit" }, element("div", { class: "top" }, element("b", {}, name),
    element("span", {}, limit === null ? `${bytes(used)}, no limit` : `${bytes(used)} of ${bytes(limit)}, ${percent(used, limit)}`)),
    bar, element("small", {}, [`peak ${bytes(peak)}`, ...more].join(" · ")));
  row.style.marginLeft = `${16 * depth}px`;
  return row;
}
function drawGroups(section) {
  const h = heap(), rows = [], seen = new Set();
  const add = (g, depth) => {
    if (seen.has(g.id)) return;                  /* a damaged core may have a ring */
    seen.add(g.id);
    rows.push(limitBar(g.name || "(the process)", depth, g.usage_bytes, g.peak_bytes, g.limit_bytes,
      [`${bytes(g.precharge_bytes)} charged in advance`, g.refusals ? `${count(g.refusals)} refused` : "", g.ending ? "ending" : ""].filter(Boolean)));
    h.groups.filter(child => child.parent === g.id).forEach(child => add(child, depth + 1));
  };
  h.groups.filter(g => !h.groups.some(p => p.id === g.parent)).forEach(g => add(g, 0));
  section.replaceChildren(...libraries(), element("h2", {}, "Groups"), ...(rows.length ? rows : [empty("The program has no groups.")]),
    element("h2", {}, "Heaps"), ...(h.heaps.length ? h.heaps.map(p => limitBar(p.name, 0, p.bytes, p.peak_bytes, p.limit_bytes,
      [`${count(p.objects_live)} objects`, p.refusals ? `${count(p.refusals)} refused` : "", p.ending ? "ending" : ""].filter(Boolean)))
      : [empty("The program has no heaps of its own.")]));
}

/* ---- caches ---- */
const CACHE_COLUMNS = [["Cache", c => c.name, c => c.name], ["Live", c => c.objects_live, c => count(c.objects_live)],
  ["In sheaves", c => c.objects_cached, c => count(c.objects_cached)], ["Size", c => c.object_size, c => bytes(c.object_size)],
  ["Slabs", c => c.slabs, c => count(c.slabs)], ["Space", c => c.space_bytes, c => bytes(c.space_bytes)],
  ["Filled", c => c.space_bytes ? c.objects_live * c.object_size / c.space_bytes : 0, c => percent(c.objects_live * c.object_size, c.space_bytes)],
  ["Sheaf", c => c.sheaf_capacity, c => count(c.sheaf_capacity)], ["Allocations", c => c.counters.alloc_fastpath + c.counters.alloc_slowpath,
    c => count(c.counters.alloc_fastpath + c.counters.alloc_slowpath)]];
const NARROW = new Set([0, 1, 5, 6]);
function drawCaches(section) {
  const by = CACHE_COLUMNS[cacheSort][1];
  const caches = [...heap().caches].sort((a, b) => cacheSort ? by(b) - by(a) : by(a).localeCompare(by(b)));
  const style = i => i ? NARROW.has(i) ? null : "wide" : "name";
  section.replaceChildren(...libraries(), caches.length ? table(CACHE_COLUMNS.map(([name], i) => ({ name, sort: true, class: style(i) })),
    caches.slice(0, rowsMost).map(c => element("tr", {}, ...CACHE_COLUMNS.map(([, , text], i) => element("td", { class: style(i) }, text(c))))),
    cacheSort, i => { cacheSort = i; draw(); }) : empty("The heap has no cache that was used."));
  showMore(section, caches.length);
}

/* ---- tabs ---- */
function heapFacts() {
  return data.libraries.length ? [`${heap().program}, process ${heap().pid}`, `Stook ${heap().version}`,
    `${heap().slots_ready} slots`, `${heap().node_count} node${heap().node_count === 1 ? "" : "s"}`] : [];
}
/* Looks before this one, of a page that is served live. */
const looks = [];
function addHeapTabs() {
  for (const [id, name, draw] of [["memory", "Memory", drawMemory], ["slabs", "Slabs", drawSlabs], ["sheaves", "Sheaves", drawSheaves],
                                  ["groups", "Groups", drawGroups], ["caches", "Caches", drawCaches]])
    TABS.push({ id, name, draw, cards: heapCards });
}
if (data.libraries) addHeapTabs();
