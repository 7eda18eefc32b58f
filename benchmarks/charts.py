"""Charts by matplotlib, as SVG: ratios by workload, and curves of rates. They can be read on a phone."""

import textwrap
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from machine import head, warn
from matplotlib import pyplot as plt
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from runs import Key, Run, Times
from tables import seconds, size

WIDTH = 4.5  # inches: 430 pixels, on a phone some 350
LINE = 120  # letters times their points, in an inch of the notes
MAX_TICKS = 7  # of sizes, whose names are long
PEER_WIDTH = 6  # inches: 576 pixels, of which a phone shows three fifths
STYLES = [("#0072b2", "o"), ("#d55e00", "s"), ("#009e73", "^"), ("#a0509b", "D"), ("#8c6d00", "v"), ("#59636e", "P")]
INK, QUIET, WARNING = "#1f2328", "#59636e", "#b42318"
# On a dark page, the picture is inverted, but keeps its hues.
DARK = "@media (prefers-color-scheme: dark) {svg{filter: invert(0.9) hue-rotate(180deg)}}"
STYLE = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "tilecore",  # the same data give the same file
    "font.size": 9,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#8c959f",
    "axes.axisbelow": True,
    "grid.color": "#d9dee3",
    "figure.constrained_layout.use": True,
}


def save(figure, file: Path, title: str, machine: dict[str, str]) -> None:
    """With a title, and below it the release and the host, and a warning if other processes were busy."""
    parts = [(title, INK, 10), (head(machine), QUIET, 8), (warn(machine), WARNING, 8)]
    width, height = figure.get_size_inches()
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


def draw_sizes(run: Run, file: Path) -> None:
    """Curves of GB/s over logarithmic axes, shaded between the quartiles.

    "X, fresh" has the colour of "X, warm", and is dashed; bounds are dotted.
    """
    lines: dict[str, list[tuple[float, Times]]] = {}  # by name, points (bytes, GB/s)
    ticks = {}
    for key in run.samples:
        two_memories = key.case in ("tilecore", "numpy")
        if key.workload.startswith("block ") and (key.kind == "size" or (key.kind == "fresh" and two_memories)):
            memory = f", {'fresh' if key.kind == 'fresh' else 'warm'}" * two_memories
            lines.setdefault(key.case + memory, []).append((run.nbytes[key.group], run.rate(key)))
            ticks[run.nbytes[key.group]] = key.workload.removeprefix("block ")
    marks = [float(f"{m}e{e}") for e in range(-3, 6) for m in (1, 2, 5)]
    bases = list(dict.fromkeys(name.partition(", ")[0] for name in lines))
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(WIDTH, 4))
        for name, points in lines.items():
            style = ":" if name.startswith("memset") else "--" if name.endswith("fresh") else "-"
            colour = f"C{bases.index(name.partition(', ')[0])}"
            xs, rates = zip(*sorted(points), strict=True)
            lows, mids, highs = zip(*rates, strict=True)
            axes.plot(xs, mids, style, color=colour, marker=".", label=name)
            axes.fill_between(xs, lows, highs, color=colour, alpha=0.12, linewidth=0)
        axes.set(xscale="log", yscale="log", ylabel="GB/s", xlabel="size of the result")
        places = sorted(ticks)[:: 1 + len(ticks) // MAX_TICKS]
        axes.set_xticks(places, [ticks[x] for x in places])
        axes.yaxis.set_major_locator(FixedLocator(marks))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_minor_locator(NullLocator())
        axes.grid()
        figure.legend(ncols=2, frameon=False, loc="outside lower center")
        save(figure, file, "Bytes written a second, by size of the result", run.machine)
