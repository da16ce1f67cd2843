"""
bench/pages/patterns_plot.py - a point for each contender in each row

Purpose: the picture of patterns.py. Each row has a point for each contender, at its ratio to the
best peer of the row: processor time on the left, peak memory on the right, both logarithmic. A line
joins Stook's point to the best peer: its length shows how far Stook is before or behind.
Place: called by patterns.py; where matplotlib is not installed there is no picture: that is said.
"""

from contenders import OURS

PANELS = [("ns", "processor time for an operation"), ("peak_KiB", "peak memory")]
MARKS = "osDv^<>Pd*"
OURS_COLOUR = "tab:green"
WIDEST = 20                     # ratios beyond this are drawn at the edge
NARROWEST = 1 / 8


def colour_of(i, name):
    return OURS_COLOUR if name == OURS else f"C{(i + 2) % 10}"


def draw_panel(axis, standings, metric, title, names):
    """One metric of all rows."""
    for y, s in enumerate(standings):
        m = s["metrics"][metric]
        best = m["best"] or 1
        for i, name in enumerate(names):
            value = m["all"].get(name)
            if not value:
                continue
            x = min(max(value / best, NARROWEST), WIDEST)
            if name == OURS:
                axis.plot([1, x], [y, y], color=OURS_COLOUR, linewidth=2, zorder=1)
            size, level = (6, 3) if name == OURS else (3.5, 2)
            axis.plot(x, y, MARKS[i % len(MARKS)], color=colour_of(i, name), markersize=size,
                      zorder=level)
    axis.axvline(1, color="black", linewidth=0.8, zorder=0)
    axis.set_xscale("log")
    axis.set_xlim(NARROWEST * 0.9, WIDEST * 1.1)
    ticks = [0.125, 0.25, 0.5, 1, 2, 4, 8, 16]
    axis.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axis.minorticks_off()
    axis.grid(axis="both", linewidth=0.3)
    how = f"ratio to the best peer; less is better; {WIDEST} and more: at the edge"
    axis.set_title(f"{title}\n({how})", fontsize=10)


def draw(standings, path):
    """Writes a picture; returns why not, or None."""
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        return "matplotlib is not installed"
    if not standings:
        return "nothing to draw"
    names = sorted({c for s in standings for c in s["metrics"]["ns"]["all"]},
                   key=lambda c: (c != OURS, c))
    height = 1.8 + 0.17 * len(standings)
    figure, axes = pyplot.subplots(1, 2, figsize=(13, height), sharey=True)
    for axis, (metric, title) in zip(axes, PANELS):
        draw_panel(axis, standings, metric, title, names)
    axes[0].set_yticks(range(len(standings)), [s["row"] for s in standings], fontsize=7)
    axes[0].set_ylim(len(standings) - 0.4, -0.6)
    figure.tight_layout(rect=(0, 0.4 / height, 1, 1))
    handles = [pyplot.Line2D([], [], linestyle="", marker=MARKS[i % len(MARKS)], label=name,
                             color=colour_of(i, name))
               for i, name in enumerate(names)]
    figure.legend(handles=handles, loc="lower center", ncol=len(names), fontsize=8)
    figure.savefig(path)
    pyplot.close(figure)
    return None
