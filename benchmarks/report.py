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
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median

import judge
from machine import ENDED, Elsewhere
from runs import Key, Run, Times, busiest, load, merge, others_share
from tables import seconds, size, table, times

HERE = Path(__file__).parent.resolve()
PEERS = ("numpy", "torch", "onnxruntime", "openvino", "jax")
OTHERS = (*PEERS, "hptt", "memcpy")  # with which layouts are compared
# A bound, and the case of tilecore that it bounds.
BOUNDS = {"memset": "tilecore out 1 thread", "memcpy": "tilecore out 1 thread"}
BOUNDS |= {"memset 2 threads": "tilecore out 2 threads"}
PROGRAMS = {
    "work": "Other work between the calls",
    "kept": "The same, and five results are kept",
    "random": "Results of half to one and a half times the size",
    "first": "The first call of a process",
}
SHORT = ("a few numbers", "short rows", "gray to RGB", "one image to a batch")  # the README's table
SHORT += ("attention heads", "a large matrix")
LOADED = 5  # per cent of the processors' time that others may take before the report warns
# Where the report was made, in this order; what else the file holds is not printed.
MACHINE = ("memory", "caches", "load average", Elsewhere.NAME)
MACHINE += ("huge pages", "system", "Python", "compiler", "versions", "tilecore, build")
MACHINE += ("tilecore, kernels", "tilecore, threads", ENDED)


# ---------------------------------------------------------------- tables


def emphasis(ratio: Times | None) -> str:
    """Bold if the difference is clear: tilecore is faster, or slower, in three quarters of the rounds."""
    if ratio is None:
        return ""
    mark = "**" if ratio.low > 1 or ratio.high < 1 else ""
    return f"{mark}{times(ratio.mid)}{mark}"


def default_calls(run: Run, kind: str) -> list[Key]:
    return [key for key in run.samples if (key.kind, key.case) == (kind, "tilecore")]


def ratio_table(run: Run, kind: str, about: dict[str, Callable[[Key], str]], others: Sequence[str] = PEERS) -> str:
    """A row for each workload: what it is about, by heading; tilecore's time; the others' relative to it."""
    keys = default_calls(run, kind)
    others = [case for case in others if any(key._replace(case=case) in run.samples for key in keys)]
    rows = [
        [
            *(words(key) for words in about.values()),
            seconds(run.times(key).mid),
            *(emphasis(run.ratio(key, case)) for case in others),
        ]
        for key in keys
    ]
    return table([*about, "tilecore", *others], rows)


def losses(run: Run) -> dict[str, str]:
    """By workload, the peers that are faster."""
    found: dict[str, str] = {}
    for key in default_calls(run, "warm"):
        ratios = {peer: run.ratio(key, peer) for peer in PEERS}
        faster = [f"{peer} {times(ratio.mid)}" for peer, ratio in ratios.items() if ratio and ratio.high < 1]
        if faster:
            found[key.workload] = ", ".join(faster)
    return found


def shorten(run: Run) -> Run:
    """The README's rows, and every one in which tilecore is slower."""
    chosen = {*SHORT, *losses(run)}
    return run._replace(samples={key: values for key, values in run.samples.items() if key.workload in chosen})


def peers_table(run: Run, kind: str = "warm") -> str:
    about = {"workload": lambda key: key.workload, "input × repeats": lambda key: run.shapes[key.group]}
    return ratio_table(run, kind, about)


def bounds_table(run: Run) -> str:
    rows = []
    for key in default_calls(run, "warm"):
        sides = [(key._replace(case=case), bound) for bound, case in BOUNDS.items()]
        ratios = [run.ratio(ours, bound) if ours in run.samples else None for ours, bound in sides]
        rows.append([key.workload, *(emphasis(ratio) for ratio in ratios)])
    return table(["workload", *(f"{bound} ÷ {case}" for bound, case in BOUNDS.items())], rows)


