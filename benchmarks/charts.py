"""Charts by matplotlib, as SVG: bars of ratios by workload, and curves of rates. They can be read on a phone."""

import textwrap
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from machine import head, warn
from matplotlib import pyplot as plt
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from runs import Run, Times
from tables import seconds, size, times

WIDTH = 4.5  # inches: 430 pixels, on a phone some 350
LINE = 540  # letters times their points, in a line of the notes
MOST_TICKS = 7  # of sizes, whose names are long
CAP = 100  # longer bars are cut off here
AHEAD, BEHIND, EVEN = "#2f81d6", "#d1620a", "#a3adb8"
LEGEND = {AHEAD: "tilecore is faster", BEHIND: "tilecore is slower", EVEN: "no clear difference"}
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
    parts = [(textwrap.wrap(text, LINE // points), colour, points) for text, colour, points in parts if text]
    heights = [1.5 * points / 72 * len(lines) for lines, _, points in parts]
    width, height = figure.get_size_inches()
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
    """A group for each workload, a bar for each peer: its time relative to tilecore's."""
    workloads: dict[str, dict[str, Times]] = {}
    for key, peer, ratio in run.ratios(run.calls("warm")):
        words = f"{key.workload} (tilecore: {size(run.nbytes[key.group])} in {seconds(run.times(key).mid)})"
        workloads.setdefault(words, {})[peer] = ratio
    bars = [bar for group in workloads.values() for bar in group.values()]
    count = sum(len(group) + 1.9 for group in workloads.values())
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(WIDTH, 1.1 + 0.17 * count))
        axes.set(xscale="log", xlim=(min([0.8, *(bar.mid / 1.3 for bar in bars)]), 4.5 * CAP), ylim=(count - 0.4, -0.2))
        axes.set_xticks([1, 10, CAP], ["1×\nequal", "10×", f"{CAP}×"])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.grid(axis="x")
        axes.axvline(1, color=INK, linewidth=1)
        y, names = 0.0, {}
        for words, group in workloads.items():
            axes.text(
                -0.25, y + 0.75, words, transform=axes.get_yaxis_transform(), va="center", backgroundcolor="white"
            )
            y += 1.9
            for name, bar in group.items():
                names[y] = name
                end = min(bar.mid, CAP)
                colour = AHEAD if bar.low > 1 else BEHIND if bar.high < 1 else EVEN
                axes.barh(y, end - 1, left=1, height=0.7, color=colour)
                if bar.mid > CAP:
                    axes.text(CAP / 1.6, y, "//", color="white", va="center_baseline")
                axes.text(1.12 * max(1, end), y, times(bar.mid), va="center_baseline")
                y += 1
        axes.set_yticks(list(names), list(names.values()), color=QUIET)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        handles = [Patch(color=colour, label=text) for colour, text in LEGEND.items()]
        handles.append(Patch(color="white", label=f"//: the bar is longer than {CAP}×"))
        figure.legend(handles=handles, ncols=2, frameon=False, loc="outside lower center")
        save(figure, file, "Time relative to tilecore (higher: tilecore is faster)", run.machine)


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
        places = sorted(ticks)[:: 1 + len(ticks) // MOST_TICKS]
        axes.set_xticks(places, [ticks[x] for x in places])
        axes.yaxis.set_major_locator(FixedLocator(marks))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_minor_locator(NullLocator())
        axes.grid()
        figure.legend(ncols=2, frameon=False, loc="outside lower center")
        save(figure, file, "Bytes written a second, by size of the result", run.machine)
