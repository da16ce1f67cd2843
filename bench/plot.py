"""
bench/plot.py - bars of what was measured

Purpose: one picture of the experiments that are easier seen than read: median and 95 % interval for each contender.
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


def draw(results, path):
    """Writes a picture; returns why not, or None."""
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        return "matplotlib is not installed"
    panels = [p for p in PANELS if any(p[1] in metrics for metrics in results.get(p[0], {}).values())]
    if not panels:
        return "nothing to draw"
    columns = min(4, len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = pyplot.subplots(rows, columns, figsize=(4.2 * columns, 3.4 * rows), squeeze=False)
    for axis in axes.flat[len(panels):]:
        axis.set_visible(False)
    for axis, (experiment, metric, title) in zip(axes.flat, panels):
        table = results[experiment]
        bars = [(name, s) for name in table if (s := summary(table[name].get(metric, [])))]
        bars.sort(key=lambda bar: bar[1]["median"])
        names = [name for name, _ in bars]
        middle = [s["median"] for _, s in bars]
        spread = [[s["median"] - s["low"] for _, s in bars], [s["high"] - s["median"] for _, s in bars]]
        ours = [name == OURS or name.startswith(("inline", "cache", "sheaves", "after")) for name in names]
        axis.barh(names, middle, xerr=spread, color=["tab:green" if o else "tab:gray" for o in ours])
        axis.set_title(title, fontsize=9)
        axis.tick_params(labelsize=7)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
    return None
