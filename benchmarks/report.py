"""pytest-benchmark's JSON as Markdown and charts, and the comparison of two versions.

    python benchmarks/report.py
    pytest benchmarks --benchmark-json=new.json
    python benchmarks/report.py new.json --output FOLDER
    python benchmarks/report.py new.json --against old.json --fail

Without a file, the benchmarks are run first and the report lies in build/report; Ctrl-C ends the run,
and the report shows what was timed until then. The third form writes report.md and the charts that it
shows; without --output it prints the Markdown. The last says of every case of tilecore whether it became
faster or slower: see judge.py. Either side may be several files, runs of the same version: the more of
them, the smaller the difference that can be told from noise. --fail exits with 1 if a case became slower.
"""

import argparse
import importlib.util
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import median

import judge
from machine import ENDED, Elsewhere
from runs import Key, Run, Times, busiest, load, merge, others_share
from tables import seconds, size, table, times

HERE = Path(__file__).parent.resolve()
PEERS = ("numpy", "torch", "onnxruntime", "openvino", "jax")
# A bound, and the case of tilecore that it bounds.
BOUNDS = {"empty": "tilecore", "memset": "tilecore out 1 thread", "memcpy": "tilecore out 1 thread"}
BOUNDS |= {"memset 2 threads": "tilecore out 2 threads"}
PROGRAMS = {"work": "other work between", "kept": "five results kept", "random": "random sizes", "first": "first call"}
SHORT = ("a few numbers", "short rows", "gray to RGB", "one image to a batch")  # the README's table
SHORT += ("attention heads", "a large matrix")
LOADED = 5  # per cent of the processors' time that others may take before the report warns
# Where the report was made, in this order; what else the file holds is not printed.
MACHINE = ("processor", "CPUs usable", "memory", "caches", "load average", Elsewhere.NAME)
MACHINE += ("huge pages", "system", "Python", "compiler", "versions", "tilecore, build")
MACHINE += ("tilecore, kernels", "tilecore, threads", ENDED)


# ---------------------------------------------------------------- tables


def emphasis(ratio: Times | None) -> str:
    """Bold if the other takes longer, in italics if it is quicker, both beyond quartiles."""
    if ratio is None:
        return ""
    mark = "**" if ratio.low > 1 else "*" if ratio.high < 1 else ""
    return f"{mark}{times(ratio.mid)}{mark}"


def default_calls(run: Run, kind: str) -> list[Key]:
    return [key for key in run.samples if (key.kind, key.case) == (kind, "tilecore")]


def present(run: Run) -> list[str]:
    timed = {key.case for key in run.samples}
    return [peer for peer in PEERS if peer in timed]


def peers_table(run: Run, chosen: Iterable[str]) -> str:
    rows = []
    for key in default_calls(run, "warm"):
        if (name := key.workload) in chosen:
            row = [name, run.shapes[name], size(run.nbytes[name]), seconds(run.times(key).mid)]
            rows.append(row + [emphasis(run.ratio(key, peer)) for peer in present(run)])
    return table(["workload", "input × repeats", "output", "tilecore", *present(run)], rows)


def list_losses(run: Run) -> str:
    found = []
    for key in default_calls(run, "warm"):
        for peer in present(run):
            if (ratio := run.ratio(key, peer)) and ratio.high < 1:
                found.append(f"{key.workload}, {peer} ({times(ratio.mid)})")
    return "; ".join(found) or "nowhere"


def bounds_table(run: Run) -> str:
    rows = []
    for key in default_calls(run, "warm"):
        sides = [(key._replace(case=case), bound) for bound, case in BOUNDS.items()]
        ratios = [run.ratio(ours, bound) if ours in run.samples else None for ours, bound in sides]
        rows.append([key.workload, *(emphasis(ratio) for ratio in ratios)])
    return table(["workload", *(f"{bound} ÷ {case}" for bound, case in BOUNDS.items())], rows)


def grid_table(run: Run) -> str:
    rows = []
    for case in [*present(run), "memset"]:
        found = [(run.ratio(key, case), key.workload) for key in default_calls(run, "grid")]
        ratios = sorted((ratio.mid, ratio.high, name) for ratio, name in found if ratio)
        if ratios:
            (least, _, where), middle = ratios[0], median(mid for mid, *_ in ratios)
            cells = [case, str(len(ratios)), times(middle), times(least), where]
            rows.append([*cells, str(sum(high < 1 for _, high, _ in ratios))])
    header = ["", "shapes", "median", "least", "at", "tilecore is slower, beyond quartiles"]
    return table(header, rows)


def programs_table(run: Run) -> str:
    keys = [key for key in run.samples if key.kind in PROGRAMS and key.case == "tilecore"]
    rows = [
        [
            PROGRAMS[key.kind],
            key.workload,
            seconds(run.times(key).mid),
            *(emphasis(run.ratio(key, p)) for p in present(run)),
        ]
        for key in keys
    ]
    return table(["program", "result", "tilecore", *present(run)], rows)