def summary_table(run: Run, kind: str, others: Sequence[str], name: Callable[[Key], str] = lambda key: "") -> str:
    """A row for each of the others, over all workloads."""
    rows = []
    for case in others:
        found = [(run.ratio(key, case), key) for key in default_calls(run, kind)]
        ratios = sorted((ratio.mid, ratio.high, name(key) + run.shapes[key.group]) for ratio, key in found if ratio)
        if ratios:
            (least, _, where), middle = ratios[0], median(mid for mid, *_ in ratios)
            cells = [case, str(len(ratios)), times(middle), times(least), where]
            rows.append([*cells, str(sum(high < 1 for _, high, _ in ratios))])
    return table(["", "workloads", "median", "least", "at", "tilecore is clearly slower"], rows)


def programs_tables(run: Run, kinds: Iterable[str]) -> str:
    about = {"result": lambda key: key.workload}
    return "".join(f"{PROGRAMS[kind]}:\n\n{ratio_table(run, kind, about)}\n" for kind in PROGRAMS if kind in kinds)


def layouts_table(run: Run, kind: str) -> str:
    about = {
        "layout": lambda key: key.workload.rsplit(", ", 2)[0],
        "input × repeats": lambda key: run.shapes[key.group],
        "output": lambda key: size(run.nbytes[key.group]),
    }
    summary = summary_table(run, kind, OTHERS, lambda key: f"{about['layout'](key)}, ")
    return f"{summary}\n{fold('Every layout', ratio_table(run, kind, about, OTHERS))}"


def torch_table(run: Run) -> str:
    columns = [(kind, threads) for kind in ("call", "step") for threads in ("1 thread", "2 threads")]
    rows = []
    for workload in dict.fromkeys(key.workload for key in run.samples if key.kind == "call"):
        keys = [(Key(kind, workload, f"tilecore {threads}", 0), f"torch {threads}") for kind, threads in columns]
        rows.append(
            [workload, *(emphasis(run.ratio(key, torch) if key in run.samples else None) for key, torch in keys)]
        )
    return table(["workload", *(f"{kind}, {threads}" for kind, threads in columns)], rows)


def threads_table(run: Run, keys: Iterable[Key], counts: Sequence[int]) -> str:
    rows = []
    for first in dict.fromkeys(key._replace(threads=0) for key in keys):
        rates = [speed(run, first._replace(threads=n)) for n in counts]
        rows.append([f"{first.case}: {first.workload}", *rates])
    return table(["", *(f"{n} threads" if n > 1 else "1 thread" for n in counts)], rows)


def threads_sentence(run: Run, keys: Iterable[Key], counts: Sequence[int]) -> str:
    """For a machine with two processors: a table and a chart would have two points."""
    found = []
    for key in keys:
        if key.threads == counts[0] and (more := key._replace(threads=counts[1])) in run.samples:
            found.append(f"{key.case}, {key.workload}: {speed(run, key)} to {speed(run, more)}")
    return f"From {counts[0]} to {counts[1]} threads: {'; '.join(found)}.\n"


def every_case(run: Run) -> str:
    rows = []
    for key in run.samples:
        if key.kind not in ("grid", "copied", "tiled"):
            row = [key.workload, key.kind, key.case, str(key.threads or "")]
            rows.append([*row, *map(seconds, run.times(key)), speed(run, key)])
    spread = ["lower quartile", "median", "upper quartile"]
    return table(["workload", "kind", "case", "threads", *spread, "bytes a second"], rows)


