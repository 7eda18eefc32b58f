"""Charts by matplotlib, as SVG: ratios by workload, and shares of the limit by size. They can be read on a phone."""

import textwrap
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from machine import head, warn
from matplotlib import pyplot as plt
from matplotlib.ticker import NullLocator
from runs import Key, Run, Times
from tables import seconds, size

WIDTH = 4.5  # inches: 430 pixels, on a phone some 350
LINE = 120  # letters times their points, in an inch of the notes
PEER_WIDTH = 6  # inches: 576 pixels, of which a phone shows three fifths
STYLES = [("#0072b2", "o"), ("#d55e00", "s"), ("#009e73", "^"), ("#a0509b", "D"), ("#8c6d00", "v"), ("#59636e", "P")]
INK, QUIET, WARNING = "#1f2328", "#59636e", "#b42318"
# On a dark page, the picture is inverted, but keeps its hues.
DARK = "@media (prefers-color-scheme: dark) {svg{filter: invert(0.9) hue-rotate(180deg)}}"
STYLE = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "tilecore",  # the same data give the same file
    "font.size": 9, "text.color": INK, "xtick.color": INK, "ytick.color": INK, "figure.constrained_layout.use": True,
    "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": "#8c959f", "axes.axisbelow": True,
    "grid.color": "#d9dee3",
}  # fmt: skip


def save(figure, file: Path, title: str, machine: dict[str, str]) -> None:
    """With a title, and below it the release and the host, and a warning if other processes were busy."""
    width, height = figure.get_size_inches()
    small = round(8 * width / WIDTH)  # a phone shows all pictures in one width
    parts = [(title, INK, small + 2), (head(machine), QUIET, small), (warn(machine), WARNING, small)]
    parts = [(textwrap.wrap(text, LINE * width // points), colour, points) for text, colour, points in parts if text]
    heights = [1.5 * points / 72 * len(lines) for lines, _, points in parts]
    figure.set_size_inches(width, height + sum(heights))
    top = 1 - 0.05 / (height + sum(heights))
    figure.get_layout_engine().set(rect=(0, 0, 1, height / (height + sum(heights))))
    for (lines, colour, points), inches in zip(parts, heights, strict=True):
        figure.text(0.01, top, "\n".join(lines), color=colour, fontsize=points, va="top", linespacing=1.3)
        top -= inches / (height + sum(heights))
    figure.savefig(file, metadata={"Date": None}, transparent=True)
    plt.close(figure)
    file.write_text(file.read_text(encoding="utf-8").replace("</style>", DARK + "</style>", 1), encoding="utf-8")


def draw_peers(run: Run, file: Path) -> None:
    """A row for each workload, in it a mark for each peer: its time relative to tilecore's."""
    marks: dict[str, list[tuple[Key, Times]]] = {}
    for key, peer, ratio in run.ratios(run.calls("warm")):
        marks.setdefault(peer, []).append((key, ratio))
    rows = list(dict.fromkeys(key for found in marks.values() for key, _ in found))
    names = [f"{key.workload}\n{size(run.nbytes[key.group])} in {seconds(run.times(key).mid)}" for key in rows]
    lows, _, highs = zip(*(ratio for found in marks.values() for _, ratio in found), strict=True)
    with plt.rc_context(STYLE | {"font.size": 11}):
        figure, axes = plt.subplots(figsize=(PEER_WIDTH, 1 + 0.5 * len(rows)))
        axes.set(xscale="log", xlim=(min(0.7, *lows) / 1.2, 1.3 * max(10, *highs)), ylim=(len(rows) - 0.4, -0.6))
        axes.axvspan(axes.get_xlim()[0], 1, color="#d1620a", alpha=0.15, linewidth=0)
        axes.axvline(1, color=INK, linewidth=1)
        for k, ((colour, marker), (peer, found)) in enumerate(zip(STYLES, marks.items(), strict=False)):
            for clear, face in ((True, colour), (False, "none")):
                some = [(key, it.mid) for key, it in found if (it.low > 1 or it.high < 1) == clear]
                heights = [rows.index(key) + 0.13 * (k - (len(marks) - 1) / 2) for key, _ in some]
                axes.plot([x for _, x in some], heights, marker, color=colour, markerfacecolor=face)
            axes.plot([], [], marker, color=colour, label=peer)
        axes.set_xticks([1, 10, 100], ["the same", "10 times", "100 times"])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_yticks(range(len(rows)), names)
        axes.tick_params(length=0)
        axes.grid(axis="x")
        figure.legend(ncols=3, frameon=False, loc="outside lower center")
        words = "Times relative to tilecore's. Shaded: tilecore is slower. Hollow: no clear difference."
        save(figure, file, words, run.machine)


def draw_limits(run: Run, file: Path, shares: dict[Key, float]) -> None:
    """A plot for each kind of rows: shares of the limit by size, of calls by one thread and of the default.

    Each state of the caches and the program has a mark.
    """
    points: dict[str, dict[str, list[tuple[int, float]]]] = {}  # by kind, case: bytes and share
    for key, share in shares.items():
        by_case = points.setdefault(key.workload.partition(":")[0], {})
        by_case.setdefault(key.case.partition(",")[0], []).append((run.nbytes[key.group], share))
    names = {"tilecore": "the default", "tilecore 1 thread": "threads=1"}
    with plt.rc_context(STYLE):
        figure, plots = plt.subplots(len(points), sharex=True, squeeze=False, figsize=(WIDTH, 5.5))
        for axes, (kind, by_case) in zip(plots[:, 0], points.items(), strict=True):
            highest = max(share for found in by_case.values() for _, share in found)
            axes.set(xscale="log", ylim=(0, 1.1 * max(1.2, highest)))
            axes.set_title(kind, loc="left", fontsize=9)
            axes.axhline(1, color=INK, linewidth=1)
            for (colour, marker), (case, found) in zip(STYLES, sorted(by_case.items()), strict=False):
                beside = 1.2 if "1 thread" in case else 1 / 1.2
                sizes, values = [nbytes * beside for nbytes, _ in found], [share for _, share in found]
                axes.plot(sizes, values, marker, color=colour, markersize=5, markerfacecolor="none", label=names[case])
            ticks = sorted({nbytes for found in by_case.values() for nbytes, _ in found})
            axes.set_xticks(ticks, [size(nbytes).replace(" ", "\n") for nbytes in ticks])
            axes.xaxis.set_minor_locator(NullLocator())
            axes.grid()
        axes.set_xlabel("size of the result")
        figure.legend(*axes.get_legend_handles_labels(), ncols=2, frameon=False, loc="outside lower center")
        words = "Speed relative to the fastest plain loop in C (1). Each mark is a situation."
        save(figure, file, words, run.machine)
