"""pytest-benchmark's JSON as Markdown and charts, and the comparison of two versions.

    python benchmarks/report.py
    pytest benchmarks --benchmark-json=new.json
    python benchmarks/report.py new.json --output FOLDER
    python benchmarks/report.py new.json --against old.json --fail

Without a file, the benchmarks are run first, for a minute or two, and the report lies in
build/report. The second form writes report.md and the charts it shows; without --output it prints the
Markdown. The third says of every case of tilecore whether it became faster or slower: see `judge`. Either
side may be several files, which are runs of the same version: the more, the smaller a difference
can be told from noise. --fail exits with 1 where something became slower.
"""

import argparse
import importlib.util
import subprocess
import sys
from collections.abc import Iterable, Sequence
from math import exp, log
from pathlib import Path
from statistics import median

import charts
from runs import Key, Run, Times, load, merge, others_share, pool

HERE = Path(__file__).parent.resolve()
PEERS = ("numpy", "torch", "onnxruntime", "openvino", "jax")
YARDSTICKS = ("memset", "numpy")
SAME = "no difference beyond noise"
LEAST_CHANGE = 1.05  # a smaller one is never told, however quiet the machine
ERRORS = 20  # one of so many peers and bounds may seem to have changed
# The README's table.
SHORT = (
    *("a few numbers", "short rows", "gray to RGB", "one image to a batch"),
    *("attention heads", "attention mask", "a large matrix"),
)
LOADED = 5  # per cent of the processors' time that others may take before the report warns
# Where the report was made, in this order; what else the file holds is not printed.
MACHINE = ("processor", "CPUs usable", "memory", "caches", "load average", "other processes")
MACHINE += (
    "huge pages",
    "system",
    "Python",
    "compiler",
    "versions",
    "tilecore, build",
    "tilecore, kernels",
)
MACHINE += ("tilecore, threads",)


