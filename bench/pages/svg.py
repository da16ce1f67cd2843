"""
bench/pages/svg.py - plots as SVG

Purpose: two plots for the page of results: a ratio with its interval, a strip for each workload;
and lines over a step (threads, caches, slots), both axes logarithmic where that is asked.
Place: page.py puts them into HTML. Colours are classes (`ours`, `peer0` ...): the page's style
sheet has them for light and for dark.
"""

import html
import math


def escaped(text):
    return html.escape(str(text), quote=True)


def picture(width, height, title, parts):
    return (f'<svg class="plot" viewBox="0 0 {width} {height}" role="img" '
            f'aria-label="{escaped(title)}" style="max-width:{width}px">'
            f"<title>{escaped(title)}</title>" + "".join(parts) +
            "</svg>")


def text(x, y, words, anchor="start", kind=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">'
            f'{escaped(words)}</text>')


def line(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def short(value):
    if value >= 1e6:
        return f"{value / 1e6:.3g}M"
    if value >= 1e4:
        return f"{value / 1e3:.3g}k"
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


LEAST, MOST = 0.25, 4.0
TICKS = (0.25, 0.5, 1, 2, 4)


def share(value):
    """Where a ratio is in a strip: a share of its width, so that a strip fits any screen. What lies
    beyond an end is drawn at it. The numbers of the ends have room on a phone, too."""
    inside = min(max(value, LEAST), MOST)
    return f"{6 + 88 * math.log(inside / LEAST) / math.log(MOST / LEAST):.2f}%"


def scale():
    """The strip of numbers above those of ratio()."""
    return ('<svg class="strip" height="20">' + "".join(
        f'<text x="{share(tick)}" y="14" text-anchor="middle" class="small">{tick:g}</text>'
        for tick in TICKS) + "</svg>")


def ratio(title, median, low, high, kind):
    """A strip for one ratio with its interval, on a logarithmic axis."""
    ticks = "".join(f'<line x1="{share(tick)}" y1="0" x2="{share(tick)}" y2="20" '
                    f'class="{"axis" if tick == 1 else "grid"}"/>' for tick in TICKS)
    return (f'<svg class="strip" role="img" aria-label="{escaped(title)}" height="20">'
            f"<title>{escaped(title)}</title>{ticks}"
            f'<line x1="{share(low)}" y1="10" x2="{share(high)}" y2="10" class="interval {kind}"/>'
            f"{mark(median, kind)}</svg>")


def mark(median, kind):
    """A dot; an arrow at the end beyond which the ratio lies."""
    if LEAST <= median <= MOST:
        return f'<circle cx="{share(median)}" cy="10" r="4.5" class="{kind}"/>'
    x, words = (98, "»") if median > MOST else (2, "«")
    return f'<text x="{x}%" y="15" text-anchor="middle" class="beyond {kind}">{words}</text>'


class Axis:
    """Places of values between two ends, on a logarithmic or an even scale."""

    def __init__(self, values, first, last, logarithmic):
        self.logarithmic = logarithmic and min(values) > 0
        self.low, self.high = min(values), max(values)
        if not self.logarithmic:
            self.low = min(self.low, 0)
        if self.low == self.high:
            self.high = self.low * 2 or 1
        self.first, self.last = first, last

    def place(self, value):
        if self.logarithmic:
            part = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.first + (self.last - self.first) * part

    def ticks(self):
        if not self.logarithmic:
            step = 10 ** math.floor(math.log10(self.high - self.low))
            if (self.high - self.low) / step < 3:
                step /= 2
            first = math.ceil(self.low / step)
            return [n * step for n in range(first, int(self.high / step) + 1)]
        found = [10.0 ** n for n in range(math.floor(math.log10(self.low)),
                                          math.ceil(math.log10(self.high)) + 1)]
        inside = [t for t in found if self.low <= t <= self.high]
        return inside if len(inside) > 1 else [self.low, self.high]


def lines(title, series, x_name, y_name, logarithmic=True, x_ticks=None):
    """A plot of {name: (class, [(x, median, low, high)])}; x_ticks: {x: text}, or the steps."""
    points = [p for _, found in series.values() for p in found]
    if not points:
        return ""
    width, top, bottom, left = 520, 30, 250, 70
    x = Axis([p[0] for p in points], left, width - 28, logarithmic)
    y = Axis([v for p in points for v in p[1:]], bottom, top, logarithmic)
    parts = [text(left, 16, y_name, "start", "small"),
             text(width - 28, bottom + 36, x_name, "end", "small"),
             line(left, bottom, width - 28, bottom, "axis"), line(left, top, left, bottom, "axis")]
    for tick in y.ticks():
        parts += [line(left, y.place(tick), width - 28, y.place(tick), "grid"),
                  text(left - 6, y.place(tick) + 4, short(tick), "end", "small")]
    for value in x_ticks or sorted({p[0] for p in points}):
        name = x_ticks[value] if x_ticks else short(value)
        anchor = "end" if x_ticks and value == x.high else "middle"
        parts.append(text(x.place(value), bottom + 18, name, anchor, "small"))
    columns = 3 if max(map(len, series)) < 16 else 1
    for n, (name, (kind, found)) in enumerate(series.items()):
        way = " ".join(f"{x.place(p[0]):.1f},{y.place(p[1]):.1f}" for p in found)
        parts.append(f'<polyline points="{way}" class="line {kind}"><title>{escaped(name)}</title>'
                     "</polyline>")
        for p in found:
            at = x.place(p[0])
            parts += [line(at, y.place(p[2]), at, y.place(p[3]), f"interval {kind}"),
                      f'<circle cx="{at:.1f}" cy="{y.place(p[1]):.1f}" r="3" class="{kind}">'
                      f"<title>{escaped(name)}: {p[1]:.4g}</title></circle>"]
        row, column = divmod(n, columns)
        parts += [f'<circle cx="{left + 150 * column}" cy="{bottom + 54 + 18 * row}" r="5" '
                  f'class="{kind}"/>',
                  text(left + 150 * column + 10, bottom + 58 + 18 * row, name, "start", "small")]
    return picture(width, bottom + 62 + 18 * -(-len(series) // columns), title, parts)
