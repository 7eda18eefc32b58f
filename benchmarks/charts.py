"""Charts in SVG, for light and for dark grounds.

`ratios` draws a table of bars, `lines` curves over logarithmic axes. Both return the text of a
complete SVG file, WIDTH wide. Colours are classes of one style sheet, which follows the reader's
colour scheme; each file brings its own ground, so that it can be read wherever it is shown.
"""

from collections.abc import Sequence
from html import escape
from math import floor, log10
from typing import NamedTuple

WIDTH = 830  # of the text of a README
MARGIN = 20
TITLE_HEIGHT = 62
MOST_MARKS = 12  # on an axis; where there were more, the powers of ten are left
LONGEST = 100  # times as long: longer bars end here, and their numbers tell

# class: (on a light ground, on a dark ground)
COLOURS = {
    "ground": ("#ffffff", "#0d1117"),
    "ink": ("#1f2328", "#f0f6fc"),
    "quiet": ("#59636e", "#9198a1"),
    "grid": ("#d9dee3", "#30363d"),
    "ahead": ("#2f81d6", "#4493f8"),
    "behind": ("#d1620a", "#f0883e"),
    "even": ("#a3adb8", "#6e7681"),
    "line0": ("#0a62c4", "#58a6ff"),
    "line1": ("#1a7f37", "#3fb950"),
    "line2": ("#b35900", "#f0a04b"),
    "line3": ("#8250df", "#bc8cff"),
    "line4": ("#c2255c", "#ff7b9c"),
    "bound0": ("#59636e", "#9198a1"),
    "bound1": ("#8c959f", "#6e7681"),
}
LINE_COLOURS = [name for name in COLOURS if name.startswith("line")]
BOUND_COLOURS = [name for name in COLOURS if name.startswith("bound")]


class Bar(NamedTuple):
    """How many times as long the other takes: the median, and what the quartiles leave open."""

    low: float
    mid: float
    high: float


class Row(NamedTuple):
    """A workload: its name and shape, tilecore's time and the result's size, the others' bars."""

    name: str
    about: str
    time: str
    size: str
    bars: Sequence[Bar | None]


class Line(NamedTuple):
    """Points (x, low, mid, high) in order of x; a bound is drawn dashed."""

    name: str
    points: Sequence[tuple[float, float, float, float]]
    bound: bool = False


class _Drawing:
    """The elements of one picture; the origin is its upper left corner."""

    def __init__(self, title: str, subtitle: str, height: float):
        self.title, self.subtitle, self.height = title, subtitle, round(height)
        self.elements: list[str] = []
        self.text(MARGIN, 30, title, "ink title")
        self.text(MARGIN, 50, subtitle, "quiet")

    def text(self, x: float, y: float, text: str, style: str = "ink", anchor: str = "start"):
        self.elements.append(
            f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}">'
            f"{escape(text)}</text>"
        )

    def rule(self, x1: float, y1: float, x2: float, y2: float, style: str = "grid"):
        self.elements.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style} rule"/>'
        )

    def bar(self, x: float, y: float, width: float, height: float, style: str):
        self.elements.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2"'
            f' class="{style}"/>'
        )

    def path(self, points: Sequence[tuple[float, float]], style: str, *, closed: bool = False):
        way = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self.elements.append(f'<path d="M{way}{"Z" if closed else ""}" class="{style}"/>')

    def dot(self, x: float, y: float, style: str):
        self.elements.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" class="{style}"/>')

    def svg(self) -> str:
        def colours(which: int) -> str:
            return "".join(f".{name}{{color:{pair[which]}}}" for name, pair in COLOURS.items())

        style = (
            "text{font:12px -apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:currentColor}"
            ".title{font-size:17px;font-weight:600}.name{font-weight:600}"
            "rect,circle{fill:currentColor}.rule{stroke:currentColor}"
            ".line{fill:none;stroke:currentColor;stroke-width:2.2;stroke-linejoin:round}"
            ".dashed{stroke-dasharray:5 4;stroke-width:1.6}.spread{fill:currentColor;opacity:.16}"
            f"{colours(0)}@media(prefers-color-scheme:dark){{{colours(1)}}}"
        )
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{self.height}"'
                f' viewBox="0 0 {WIDTH} {self.height}" role="img">',
                f"<title>{escape(self.title)}</title><desc>{escape(self.subtitle)}</desc>",
                f"<style>{style}</style>",
                f'<rect width="{WIDTH}" height="{self.height}" rx="8" class="ground"/>',
                *self.elements,
                "</svg>\n",
            ]
        )


def times(ratio: float) -> str:
    """A ratio as it is read: two digits, and no more than the eye needs."""
    return f"{ratio:.{max(0, 1 - floor(log10(ratio)))}f}×" if ratio < 9.95 else f"{ratio:,.0f}×"


