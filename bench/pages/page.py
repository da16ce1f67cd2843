"""
bench/pages/page.py - results as one self-contained page of HTML

Purpose: `stook bench --report OUT.html FILE.json`. The page loads nothing and runs no script;
it follows the reader's choice of light or dark, and fits a phone. First what matters: where Stook
wins and loses; then published tables, growth, every row of the run, how it was measured.
Place: after run.py. The rows are evidence.py's; parts of report.py are used as they are.
"""

import html as markup
import re

import evidence
import published
import report
import scale
import suites
import svg
import tables
import workloads
from compare import is_ours
from contenders import OURS
from text import measurement_rows

STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --faint: #6a737d; --rule: #d8dee4;
  --band: #f6f8fa; --good: #1a7f37; --bad: #b42318; --ours: #1a7f37; --p0: #57606a; --p1: #8250df;
  --p2: #bf5700; --p3: #0969da; --p4: #bf3989; --p5: #7d6b00; --p6: #087990; --p7: #a40e26;
  --p8: #12127a; --p9: #6b8e00; }
@media (prefers-color-scheme: dark) { :root { --paper: #0d1117; --ink: #e6edf3; --faint: #8d96a0;
  --rule: #30363d; --band: #161b22; --good: #3fb950; --bad: #ff7b72; --ours: #3fb950; --p0: #9aa4af;
  --p1: #bc8cff; --p2: #f0883e; --p3: #58a6ff; --p4: #f778ba; --p5: #d4b106; --p6: #39c5cf;
  --p7: #ff8f8f; --p8: #8a8aff; --p9: #b5e853; } }
* { box-sizing: border-box; }
body { background: var(--paper); color: var(--ink); margin: 0 auto; max-width: 76rem;
  padding: 1rem clamp(.8rem, 3vw, 2.5rem) 4rem; font: 16px/1.5 system-ui, sans-serif; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 2.8rem; border-bottom: 1px solid var(--rule); }
nav a { margin-right: 1rem; white-space: nowrap; } a { color: var(--p3); }
p.note, .small, figcaption { color: var(--faint); font-size: .875rem; }
.scroll { overflow-x: auto; margin: .8rem 0; } pre { overflow-x: auto; background: var(--band);
  padding: .6rem .8rem; border-radius: 6px; font-size: .85rem; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--rule); white-space: nowrap;
  text-align: right; } th:first-child, td:first-child { text-align: left; position: sticky; left: 0;
  background: var(--paper); } td.long { white-space: normal; min-width: 13rem; }
tr:nth-child(even) td { background: var(--band); }
td.good { color: var(--good); font-weight: 600; } td.bad { color: var(--bad); font-weight: 600; }
.sums { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: 1rem; }
.sums div { background: var(--band); border-radius: 8px; padding: .8rem 1rem; }
.sums b { font-size: 1.6rem; display: block; } .plots { display: grid; gap: 1.5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 28rem), 1fr)); } figure { margin: 0; }
.ratio { display: grid; grid-template-columns: 21rem 1fr 3.5rem; gap: .2rem .8rem;
  align-items: center; font-size: .85rem; padding: .1rem 0; border-bottom: 1px solid var(--rule); }
.ratio b { text-align: right; font-variant-numeric: tabular-nums; font-weight: 600; }
@media (max-width: 44rem) { .ratio { grid-template-columns: 1fr 3.5rem; }
  .ratio > span:first-child { grid-column: 1 / -1; }
  th, td { padding: .25rem .35rem; } td.long { min-width: 10rem; }
  td.none { white-space: normal; max-width: 6rem; }
  td:first-child, th:first-child { white-space: normal; max-width: 9rem;
    overflow-wrap: break-word; } td.long:first-child { min-width: 8.5rem; } }