# ---------------------------------------------------------------- words and tables


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    marks = ["---", *["--:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, marks, *rows)) + "\n"


def seconds(value: float) -> str:
    for unit, scale in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if value * scale >= 1:
            return f"{value * scale:.3g} {unit}" if value * scale < 999.5 else f"{value:,.0f} s"
    return f"{value * 1e9:.3g} ns"


def size(nbytes: float) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if nbytes >= scale:
            return f"{nbytes / scale:.3g} {unit}"
    return f"{nbytes} bytes"


def rate(nbytes: int, times: Times) -> Times:
    """GB/s."""
    return Times(*(nbytes / 1e9 / value for value in times[::-1]))


def emphasis(ratio: Times) -> str:
    """Bold where the other takes longer, in italics where it is quicker, both beyond quartiles."""
    mark = "**" if ratio.low > 1 else "*" if ratio.high < 1 else ""
    return f"{mark}{charts.times(ratio.mid)}{mark}"


def beside(run: Run, ours: Key, case: str) -> Times | None:
    """How many times as long as tilecore's the other case takes on the same workload."""
    other = run.times.get(ours._replace(case=case))
    return other and other.over(run.times[ours])


def default_calls(run: Run, kind: str) -> list[Key]:
    return [key for key in run.times if (key.kind, key.case) == (kind, "tilecore")]


def present(run: Run) -> list[str]:
    timed = {key.case for key in run.times}
    return [peer for peer in PEERS if peer in timed]


def beside_all(run: Run, ours: Key, cases: Iterable[str]) -> list[str]:
    ratios = [beside(run, ours, case) for case in cases]
    return [emphasis(ratio) if ratio else "" for ratio in ratios]


def short_table(run: Run) -> str:
    rows = [
        [key.workload, run.shapes[key.workload], seconds(run.times[key].mid)]
        + beside_all(run, key, present(run))
        for key in default_calls(run, "warm")
        if key.workload in SHORT
    ]
    return table(["", "input × repeats", "tilecore", *present(run)], rows)


def peers_table(run: Run) -> str:
    cases = present(run) + ["memset", "memcpy"]
    rows = []
    for key in default_calls(run, "warm"):
        nbytes, times = run.nbytes[key], run.times[key]
        row = [key.workload, run.shapes[key.workload], size(nbytes), seconds(times.mid)]
        row.append(f"{nbytes / times.mid / 1e9:.3g}")
        rows.append(row + beside_all(run, key, cases))
    return table(["workload", "input × repeats", "output", "tilecore", "GB/s", *cases], rows)


def grid_table(run: Run) -> str:
    rows = []
    for case in [*present(run), "memset"]:
        found = [(beside(run, key, case), key.workload) for key in default_calls(run, "grid")]
        ratios = sorted((ratio.mid, ratio.high, name) for ratio, name in found if ratio)
        if not ratios:
            continue
        behind = sum(high < 1 for _, high, _ in ratios)
        (least, _, where), middle = ratios[0], median(mid for mid, *_ in ratios)
        cells = [case, str(len(ratios)), charts.times(middle), charts.times(least), where]
        rows.append([*cells, str(behind)])
    header = ["", "shapes", "median", "least", "at", "behind it, beyond quartiles"]
    return table(header, rows)


def every_case(run: Run) -> str:
    rows = []
    for key, times in run.times.items():
        if key.kind != "grid":
            numbers = [seconds(value) for value in (times.mid, times.low, times.high)]
            gigabytes = f"{rate(run.nbytes[key], times).mid:.3g}"
            threads = str(key.threads or "")
            rows.append([key.workload, key.kind, key.case, threads, *numbers, gigabytes])
    header = [
        "workload",
        "kind",
        "case",
        "threads",
        "median",
        "lower quartile",
        "upper quartile",
        "GB/s",
    ]
    return table(header, rows)


def machine_list(run: Run) -> str:
    text = ""
    if others_share(run.machine) > LOADED:
        text = (
            f"**Made on a loaded machine: other processes took {run.machine['other processes']}. "
        )
        text += "Times and ratios are not to be relied upon.**\n\n"
    known = [(what, run.machine[what]) for what in MACHINE if what in run.machine]
    return text + "".join(f"- {what}: {said}\n" for what, said in known)


# ---------------------------------------------------------------- charts


def peers_chart(run: Run) -> str:
    rows = []
    for key in default_calls(run, "warm"):
        nbytes, times = run.nbytes[key], run.times[key]
        ratios = [beside(run, key, peer) for peer in present(run)]
        rows.append(
            charts.Row(
                key.workload,
                run.shapes[key.workload],
                seconds(times.mid),
                size(nbytes),
                [charts.Bar(*ratio) if ratio else None for ratio in ratios],
            )
        )
    return charts.ratios(
        "tilecore.tile against its peers",
        "How many times as long the others take; bars to a logarithmic scale, up to "
        f"{charts.LONGEST}×. Grey: the quartiles overlap.",
        present(run),
        rows,
    )


def line(run: Run, name: str, keys: Iterable[Key], x) -> charts.Line:
    """A curve of GB/s; `x` is a key's place across."""
    points = sorted((x(key), *rate(run.nbytes[key], run.times[key])) for key in keys)
    return charts.Line(name, points, name.startswith("memset"))


def sizes_chart(run: Run) -> str:
    keys = [key for key in run.times if key.kind == "size"]
    names = list(dict.fromkeys(key.case for key in keys))
    curves = [
        line(run, name, [key for key in keys if key.case == name], run.nbytes.__getitem__)
        for name in names
    ]
    units = {2**20: "MiB", 2**30: "GiB"}
    ticks = {n: f"{n // u} {units[u]}" for n in run.nbytes.values() for u in units if n >= u}
    ticks = {n: ticks[n] for key, n in run.nbytes.items() if key.kind == "size"}
    return charts.lines(
        "Bytes written, by size of the result",
        "A block of 256 KiB, over and over. Fresh: into memory that is new to the process. Dashed: memset.",
        "size of the result",
        curves,
        ticks,
    )


def threads_chart(run: Run) -> str:
    keys = [key for key in run.times if key.kind == "threads"]
    by_line: dict[str, list[Key]] = {}
    for key in keys:
        name = f"tilecore, {key.workload}" if key.ours else key.case
        by_line.setdefault(name, []).append(key)
    return charts.lines(
        "Bytes written, by number of threads",
        "Results of about 64 MB, into memory that was written to before.",
        "threads",
        [line(run, name, its_keys, lambda key: key.threads) for name, its_keys in by_line.items()],
        {key.threads: str(key.threads) for key in keys},
        height=340,
    )


# ---------------------------------------------------------------- one version


REPORT = """\
# Benchmarks

{machine}
Made by `python benchmarks/report.py`. Every result was checked before it was timed. The cases of a workload are timed one after
the other: where the machine drifts meanwhile, so do the ratios. `python benchmarks/compare.py`
measures in pairs, interleaved.

## In short

{short}
## Against the peers

{peers_chart}The default call of each, the result dropped each time. From numpy on: how many times as long as
tilecore; bold where the quartiles lie above tilecore's, in italics where below. memset and memcpy
write as many bytes to memory that was written to before, on one thread, and tile nothing.

{peers}"""


SIZES = """\
"tilecore" and "numpy" drop each result before the next call, which tilecore then writes to the same
memory. "tilecore fresh" and "numpy fresh" keep their results, as a program that needs them all does:
each is written to memory that the system has to clear first. "tilecore out" writes to an array that is
there, and "tilecore mapped" is `tile_mapped`, which copies nothing that repeats before it is written to.
memset writes to memory that was written to before.
"""


def report(run: Run, folder: Path | None) -> str:
    """The Markdown; with a folder, the charts too, which lie there."""
    kinds = {key.kind for key in run.times}

    def picture(name: str, about: str, svg: str) -> str:
        if folder is None:
            return ""
        (folder / name).write_text(svg, encoding="utf-8")
        return f"![{about}]({name})\n\n"

    chart = picture("peers.svg", "Times against the peers", peers_chart(run))
    tables = {"short": short_table(run), "peers": peers_table(run)}
    text = REPORT.format(machine=machine_list(run), peers_chart=chart, **tables)
    if "grid" in kinds:
        text += "\n## Over a grid of shapes\n\nHow many times as long as tilecore's default call.\n"
        text += f"\n{grid_table(run)}"
    if folder and "size" in kinds:
        text += "\n## By size\n\n" + picture("sizes.svg", "GB/s by size", sizes_chart(run)) + SIZES
    if folder and len({key.threads for key in run.times if key.kind == "threads"}) > 1:
        text += "\n## By threads\n\n" + picture(
            "threads.svg", "GB/s by threads", threads_chart(run)
        )
    text += "\n## Every case\n\n<details><summary>Median and quartiles</summary>\n\n"
    return text + f"{every_case(run)}\n</details>\n"


# ---------------------------------------------------------------- two versions


def relative(runs: Sequence[Run], key: Key) -> dict[Key, Times]:
    """The case's time in those of the yardsticks of its group, each measured within one run."""
    found: dict[Key, list[Times]] = {}
    for run in runs:
        for other, times in run.times.items():
            same = other.group == key.group and other.case in YARDSTICKS and other != key
            if same and key in run.times:
                found.setdefault(other, []).append(run.times[key].over(times))
    return {yardstick: pool(ratios) for yardstick, ratios in found.items()}


def changes(old: Sequence[Run], new: Sequence[Run], key: Key) -> list[tuple[float, int]]:
    """For each yardstick: new time over old, and 1 (slower) or -1 where the quartiles part."""
    before, after = relative(old, key), relative(new, key)
    found = []
    for yardstick in before.keys() & after.keys():
        a, b = before[yardstick], after[yardstick]
        found.append((b.mid / a.mid, (b.low > a.high) - (b.high < a.low)))
    return found


def middle_change(found: Sequence[tuple[float, int]]) -> float:
    return exp(sum(log(change) for change, _ in found) / len(found))


def judge(found: Sequence[tuple[float, int]], floor: float = 1.0) -> str:
    """Faster or slower only where every yardstick says so, beyond quartiles and beyond noise."""
    change = middle_change(found)
    for word, sign in (("slower", 1), ("faster", -1)):
        if all(parted == sign for _, parted in found) and change**sign > floor:
            return word
    return SAME


def noise(old: Sequence[Run], new: Sequence[Run], keys: Iterable[Key]) -> float:
    """The change from which on one of ERRORS would be told of what cannot have changed."""
    unchanged = [found for key in keys if not key.ours and (found := changes(old, new, key))]
    told = [abs(log(middle_change(found))) for found in unchanged if judge(found) != SAME]
    return exp(sorted([*told, 0.0], reverse=True)[min(len(told), len(unchanged) // ERRORS)])


def comparison(old: Sequence[Run], new: Sequence[Run]) -> tuple[str, bool]:
    """The Markdown, and whether something became slower."""
    shared = [key for key in merge(new).times if key in merge(old).times]
    floor = max(LEAST_CHANGE, noise(old, new, shared))
    verdicts = []
    for key in shared:
        if key.ours and (found := changes(old, new, key)):
            verdicts.append((judge(found, floor), middle_change(found), key))
    if not verdicts:
        raise SystemExit("no case of tilecore has a yardstick in both files")
    count = {word: sum(verdict[0] == word for verdict in verdicts) for word in ("faster", "slower")}

    def rows(chosen):
        return table(
            ["case", "new time ÷ old", "verdict"],
            ([key.words, f"{change:.2f}", word] for word, change, key in chosen),
        )

    told = sorted((verdict for verdict in verdicts if verdict[0] in count), key=lambda v: -v[1])
    text = f"""\
# Comparison

{machine_list(new[0])}
Of {len(verdicts)} cases {count["faster"]} became faster, {count["slower"]} slower. The others show \
no difference beyond noise.
Times are in those of {" and ".join(YARDSTICKS)}, measured in the same run on the same workload, \
and every yardstick must agree.
Nothing is told below a factor of {floor:.2f}: above it, of the peers and bounds, which did not \
change, at most one in {ERRORS} seems to.

"""
    text += f"{rows(told)}\n" if told else ""
    text += f"<details><summary>Every case</summary>\n\n{rows(verdicts)}\n</details>\n"
    return text, count["slower"] > 0


def measure(file: Path, options: Sequence[str]) -> None:
    """Run the benchmarks into a file, or end with what to do."""
    for name in ("tilecore", "pytest_benchmark"):
        if importlib.util.find_spec(name) is None:
            raise SystemExit(f"{name} is not installed; in the clone: pip install '.[bench]'")
    command = [
        sys.executable,
        "-P",
        "-m",
        "pytest",
        HERE,
        "-q",
        "--ignore",
        HERE / "test_kernels.py",
    ]
    done = subprocess.run([*command, "--benchmark-json", file, *options], check=False)
    if done.returncode:
        raise SystemExit("the benchmarks failed: see what pytest says above")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("new", nargs="*", type=Path, help="JSON of pytest-benchmark; none: measure")
    parser.add_argument("--against", nargs="+", type=Path, metavar="OLD", help="an older version")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="for report.md and charts")
    parser.add_argument("--fail", action="store_true", help="exit with 1 where one became slower")
    parser.add_argument("--full", action="store_true", help="without a file: measure every case")
    parser.add_argument("--only", metavar="NAMES", help="without a file: these, by pytest's -k")
    arguments = parser.parse_args()
    if arguments.fail and not arguments.against:
        parser.error("--fail needs --against")
    measured = not arguments.new
    if (arguments.full or arguments.only) and not measured:
        parser.error("--full and --only choose what is measured, and there are files already")
    if measured:
        arguments.output = arguments.output or Path("build", "report")
    if arguments.output:
        try:
            arguments.output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            parser.error(f"--output {arguments.output}: {error.strerror}")
    if measured:
        options = ["--full"] * arguments.full + (["-k", arguments.only] if arguments.only else [])
        arguments.new = [arguments.output / "benchmarks.json"]
        measure(arguments.new[0].resolve(), options)
    new, slower = [load(path) for path in arguments.new], False
    if arguments.against:
        text, slower = comparison([load(path) for path in arguments.against], new)
    else:
        text = report(merge(new), arguments.output)
    if arguments.output:
        path = arguments.output / ("comparison.md" if arguments.against else "report.md")
        path.write_text(text, encoding="utf-8")
        print(path)
    else:
        print(text)
    sys.exit(arguments.fail and slower)


if __name__ == "__main__":
    main()
