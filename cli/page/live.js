/*
 * What stands below the title; and a page that is served live: it asks for the heap again and again.
 * The token stands behind the # of its address, so that the browser sends it nowhere by itself.
 */
function drawFacts(more) {
  $("facts").textContent = [...(data.libraries ? heapFacts() : []), ...(replay ? traceFacts() : []),
    ...(profile ? profileFacts() : []), ...(more ? [more] : [])].join(" · ");
}
async function look() {
  let answer;
  try {
    answer = await fetch("heap", { headers: { Authorization: "Bearer " + location.hash.slice(1) } });
  } catch {
    return drawFacts("stook top has ended");
  }
  if (answer.status !== 200)
    return drawFacts(answer.status === 401 ? "the token behind # is missing or wrong: stook top said the address" : await answer.text());
  const first = !data.libraries;
  data.libraries = (await answer.json()).libraries;
  library = Math.min(library, data.libraries.length - 1);
  looks.push({ at: performance.now() / 1e3, sum: totals(heap()) });
  if (looks.length > 600) looks.shift();
  if (first) {
    addHeapTabs();
    openTabs();
  } else {
    draw();
  }
  drawFacts();
  setTimeout(look, 1000 * data.live);
}