svg.strip { width: 100%; height: 20px; } svg.plot { width: 100%; height: auto; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
svg text.small { fill: var(--faint); font-size: 11px; }
@media (max-width: 44rem) { svg.plot text, svg.plot text.small { font-size: 17px; } }
svg text.beyond { font: bold 18px system-ui, sans-serif; } .grid { stroke: var(--rule); }
.axis { stroke: var(--faint); } .interval { stroke-width: 2; }
.line { fill: none; stroke-width: 2; }
"""
PEERS = 10                              # colours
CLASSES = {"ours": "--ours", **{f"peer{n}": f"--p{n}" for n in range(PEERS)},
           "good": "--good", "bad": "--bad", "none": "--faint"}
STYLE += "".join(f"circle.{name}, svg text.{name} {{ fill: var({colour}); }} "
                 f"line.{name}, polyline.{name} "
                 f"{{ stroke: var({colour}); }}\n" for name, colour in CLASSES.items())
CODE = re.compile("`([^`]*)`")
GOOD = {"pass", "reached", workloads.AHEAD}
BAD = {"miss", "missed", workloads.BEHIND}
MARK = {workloads.AHEAD: "good", workloads.BEHIND: "bad"}
PUBLISHED = {
    "table11": "Table 1.1: sheaves against the front end before them",
    "table12": "Table 1.2: bulk refill without building a free list",
    "node_counts": "Table 1.3: maple nodes from sheaves",
    "phone": "Beside table 1.3: a page mapped, read, unmapped",
    "mmap2_processes": "Table 1.4: mapping and unmapping, by processes",
    "mmap2": "Table 1.4: the same by threads",
    "page_fault3": "Table 1.5: page faults of threads",
    "page_fault3_processes": "Beside table 1.5: the same by processes",
    "page_fault3_alloc": "Table 1.5: page faults that allocate",
    "contention": "Beside table 1.5: contention counted",
    "slab_turns": "Beside table 1.5: contention at the slab lists, on CPUs in turn",
    "locality": "Table 1.6: what sheaves were said to lose: pages touched, slabs kept",
    "random_order": "Table 1.6: what sheaves were said to lose: memory after frees in random order",
}


def escaped(text):
    return markup.escape(str(text), quote=True)


class Page:
    """HTML, with the calls that report.Page has, too."""

    def __init__(self):
        self.parts, self.sections = [], []

    def add(self, text):
        self.parts.append(text)

    def say(self, text=""):
        self.add("<p>" + CODE.sub(r"<code>\1</code>", escaped(text.strip())) + "</p>")

    def heading(self, level, text):
        name = "".join(c if c.isalnum() else "-" for c in text.lower())
        if level == 2:
            self.sections.append((name, text))
        self.add(f'<h{level} id="{escaped(name)}">{escaped(text)}</h{level}>')

    def table(self, rows, columns):
        rows = verdicts_first([list(row)[:columns] for row in rows])
        self.add('<div class="scroll"><table><thead><tr>' +
                 "".join(f"<th>{escaped(c)}</th>" for c in rows[0]) + "</tr></thead><tbody>")
        for row in rows[1:]:
            self.add("<tr>" + "".join(cell(c) for c in row) + "</tr>")
        self.add("</tbody></table></div>")

    def figure(self, picture, caption):
        if picture:
            self.add(f"<figure><figcaption>{escaped(caption)}</figcaption>{picture}</figure>")


def verdicts_first(rows):
    """Columns of verdicts stand behind the first column: a phone shows no more than three or four.
    One without a name gets that of the limit before it, if there are several."""
    head = rows[0]
    found = [n for n in range(1, len(head)) if any(row[n] in GOOD | BAD for row in rows[1:])]
    names = {n: head[n] or (head[n - 1] if len(found) > 1 else "verdict") for n in found}
    rest = [n for n in range(1, len(head)) if n not in found]
    ordered = [[names.get(n, head[n]) for n in range(len(head))], *rows[1:]]
    return [[row[n] for n in (0, *found, *rest)] for row in ordered]


NEITHER = workloads.LEVEL, workloads.UNCLEAR
LONG = 26                               # letters of a cell that is broken into lines


def cell(text):
    kind = "good" if text in GOOD else "bad" if text in BAD else \
        "none" if text in NEITHER else "long" if len(text) > LONG else ""
    return f'<td class="{kind}">{escaped(text)}</td>' if kind else f"<td>{escaped(text)}</td>"


def plural(n, word):
    return f"{n} {word}" + ("" if n == 1 else "s")


# ---- sections ----

def ratio_rows(found, which):
    """Rows for svg.ratios: losses first, then what is level or unclear, then wins."""
    order = {workloads.BEHIND: 0, workloads.AHEAD: 2}
    sides = sorted(workloads.sides(found, which),
                   key=lambda pair: (order.get(pair[1].says, 1), -pair[1].cost()))
    return [(w.name(), s.cost(), *s.cost_bounds(), MARK.get(s.says, "none")) for w, s in sides]


def write_ratios(page, title, rows):
    if not rows:
        return
    page.heading(3, f"{title}: Stook by the best peer")
    page.add('<div class="ratio"><span class="small">losses first</span>' + svg.scale() +
             "<b></b></div>")
    for name, median, low, high, kind in rows:
        strip = svg.ratio(f"{name}: {median:.2f} ({low:.2f} to {high:.2f})", median, low, high,
                          kind)
        page.add(f'<div class="ratio"><span>{escaped(name)}</span>{strip}<b>{median:.2f}</b></div>')


def write_wins(page, results):
    found = workloads.all_of(results)
    page.heading(2, "Wins and losses")
    if not found:
        page.say("No workload was measured on Stook and a peer.")
        return
    page.add('<div class="sums">')
    for which, name in (("time", "Time"), ("memory", "Memory")):
        counts, mean = workloads.count(found, which)
        if mean is None:
            continue
        page.add(f"<div>{name}, against the best peer of each workload<b>{mean:.2f}</b>"
                 f"geometric mean of {plural(sum(counts.values()), 'ratio')}: ahead in "
                 f"{counts[workloads.AHEAD]}, behind in {counts[workloads.BEHIND]}, level in "
                 f"{counts[workloads.LEVEL]}, unclear in {counts[workloads.UNCLEAR]}</div>")
    page.add("</div>")
    page.say("A ratio is what Stook takes by what the best peer takes, of neighbouring runs, "
             "turned over where more is better: below 1, Stook is ahead. Bars are 95 % intervals. "
             "A difference is told only if there are six pairs of runs or more and the interval "
             "does not contain 1. The best peer is another one in each workload. " +
             workloads.WHAT_A_RATIO_IS)
    for which, name in (("time", "Time"), ("memory", "Memory")):
        write_ratios(page, name, ratio_rows(found, which))


def write_published(page, results):
    page.heading(2, "Published tables")
    page.say("The tables of the kernel work, with ours in their places. A cell is reached if the "
             "worse end of its interval reaches what was published.")
    if rows := published.judge(results["results"]):
        page.say(published.counted(rows) + ".")
        page.table(published.table_rows(rows), len(published.HEAD))
    missing = []
    for name, title in PUBLISHED.items():
        if table := results["results"].get(name):
            page.heading(3, f"{title} ({name})")
            tables.PRINTED[name](table, page.say, page.table)
        else:
            missing.append(f"{title} ({name})")
    if missing:
        page.say("Not measured in this session: " + "; ".join(missing) + ".")


def kinds_of(names):
    """{contender: class}: ours is green, peers have one colour each in all plots of an
    experiment."""
    ordered = sorted(names, key=lambda n: (not is_ours(n) and not n.startswith(OURS), n))
    return {n: "ours" if is_ours(n) or n.startswith(OURS) else f"peer{i % PEERS}"
            for i, n in enumerate(ordered)}


def write_growth(page, results):
    pictures = [*growth_plots(results), *step_plots(results)]
    if not pictures:
        return
    page.heading(2, "Growth")
    page.say("How costs grow: the exponent b of the curve step^b that fits best. 0 is flat, 1 "
             "grows as the step does.")
    page.table(scale.growth_rows(results), 7)
    page.add('<div class="plots">')
    for picture, caption in pictures:
        page.figure(picture, caption)
    page.add("</div>")


def plotted(kind, found, by=1):
    return kind, [(x, s["median"] / by, s["low"] / by, s["high"] / by) for x, s in found]


def growth_plots(results):
    """A plot for each cost, with a line for each contender."""
    for name, of in scale.AXES.items():
        table = results["results"].get(name, {})
        kinds = kinds_of(table)
        for what, metric, unit in of:
            lines = scale.series_of(name, table, metric)
            series = {c: plotted(kinds[c], found) for c, found in lines.items()}
            if series:
                yield svg.lines(f"{name}, {metric}", series, what, unit), f"{name}, {metric}"


def step_plots(results):
    """A plot for each experiment of Stook's alone, with a line for each cost, beside its first."""
    for name, (what, metrics) in scale.STEPS.items():
        table, series = results["results"].get(name, {}), {}
        for n, metric in enumerate(metrics):
            for found in scale.series_of(name, table, metric).values():
                series[metric] = plotted(f"peer{n}", found, found[0][1]["median"])
        if series:
            yield svg.lines(name, series, what, "times that of the first step"), \
                f"{name}: Stook's costs by those of its first step"


def write_workloads(page, results):
    found = workloads.all_of(results)
    page.heading(2, "Every workload")
    if found:
        page.table(workloads.rows(found), len(workloads.HEAD))
    for name, table in results["results"].items():
        if name in PUBLISHED or not table:
            continue
        page.add(f"<details><summary>{escaped(name)}: "
                 f"{escaped(' '.join(doc_of(name).split()))}</summary>")
        if name in tables.PRINTED:
            tables.PRINTED[name](table, page.say, page.table)
        else:
            metrics = sorted({m for answers in table.values() for m in answers})
            rows = [list(row) for row in zip(*measurement_rows(table, metrics))] \
                if len(table) > 1 else measurement_rows(table, metrics)
            page.table(rows, len(rows[0]))
        page.add("</details>")


def doc_of(name):
    return suites.ALL[name].__doc__ if name in suites.ALL else ""


def write_rows(page, title, some):
    if some:
        page.heading(2, title)
        page.table(evidence.rows(some), len(evidence.HEAD))


def write_peers(page, results):
    page.heading(2, "Beside each single peer")
    page.say("Geometric means of the ratios of the rows above.")
    table = evidence.single_peers(results)
    page.table(table, len(table[0]))


def write_how(page, results):
    page.heading(2, "How it was measured")
    for text in report.HOW.split("\n\n"):
        page.say(" ".join(text.split()))
    page.add(f"<pre>{escaped(results.get('command', ''))}</pre>")
    if results["left_out"]:
        page.say("Left out: " + report.left_out(results["left_out"]))


def html(results):
    """The page of one run."""
    page, found = Page(), workloads.all_of(results)
    write_wins(page, results)
    write_rows(page, "Programs", evidence.of(found, "programs"))
    write_rows(page, "Workloads", evidence.chosen(found))
    write_rows(page, "Allocation mixes of a fleet", evidence.of(found, "fleet_mixes"))
    write_peers(page, results)
    write_published(page, results)
    write_growth(page, results)
    write_workloads(page, results)
    write_how(page, results)
    links = "".join(f'<a href="#{escaped(n)}">{escaped(text)}</a> ' for n, text in page.sections)
    intro = "".join(f'<p class="note">{escaped(text)}</p>' for text in report.about(results))
    return ('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>Stook beside other allocators</title><style>{STYLE}</style></head><body>"
            f"<h1>Stook beside other allocators</h1>{intro}<nav>{links}</nav>\n" +
            "\n".join(page.parts) + "\n</body></html>\n")