def layouts_table(run: Run, kind: str) -> str:
    """A row for each layout, kind of item and size."""
    rows = []
    others = [case for case in ("numpy", "torch", "hptt", "memcpy") if any(k.case == case for k in run.samples)]
    for key in default_calls(run, kind):
        ratios = [run.ratio(key, case) for case in others]
        rows.append([key.workload, seconds(run.times(key).mid), *map(emphasis, ratios)])
    return table(["layout", "tilecore", *others], rows)


def threads_table(run: Run) -> str:
    keys = [key for key in run.samples if key.kind == "threads"]
    rates = {key: f"{rate(run, key).mid:.3g}" for key in keys}
    counts = sorted({key.threads for key in keys})
    rows = [
        [f"{first.case}: {first.workload}"] + [rates.get(first._replace(threads=n), "") for n in counts]
        for first in dict.fromkeys(key._replace(threads=0) for key in keys)
    ]
    return table(["GB/s", *(f"{n} threads" if n > 1 else "1 thread" for n in counts)], rows)


def every_case(run: Run) -> str:
    rows = []
    for key in run.samples:
        if key.kind != "grid":
            row = [key.workload, key.kind, key.case, str(key.threads or "")]
            rows.append([*row, *map(seconds, run.times(key)), f"{rate(run, key).mid:.3g}"])
    spread = ["lower quartile", "median", "upper quartile"]
    return table(["workload", "kind", "case", "threads", *spread, "GB/s"], rows)


def rate(run: Run, key: Key) -> Times:
    """GB/s."""
    return Times(*(run.nbytes[key.workload] / 1e9 / value for value in run.times(key)[::-1]))


def warn(machine: dict[str, str]) -> str:
    text = f"Made on a loaded machine: other processes took {machine.get(Elsewhere.NAME)}. "
    text += "Times and ratios are not to be relied upon."
    return text if others_share(machine) > LOADED else ""


def machine_list(machine: dict[str, str]) -> str:
    known = [(what, machine[what]) for what in MACHINE if what in machine]
    text = f"**{warn(machine)}**\n\n" if warn(machine) else ""
    return text + "".join(f"- {what}: {said}\n" for what, said in known)


# ---------------------------------------------------------------- charts


def notes(run: Run) -> list[str]:
    """What a picture says about the machine it was made on."""
    said = [run.machine.get(what, "") for what in ("versions", "processor", "CPUs usable")]
    said = [said[0].partition(",")[0], said[1], said[2] and f"CPUs: {said[2]}"]
    return [text for text in (", ".join(filter(None, said)), warn(run.machine)) if text]


def draw_peers(run: Run, file: Path) -> None:
    import charts

    keys = default_calls(run, "warm")
    rows = [
        f"{key.workload}: {size(run.nbytes[key.workload])} in {seconds(run.times(key).mid)}\n{run.shapes[key.workload]}"
        for key in keys
    ]
    columns = {peer: [run.ratio(key, peer) for key in keys] for peer in present(run)}
    charts.draw_ratios(file, "tilecore.tile and its peers", notes(run), rows, columns)


def draw_rates(run: Run, file: Path, title: str, points: dict[Key, tuple[str, float, str]]) -> None:
    """`points`: by key, the name of its line, its place across, and the words there."""
    import charts

    lines: dict[str, list[tuple[float, Times]]] = {}
    for key, (name, x, _) in points.items():
        lines.setdefault(name, []).append((x, rate(run, key)))
    ticks = {x: words for _, x, words in points.values()}
    charts.draw_rates(file, title, notes(run), ticks, lines)


def draw_sizes(run: Run, file: Path) -> None:
    points = {}
    for key in run.samples:
        fresh = key.kind == "fresh" and key.case in ("tilecore", "numpy")
        if (key.kind == "size" or fresh) and key.workload.startswith("block "):
            words = key.workload.removeprefix("block ")
            points[key] = key.case + ", fresh" * fresh, run.nbytes[key.workload], words
    draw_rates(run, file, "Bytes written, by size of the result", points)


def draw_threads(run: Run, file: Path) -> None:
    keys = [key for key in run.samples if key.kind == "threads"]
    points = {key: (f"{key.case}: {key.workload}", key.threads, f"{key.threads}") for key in keys}
    draw_rates(run, file, "Bytes written, by number of threads", points)


# ---------------------------------------------------------------- one version

REPORT = """\
# Benchmarks

{machine}
Made by `python benchmarks/report.py`. Every result was verified before it was timed. The cases of a
workload took turns, and a ratio is the median over rounds.
"""

