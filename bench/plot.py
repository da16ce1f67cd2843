"""
bench/plot.py - bars and points of what was measured

Purpose: one picture of the experiments that are easier seen than read: median and 95 % interval for
each contender. Where one thing is bought with another, a point for each contender, one against the
other.
Place: called by run.py; where matplotlib is not installed there is no picture, and that is said.
"""

from contenders import OURS
from interval import summary

PANELS = [
    ("object_pair", "pair", "64-byte pair, linked (ns)"),
    ("malloc_pair", "pair/64", "malloc+free 64 B (ns)"),
    ("malloc_pair", "batch64_mix", "batches of 64, mixed sizes (ns)"),
    ("malloc_pair", "live_64MiB", "replace in 64 MiB alive (ns)"),
    ("table11", "1", "table 1.1, B = 1 (cycles for 10^6 pairs)"),
    ("table11", "1000", "table 1.1, B = 1000"),
    ("table11", "1000 accounted", "table 1.1, B = 1000, accounted"),
    ("table12", "64 plain", "table 1.2, 64 B (ns an object)"),
    ("prodcons", "64 objects_per_us", "producer to consumer (objects/us)"),
    ("parked", "per_thread_KiB", "per parked thread (KiB)"),
    ("spike", "small idle_percent", "left of a spike after 10 s (%)"),
    ("churn", "peak_KiB", "drifting sizes, peak (KiB)"),
]

# Experiment; what goes right and what goes up, and what each is; title.
POINTS = [("phases", f"{cell} pause_MiB", f"{cell} faults", "kept in pauses (MiB)",
           "faults / page used", f"phases of {cell}")
          for cell in ("2 MiB 1 ms", "20 MiB 50 ms", "60 MiB 300 ms", "20 MiB 900 ms")]


def is_ours(name):
    return name == OURS or name.startswith(("inline", "cache", "sheaves", "after"))


def draw_points(axis, table, right, up, labels, title):
    found = [(name, x["median"], y["median"]) for name in table
             if (x := summary(table[name].get(right, []))) and
             (y := summary(table[name].get(up, [])))]
    for name, x, y in found:
        axis.plot(x, y, "o", color="tab:green" if is_ours(name) else "tab:gray")
        axis.annotate(name, (x, y), fontsize=6, rotation=30, xytext=(2, 3),
                      textcoords="offset points")
    axis.set_xlim(0, 1.4 * max([x for _, x, _ in found], default=1))
    axis.set_ylim(-0.02, max(0.2, 1.3 * max([y for _, _, y in found], default=0)))
    axis.set_xlabel(labels[0], fontsize=7)
    axis.set_ylabel(labels[1], fontsize=7)
    axis.set_title(title, fontsize=9)
    axis.tick_params(labelsize=7)


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
    rows = -(-count // columns)
    figure, axes = pyplot.subplots(rows, columns, figsize=(4.2 * columns, 3.4 * rows),
                                   squeeze=False)
    for axis in axes.flat[count:]:
        axis.set_visible(False)
    for axis, (experiment, right, up, *labels, title) in zip(axes.flat[len(panels):], points):
        draw_points(axis, results[experiment], right, up, labels, title)
    for axis, (experiment, metric, title) in zip(axes.flat, panels):
        table = results[experiment]
        bars = [(name, s) for name in table if (s := summary(table[name].get(metric, [])))]
        bars.sort(key=lambda bar: bar[1]["median"])
        names = [name for name, _ in bars]
        middle = [s["median"] for _, s in bars]
        spread = [[s["median"] - s["low"] for _, s in bars],
                  [s["high"] - s["median"] for _, s in bars]]
        ours = [is_ours(name) for name in names]
        axis.barh(names, middle, xerr=spread,
                  color=["tab:green" if o else "tab:gray" for o in ours])
        axis.set_title(title, fontsize=9)
        axis.tick_params(labelsize=7)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
    return None
