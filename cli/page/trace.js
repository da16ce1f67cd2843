/* A trace that was replayed, as `stook replay --json` tells of it. */
const replay = data.replay && data.replay.replays[0];
const traced = data.replay && data.replay.trace;

function layerBar(layers) {
  const all = layers.slot + layers.barn + layers.slabs, bar = element("div", { class: "layers", role: "img",
    "aria-label": `${percent(layers.slot, all)} by slots, ${percent(layers.barn, all)} by barns, ${percent(layers.slabs, all)} by slabs` });
  for (const key of ["slot", "barn", "slabs"]) {
    const part = element("i", { class: "layer-" + key, title: `${key}: ${count(layers[key])}` });
    part.style.width = all ? 100 * layers[key] / all + "%" : 0;
    bar.append(part);
  }
  return bar;
}
function drawTimeline(section) {
  const lines = [["live_bytes", "Wanted by the program"], ["taken_bytes", "Slabs and large objects"], ["resident_bytes", "Resident"]];
  section.replaceChildren(element("h2", {}, "Memory over the time of the trace"), replay.samples.length
    ? chart(replay.samples.map(s => s.at_ns / 1e9), lines.map(([key, name]) => ({ name, values: replay.samples.map(s => s[key]) })),
            Math.max(300, section.clientWidth - 30)) : empty("The trace is empty."));
  const calls = c => c.counters.alloc_fastpath + c.counters.alloc_slowpath;
  const caches = replay.caches.filter(calls).sort((a, b) => calls(b) - calls(a));
  section.append(element("h2", {}, "Which layer answered"), element("p", { class: "legend" },
    ...["slot", "barn", "slabs"].map(key => element("span", { class: "key layer-key layer-" + key }, { slot: "the slot's sheaves", barn: "the barn", slabs: "slabs" }[key]))),
    table([{ name: "Cache", class: "name" }, { name: "Allocations" }, { name: "Allocated from" }, { name: "Freed to", class: "wide" },
      { name: "Sheaf", class: "wide" }, { name: "Slabs at the end", class: "wide" }],
      caches.slice(0, rowsMost).map(c => element("tr", {}, element("td", { class: "name" }, c.name), element("td", {}, count(calls(c))),
        element("td", {}, layerBar(c.allocated_from)), element("td", { class: "wide" }, layerBar(c.freed_to)),
        element("td", { class: "wide" }, count(c.sheaf_capacity)), element("td", { class: "wide" }, bytes(c.space_bytes))))));
  showMore(section, caches.length);
}
function traceCards() {
  return [card("Allocations and frees", count(traced.events)), card("Peak, wanted", bytes(replay.peak.live_bytes)),
    card("Peak, taken", bytes(replay.peak.taken_bytes)), card("Peak, resident", bytes(replay.peak.resident_bytes)),
    card("Live at the end", count(replay.live_objects), "objects")];
}
function traceFacts() {
  return [`${seconds(traced.nanoseconds / 1e9)}, ${count(traced.cpu_count)} CPUs, ${count(traced.cache_count)} caches`,
    traced.damaged_bytes ? `${bytes(traced.damaged_bytes)} of it are damaged` : "", traced.cut_bytes ? "its end is missing" : "",
    traced.lost_events ? `${count(traced.lost_events)} events were lost` : ""].filter(Boolean);
}
if (replay) TABS.push({ id: "timeline", name: "Timeline", draw: drawTimeline, cards: traceCards });
