"""
bench/pages/plot.py - bars and points of what was measured

Purpose: one picture of the experiments that are easier seen than read: median and 95 % interval for
each contender. Where one thing is bought with another, a point for each contender, one against the
other.
Place: called by run.py; where matplotlib is not installed there is no picture, and that is said.
"""

from contenders import OURS
from interval import summary

MORE = "more is better: "
# Experiment; metric; title; what the axis says; by what the metric is multiplied for that.
PANELS = [
    ("object_pair", "pair", "64-byte pair, linked", "ns", 1),
    ("malloc_pair", "pair/64", "malloc and free of 64 bytes", "ns a pair", 1),
    ("malloc_pair", "batch64_mix", "batches of 64, mixed sizes", "ns a pair", 1),
    ("malloc_pair", "live_64MiB", "replaced in 64 MiB alive", "ns a pair", 1),
    ("table11", "1", "table 1.1, B = 1", "cycles a pair", 1e-6),
    ("table11", "1000", "table 1.1, B = 1000", "cycles a pair", 1e-6),
    ("table11", "1000 accounted", "table 1.1, B = 1000, accounted", "cycles a pair", 1e-6),
    ("table12", "64 plain", "table 1.2, 64 bytes", "ns an object", 1),
    ("prodcons", "64 objects_per_us", "producer to consumer", MORE + "objects a microsecond", 1),
    ("parked", "per_thread_KiB", "for each parked thread", "KiB", 1),
    ("spike", "small idle_percent", "left of a spike after 10 s", "percent", 1),
    ("churn", "peak_KiB", "drifting sizes, peak", "MiB", 1 / 1024),
]

# Experiment; what goes right and what goes up, and what each is; title.
POINTS = [("phases", f"{cell} pause_MiB", f"{cell} faults", "kept in pauses (MiB)",
           "faults / page used", f"phases of {cell}")
          for cell in ("2 MiB 1 ms", "20 MiB 50 ms", "60 MiB 300 ms", "20 MiB 900 ms")]


OURS_COLOUR, OTHERS_COLOUR = "tab:green", "silver"
MARKS = "osDv^<>Pdp"


def is_ours(name):
    return name == OURS or name.startswith(("inline", "cache", "sheaves", "after"))


def draw_points(axis, table, right, up, labels, title):
    """The names stand in a legend: many points are too near to each other for names beside them."""
    found = [(name, x["median"], y["median"]) for name in table
             if (x := summary(table[name].get(right, []))) and
             (y := summary(table[name].get(up, [])))]
    others = 0
    for name, x, y in sorted(found, key=lambda point: (not is_ours(point[0]), point[0])):
        if is_ours(name):
            axis.plot(x, y, "*", color=OURS_COLOUR, markersize=11, zorder=3, label=name)
            continue
        axis.plot(x, y, MARKS[others % len(MARKS)], color=f"C{(others + 3) % 10}", markersize=6,
                  alpha=0.8, label=name)
        others += 1
    axis.set_xlim(0, 1.1 * max([x for _, x, _ in found], default=1))
    axis.set_ylim(-0.02, max(0.2, 1.1 * max([y for _, _, y in found], default=0)))
    axis.set_xlabel(labels[0], fontsize=8)
    axis.set_ylabel(labels[1], fontsize=8)
    axis.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    axis.set_title(title, fontsize=10)
    axis.tick_params(labelsize=8)


def draw_bars(axis, table, metric, title, unit, by):
    """The best is at the top."""
    bars = [(name, s) for name in table if (s := summary(table[name].get(metric, [])))]
    bars.sort(key=lambda bar: bar[1]["median"], reverse=not unit.startswith(MORE))
    spread = [[by * (s["median"] - s["low"]) for _, s in bars],
              [by * (s["high"] - s["median"]) for _, s in bars]]
    axis.barh([name for name, _ in bars], [by * s["median"] for _, s in bars], xerr=spread,
              color=[OURS_COLOUR if is_ours(name) else OTHERS_COLOUR for name, _ in bars])
    axis.set_xlim(left=0)
    axis.set_xlabel(unit, fontsize=8)
    axis.set_title(title, fontsize=10)
    axis.tick_params(labelsize=8)


def row_heights(bars, count, columns):
    """In inches: each bar of a row's fullest panel has its own height. @bars: of each panel."""
    return [max([3.2] + [0.9 + 0.17 * n for n in bars[first:first + columns]])
            for first in range(0, count, columns)]


def draw(results, path):
    """Writes a picture; returns why not, or None."""
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        return "matplotlib is not installed"
    panels = [p for p in PANELS
              if any(p[1] in metrics for metrics in results.get(p[0], {}).values())]
    points = [p for p in POINTS
              if any(p[1] in metrics for metrics in results.get(p[0], {}).values())]
    if not panels and not points:
        return "nothing to draw"
    count = len(panels) + len(points)
    columns = min(4, count)
    bars = [sum(p[1] in metrics for metrics in results[p[0]].values()) for p in panels]
    heights = row_heights(bars, count, columns)
    figure, axes = pyplot.subplots(len(heights), columns, figsize=(4.4 * columns, sum(heights)),
                                   squeeze=False, gridspec_kw={"height_ratios": heights})
    for axis in axes.flat[count:]:
        axis.set_visible(False)
    for axis, (experiment, right, up, *labels, title) in zip(axes.flat[len(panels):], points):
        draw_points(axis, results[experiment], right, up, labels, title)
    for axis, (experiment, *of_bars) in zip(axes.flat, panels):
        draw_bars(axis, results[experiment], *of_bars)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
    return None