def fold(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{text}\n</details>\n"


def rate(run: Run, key: Key) -> Times:
    """GB/s."""
    return Times(*(run.nbytes[key.group] / 1e9 / value for value in run.times(key)[::-1]))


def speed(run: Run, key: Key) -> str:
    return f"{size(run.nbytes[key.group] / run.times(key).mid)}/s" if key in run.samples else ""


def head(machine: dict[str, str]) -> str:
    """The release and the host, in a line."""
    release, cpus = machine.get("versions", "").partition(",")[0], machine.get("CPUs usable", "")
    parts = [release, machine.get("processor", ""), cpus and f"CPUs: {cpus}", machine.get("date", "")]
    return ", ".join(filter(None, parts))


def warn(machine: dict[str, str]) -> str:
    text = f"Made on a loaded machine: other processes took {machine.get(Elsewhere.NAME)}. "
    text += "Times and ratios are not to be relied upon."
    return text if others_share(machine) > LOADED else ""


def machine_list(machine: dict[str, str]) -> str:
    known = [(what, machine[what]) for what in MACHINE if what in machine]
    text = f"**{warn(machine)}**\n\n" if warn(machine) else ""
    text += f"{head(machine)}\n\n" if head(machine) else ""
    return text + "".join(f"- {what}: {said}\n" for what, said in known)


# ---------------------------------------------------------------- charts


def draw_peers(run: Run, file: Path) -> None:
    import charts

    workloads = {}
    for key in default_calls(run, "warm"):
        words = f"{key.workload} (tilecore: {size(run.nbytes[key.group])} in {seconds(run.times(key).mid)})"
        ratios = {peer: run.ratio(key, peer) for peer in PEERS}
        workloads[words] = {peer: ratio for peer, ratio in ratios.items() if ratio}
    title = "Time relative to tilecore (higher: tilecore is faster)"
    charts.draw_ratios(file, (title, head(run.machine), warn(run.machine)), workloads)


def draw_rates(run: Run, file: Path, across: str, points: dict[Key, tuple[str, float, str]]) -> None:
    """`points`: by key, the name of its line, its place across, and the words there."""
    import charts

    lines: dict[str, list[tuple[float, Times]]] = {}
    for key, (name, x, _) in points.items():
        lines.setdefault(name, []).append((x, rate(run, key)))
    ticks = {x: words for _, x, words in points.values()}
    top = f"Bytes written a second, by {across}", head(run.machine), warn(run.machine)
    charts.draw_rates(file, top, across, ticks, lines)


def draw_sizes(run: Run, file: Path) -> None:
    points = {}
    for key in run.samples:
        shown = key.kind == "size" or (key.kind == "fresh" and key.case in ("tilecore", "numpy"))
        if shown and key.workload.startswith("block "):
            memory = ("fresh" if key.kind == "fresh" else "warm") * (key.case in ("tilecore", "numpy"))
            words = key.workload.removeprefix("block ")
            points[key] = ", ".join(filter(None, (key.case, memory))), run.nbytes[key.group], words
    draw_rates(run, file, "size of the result", points)


def draw_threads(run: Run, file: Path) -> None:
    keys = [key for key in run.samples if key.kind == "threads"]
    points = {key: (f"{key.case}: {key.workload}", key.threads, f"{key.threads}") for key in keys}
    draw_rates(run, file, "number of threads", points)


# ---------------------------------------------------------------- one version

REPORT = """\
# Benchmarks

{machine}
Made by `python benchmarks/report.py`. Every result was verified before it was timed. The cases of a
workload took turns.

Ratios are times relative to tilecore: higher means that tilecore is faster. Each is the median over the
rounds; bold if the difference is clear, above 1 or below 1 in three quarters of the rounds. f4 is
float32, f2 float16, u1 uint8.
"""

WARM = """
## In short

{short_chart}The default call of each library. Each result is dropped before the next call. Workloads in which
tilecore is slower are never left out here.

{short}
tilecore is clearly slower at: {losses}.

## All workloads

{peers}
## The bounds

memset and memcpy write as many bytes to memory that was written to before, and tile nothing.

{bounds}"""

SIZES = """\
- "tilecore, warm" and "numpy, warm": each result is dropped before the next call. tilecore then reuses its memory, and
  so does numpy's allocator up to some size.
- "tilecore, fresh" and "numpy, fresh": each result is kept, as in a program that needs them all. The next result is
  written to memory that the system has to clear first.
- "tilecore out" and "memset" write to an array that was written to before.
"""

FRESH = """
## In fresh memory

Each result is kept, so the next one is written to memory that the system has to clear first.

"""

PROGRAMS_TEXT = """
## In programs that do other things between the calls

Each in a process of its own. Between the calls NumPy multiplies, concatenates and makes small arrays, and
all is dropped.

"""

LAYOUTS = """
## By layout

One thread. tilecore writes to memory that was written to before, and so do numpy (`numpy.copyto`), hptt and memcpy
where the input is only copied. Copied into C order, all repeats 1:

{copied}
Tiled twice along each axis:

{tiled}"""

TORCH = """
## PyTorch tensors

The time of `torch.tile` relative to `tilecore.integrations.torch.tile`, with as many threads for both. A step also
computes the gradient of the input.

"""


def report(run: Run, folder: Path | None) -> str:
    """The Markdown; with a folder, the charts are drawn there."""
    kinds = {key.kind for key in run.samples}

    def picture(name: str, about: str, draw, run: Run = run) -> str:
        if folder is None:
            return ""
        draw(run, folder / name)
        return f"![{about}]({name})\n\n"

    text = REPORT.format(machine=machine_list(run.machine))
    if default_calls(run, "warm"):
        short = shorten(run)
        chart = picture("peers.svg", "Time relative to tilecore, for each library and workload", draw_peers, short)
        lost = "; ".join(f"{workload} ({peers})" for workload, peers in losses(run).items()) or "none of them"
        tables = {"short": peers_table(short), "peers": peers_table(run), "bounds": bounds_table(run)}
        text += WARM.format(short_chart=chart, losses=lost, **tables)
    if "grid" in kinds:
        text += f"\n## A grid of shapes\n\n{summary_table(run, 'grid', [*PEERS, 'memset'])}"
    if folder and "size" in kinds:
        text += "\n## By size\n\n" + picture("sizes.svg", "Bytes written a second, by size", draw_sizes) + SIZES
    if "fresh" in kinds:
        text += FRESH + peers_table(run, "fresh")
    if kinds & PROGRAMS.keys():
        text += PROGRAMS_TEXT + programs_tables(run, kinds)
    if kinds & {"copied", "tiled"}:
        text += LAYOUTS.format(copied=layouts_table(run, "copied"), tiled=layouts_table(run, "tiled"))
    if kinds & {"call", "step"}:
        text += TORCH + torch_table(run)
    if "threads" in kinds:
        keys = [key for key in run.samples if key.kind == "threads"]
        counts = sorted({key.threads for key in keys})
        text += "\n## By threads\n\nInto memory that was written to before.\n\n"
        if len(counts) > 2:
            text += picture("threads.svg", "Bytes written a second, by number of threads", draw_threads)
        text += (threads_sentence if len(counts) == 2 else threads_table)(run, keys, counts)
    return f"{text}\n## Every case\n\n{fold('Median and quartiles', every_case(run))}"


def require(*names: str) -> None:
    for name in names:
        if importlib.util.find_spec(name) is None:
            raise SystemExit(f"{name} is not installed; in the clone: pip install '.[bench]'")


def measure(file: Path, options: Iterable[str]) -> bool:
    """Run the benchmarks into a file, or exit with what to do; whether one failed, and the file lacks it."""
    command = [sys.executable, "-P", "-m", "pytest", HERE, "-q", "--ignore", HERE / "test_dask.py"]
    command += ["--benchmark-json", file, "--benchmark-quiet", *options]
    file.unlink(missing_ok=True)
    with subprocess.Popen(command) as process:
        try:
            status = process.wait()
        except KeyboardInterrupt:
            status = process.wait()  # pytest got it too, and writes what it has
    if not file.exists() or not file.stat().st_size:
        raise SystemExit("nothing was timed: see what pytest says above")
    return status == 1


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
    measured, failed = not arguments.new, False
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
        failed = measure(arguments.new[0].resolve(), options)
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
    if failed:
        sys.exit("a benchmark failed, see above; the report lacks it")
    sys.exit(arguments.fail and slower)


if __name__ == "__main__":
    main()
