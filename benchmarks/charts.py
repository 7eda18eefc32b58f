"""Charts by matplotlib, as SVG: bars of ratios by workload, and curves of rates."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.patches import Patch  # noqa: E402
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator  # noqa: E402
from runs import Times  # noqa: E402
from tables import times  # noqa: E402

Lines = dict[str, list[tuple[float, Times]]]  # by name, points (x, GB/s)
CAP = 100  # longer bars end here, broken, and their numbers tell
AHEAD, BEHIND, EVEN = "#2f81d6", "#d1620a", "#a3adb8"
LEGEND = {AHEAD: "tilecore is faster", BEHIND: "tilecore is slower", EVEN: "the quartiles overlap"}
STYLE = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "tilecore",  # the same data give the same file
    "font.size": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#8c959f",
    "axes.axisbelow": True,
    "grid.color": "#d9dee3",
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.wspace": 0.03,
}


def save(figure, file: Path, title: str, notes: Sequence[str]) -> None:
    """With the title, and with notes below it: the machine, and a warning that it was loaded."""
    figure.suptitle("\n".join([title, *notes]), x=0.01, ha="left", fontsize=9.5, linespacing=1.5)
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


def draw_ratios(file: Path, title: str, notes, rows: Sequence[str], columns: dict[str, Sequence[Times | None]]) -> None:
    """A panel for each peer, a bar for each workload: its time relative to tilecore's."""
    least = min([0.8, *(bar.mid / 1.3 for bars in columns.values() for bar in bars if bar)])
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(1, len(columns), sharey=True, squeeze=False, figsize=(11, 1.7 + 0.42 * len(rows)))
        for panel, (name, bars) in zip(panels[0], columns.items(), strict=True):
            panel.set(title=name, xscale="log", xlim=(least, 6 * CAP), ylim=(len(rows) - 0.5, -0.5))
            panel.set_xticks([1, 10, CAP], ["1×\nequal", "10×", f"{CAP}×"])
            panel.xaxis.set_minor_locator(NullLocator())
            panel.set_yticks(range(len(rows)), rows, linespacing=1.25)
            panel.tick_params(axis="y", length=0)
            panel.grid(axis="x")
            panel.axvline(1, color="#1f2328", linewidth=1)
            for y, bar in enumerate(bars):
                if bar is None:
                    continue
                end = min(bar.mid, CAP)
                colour = AHEAD if bar.low > 1 else BEHIND if bar.high < 1 else EVEN
                panel.barh(y, end - 1, left=1, height=0.5, color=colour)
                if bar.mid > CAP:
                    panel.text(CAP / 2, y, "//", color="white", weight="bold", va="center")
                panel.text(1.15 * max(1, end), y, times(bar.mid), va="center")
        handles = [Patch(color=colour, label=text) for colour, text in LEGEND.items()]
        what = f"time relative to tilecore; higher: tilecore is faster; broken: over {CAP}×"
        place = {"loc": "outside lower left", "alignment": "left"}
        figure.legend(handles=handles, ncols=3, title=what, frameon=False, **place)
        save(figure, file, title, notes)


def draw_rates(file: Path, title: str, notes, ticks: dict[float, str], lines: Lines) -> None:
    """Curves of GB/s over logarithmic axes, shaded between the quartiles.

    "X, fresh" has the colour of "X", and is dashed; bounds are dotted.
    """
    marks = [float(f"{m}e{e}") for e in range(-3, 6) for m in (1, 2, 5)]
    bases = list(dict.fromkeys(name.partition(", fresh")[0] for name in lines))
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(11, 4.6))
        for name, points in lines.items():
            base, fresh, _ = name.partition(", fresh")
            bound = name.startswith("memset")
            colour, style = f"C{bases.index(base)}", ":" if bound else "--" if fresh else "-"
            xs, rates = zip(*sorted(points), strict=True)
            lows, mids, highs = zip(*rates, strict=True)
            axes.plot(xs, mids, style, color=colour, marker=".", label=name)
            axes.fill_between(xs, lows, highs, color=colour, alpha=0.12, linewidth=0)
        axes.set(xscale="log", yscale="log", ylabel="GB/s", xlabel=title.partition(", by ")[2])
        axes.set_xticks(list(ticks), list(ticks.values()))
        axes.yaxis.set_major_locator(FixedLocator(marks))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_minor_locator(NullLocator())
        axes.grid()
        figure.legend(loc="outside right upper", frameon=False)
        save(figure, file, title, notes)