def ratios(title: str, subtitle: str, columns: Sequence[str], rows: Sequence[Row]) -> str:
    """A row for each workload, a column for each rival: bars from 1 on, to a logarithmic scale."""
    row_height, bar_height, left, value_width, label = 34, 11, MARGIN, 258, 40
    drawing = _Drawing(title, subtitle, TITLE_HEIGHT + 26 + row_height * len(rows) + 12)
    start = left + value_width
    pitch = (WIDTH - MARGIN - start) / max(1, len(columns))
    every = [bar.mid for row in rows for bar in row.bars if bar]
    least, most = min([1.0, *every]), min(LONGEST, max([2.0, *every]))
    # Room left of 1 for what is behind, right of the longest bar for its number.
    per_decade = (pitch - label - 12) / log10(most / least)
    top = TITLE_HEIGHT + 26

    def at(column: int, ratio: float) -> float:
        return start + 12 + column * pitch + per_decade * log10(ratio / least)

    drawing.text(left + value_width - 10, top - 12, "tilecore", "quiet", "end")
    for column, name in enumerate(columns):
        drawing.text(at(column, 1), top - 12, name, "ink name")
        drawing.rule(at(column, 1), top - 4, at(column, 1), top + row_height * len(rows))
    for number, row in enumerate(rows):
        y = top + row_height * number
        drawing.text(left, y + 14, row.name, "ink name")
        drawing.text(left, y + 28, row.about, "quiet")
        drawing.text(left + value_width - 10, y + 14, row.time, "ink", "end")
        drawing.text(left + value_width - 10, y + 28, row.size, "quiet", "end")
        for column, bar in enumerate(row.bars):
            if bar is None:
                continue
            one, end = at(column, 1), at(column, min(bar.mid, most))
            style = "ahead" if bar.low > 1 else "behind" if bar.high < 1 else "even"
            drawing.bar(min(one, end), y + 5, max(1, abs(end - one)), bar_height, style)
            drawing.text(max(one, end) + 5, y + 15, times(bar.mid))
    return drawing.svg()


def lines(
    title: str,
    subtitle: str,
    x_title: str,
    curves: Sequence[Line],
    ticks: dict[float, str],
    height: float = 400,
) -> str:
    """Rates in GB/s over logarithmic axes, each line with its name at its end."""
    drawing = _Drawing(title, subtitle, height)
    left, right = MARGIN + 30, WIDTH - 170
    top, bottom = TITLE_HEIGHT + 22, height - 48
    xs = [x for curve in curves for x, *_ in curve.points]
    ys = [y for curve in curves for _, low, _, high in curve.points for y in (low, high)]
    x_least, x_most = log10(min(xs)), max(log10(max(xs)), log10(min(xs)) + 1e-9)
    marks = [float(f"{m}e{e}") for e in range(-3, 7) for m in (1, 2, 5)]
    y_least = max((mark for mark in marks if mark <= min(ys)), default=marks[0])
    y_most = min((mark for mark in marks if mark >= max(ys)), default=marks[-1])

    def at(x: float, y: float) -> tuple[float, float]:
        across = (log10(x) - x_least) / (x_most - x_least)
        up = log10(y / y_least) / log10(y_most / y_least)
        return left + across * (right - left), bottom - up * (bottom - top)

    drawing.text(MARGIN, top - 12, "GB/s", "quiet")
    shown = [mark for mark in marks if y_least <= mark <= y_most]
    if len(shown) > MOST_MARKS:
        shown = [mark for mark in shown if log10(mark) % 1 == 0]
    for mark in shown:
        _, y = at(10**x_least, mark)
        drawing.rule(left, y, right, y)
        drawing.text(left - 8, y + 4, f"{mark:,g}", "quiet", "end")
    for x, name in ticks.items():
        drawing.text(at(x, y_least)[0], bottom + 20, name, "quiet", "middle")
    drawing.text((left + right) / 2, bottom + 40, x_title, "quiet", "middle")

    names = []
    colours = {True: iter(BOUND_COLOURS * 9), False: iter(LINE_COLOURS * 9)}
    for curve in sorted(curves, key=lambda curve: not curve.bound):  # the bounds lie below
        colour = next(colours[curve.bound])
        middle = [at(x, mid) for x, _, mid, _ in curve.points]
        lower = [at(x, low) for x, low, *_ in curve.points]
        upper = [at(x, high) for x, *_, high in curve.points]
        if not curve.bound:
            drawing.path(lower + upper[::-1], f"{colour} spread", closed=True)
        drawing.path(middle, f"{colour} line{' dashed' * curve.bound}")
        for x, y in middle:
            drawing.dot(x, y, colour)
        names.append((middle[-1][1], curve.name, colour))
    for y, name, colour in spread_out(names, 16, bottom):
        drawing.text(right + 10, y + 4, name, f"{colour} name")
    return drawing.svg()


def spread_out(
    names: list[tuple[float, str, str]], pitch: float, bottom: float
) -> list[tuple[float, str, str]]:
    """Names at their heights, moved as little as keeps them a line apart and above the bottom."""
    groups: list[list[tuple[float, str, str]]] = []

    def span(group) -> tuple[float, float]:
        half = pitch * (len(group) - 1) / 2
        middle = min(sum(y for y, *_ in group) / len(group), bottom - half)
        return middle - half, middle + half

    for name in sorted(names):
        groups.append([name])
        while len(groups) > 1 and span(groups[-2])[1] + pitch > span(groups[-1])[0]:
            groups[-2:] = [groups[-2] + groups[-1]]
    return [
        (span(group)[0] + pitch * number, name, colour)
        for group in groups
        for number, (_, name, colour) in enumerate(group)
    ]