WARM = """
## In short

{short}
## The peers

{peers_chart}The default call of each; each result is dropped before the next call. For each peer: its time
relative to tilecore's; bold if it takes longer beyond the quartiles, in italics if it is quicker.

{peers}
tilecore is slower, beyond the quartiles: {losses}.

## The bounds

memset and memcpy write as many bytes to memory that was written to before, and tile nothing; numpy.empty
only allocates.

{bounds}"""

SIZES = """\
"tilecore" and "numpy": each result is dropped before the next call, so its memory is warm: tilecore uses
it again, and so does the allocator of numpy up to some size. "Fresh": each result is kept, as in a program
that needs them all, so the next one is written to memory that the system has to clear first. "tilecore
out" and memset write to an array that was written to before.
"""

PROGRAMS_TEXT = """
## In programs that do other things between the calls

Each in a process of its own: NumPy multiplies, concatenates and makes small arrays between the calls, and all is
dropped. "Random sizes": half to one and a half times as large. "First call": of the process.

"""


def report(run: Run, folder: Path | None) -> str:
    """The Markdown; with a folder, the charts are drawn there."""
    kinds = {key.kind for key in run.samples}

    def picture(name: str, about: str, draw) -> str:
        if folder is None:
            return ""
        draw(run, folder / name)
        return f"![{about}]({name})\n\n"

    text = REPORT.format(machine=machine_list(run.machine))
    if default_calls(run, "warm") and present(run):
        chart = picture("peers.svg", "Times of the peers relative to tilecore", draw_peers)
        tables = {"short": peers_table(run, SHORT), "peers": peers_table(run, run.shapes)}
        tables |= {"losses": list_losses(run), "bounds": bounds_table(run)}
        text += WARM.format(peers_chart=chart, **tables)
    if "grid" in kinds:
        text += f"\n## A grid of shapes\n\nTimes relative to tilecore's.\n\n{grid_table(run)}"
    if folder and "size" in kinds:
        text += "\n## By size\n\n" + picture("sizes.svg", "GB/s by size", draw_sizes) + SIZES
    if kinds & PROGRAMS.keys():
        text += PROGRAMS_TEXT + programs_table(run)
    if "copied" in kinds:
        text += "\n## By layout\n\nTimes relative to tilecore's, one thread. Copied into C order, all repeats 1:\n\n"
        text += f"{layouts_table(run, 'copied')}\nTiled twice along each axis:\n\n{layouts_table(run, 'tiled')}"
    if "threads" in kinds:
        text += "\n## By threads\n\nInto memory that was written to before.\n\n"
        if len({key.threads for key in run.samples if key.kind == "threads"}) > 2:
            text += picture("threads.svg", "GB/s by threads", draw_threads)
        text += threads_table(run)
    text += "\n## Every case\n\n<details><summary>Median and quartiles</summary>\n\n"
    return text + f"{every_case(run)}\n</details>\n"


def require(*names: str) -> None:
    for name in names:
        if importlib.util.find_spec(name) is None:
            raise SystemExit(f"{name} is not installed; in the clone: pip install '.[bench]'")


def measure(file: Path, options: Iterable[str]) -> None:
    """Run the benchmarks into a file, or exit with what to do."""
    command = [sys.executable, "-P", "-m", "pytest", HERE, "-q", "--ignore", HERE / "test_dask.py"]
    command += ["--benchmark-json", file, "--benchmark-quiet", *options]
    file.unlink(missing_ok=True)
    with subprocess.Popen(command) as process:
        try:
            status = process.wait()
        except KeyboardInterrupt:
            status = process.wait()  # pytest got it too, and writes what it has
    if status == 1:
        raise SystemExit(f"a benchmark failed, see above; what was timed is in {file}")
    if not file.exists() or not file.stat().st_size:
        raise SystemExit("nothing was timed: see what pytest says above")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("new", nargs="*", type=Path, help="JSON of pytest-benchmark; none: measure")
    parser.add_argument("--against", nargs="+", type=Path, metavar="OLD", help="an older version")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="for report.md and charts")
    parser.add_argument("--fail", action="store_true", help="exit with 1 if a case became slower")
    parser.add_argument("--full", action="store_true", help="without a file: measure every case")
    parser.add_argument("--only", metavar="NAMES", help="without a file: these, by pytest's -k")
    arguments = parser.parse_args()
    if arguments.fail and not arguments.against:
        parser.error("--fail needs --against")
    measured = not arguments.new
    if (arguments.full or arguments.only) and not measured:
        parser.error("--full and --only choose what is measured, and there are files already")
    if measured:
        require("tilecore", "pytest_benchmark")
        arguments.output = arguments.output or Path("build", "report")
    if arguments.output and not arguments.against:
        require("matplotlib")
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
        old = [load(path) for path in arguments.against]
        text, slower = judge.compare(old, new, machine_list(busiest(new)))
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
