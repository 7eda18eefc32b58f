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
from machine import as_list
from runs import PEERS, Key, Run, Times, busiest, load, merge
from tables import pivot, seconds, size, table, times

HERE = Path(__file__).parent.resolve()
# A bound, and the case of tilecore that it bounds.
BOUNDS = {"memset": "tilecore out 1 thread", "memcpy": "tilecore out 1 thread"}
BOUNDS |= {"memset 2 threads": "tilecore out 2 threads"}
PROGRAMS = {
    "work": "Other work between the calls",
    "busy": "Beside other processes: two for each CPU compute, copy arrays, or start processes",
    "first": "The first call of a process",
    "sizes": "Results of random sizes, by how much is alive at most and the largest size",
}
MEMORY = {"get": "get", "read": "read all", "write": "write all", "memory": "memory"}
DASK = {"built": "built", "summed": "summed", "whole": "made as a whole", "tasks": "tasks"}
# Kinds that "Every case" leaves out.
MANY = ("copied", "tiled", "form", "input", "memory", "tasks", "drawn", "references")
SHORT = ("a few numbers", "short rows", "gray to RGB", "one image to a batch")  # the README's table
SHORT += ("attention heads", "a large matrix")
NAMES: dict[str, Callable[[Key], str]] = {"workload": lambda key: key.workload}
SLOWER = 0.95  # random forms with a lower ratio are named


# ---------------------------------------------------------------- tables


def emphasis(ratio: Times) -> str:
    """Bold if the difference is clear: tilecore is faster, or slower, in three quarters of the rounds."""
    mark = "**" if ratio.low > 1 or ratio.high < 1 else ""
    return f"{mark}{times(ratio.mid)}{mark}"


def ratio_table(run: Run, kind: str, about: dict[str, Callable[[Key], str]] = NAMES, cases: Sequence[str] = ()) -> str:
    """A row for each workload: what it is about, by heading; tilecore's time; these cases', or all others', relative
    to it."""
    keys = run.default_calls(kind)
    rows = {key: [*(words(key) for words in about.values()), seconds(run.times(key).mid)] for key in keys}
    return pivot(
        [*about, "tilecore"],
        [(rows[key], case, emphasis(it)) for key, case, it in run.ratios(keys, cases or run.others(kind))],
    )


def contests(run: Run, *kinds: str) -> list[tuple[Key, str, Times]]:
    """What of these kinds, or of all, tilecore and a peer did alike."""
    keys = [key for key in run.samples if key.ours and (key.kind in kinds or not kinds) and key.kind != "memory"]
    keys = [key for key in keys if key.kind != "warm" or key.case == "tilecore"]
    return [it for key in keys for it in run.ratios([key], [key.case.replace("tilecore", peer) for peer in PEERS])]


def losses(run: Run, *kinds: str) -> dict[str, str]:
    """By workload, the peers that are faster."""
    found: dict[str, list[str]] = {}
    for key, peer, ratio in contests(run, *kinds):
        if ratio.high < 1:
            found.setdefault(key.workload, []).append(f"{peer} {times(ratio.mid)}")
    return {workload: ", ".join(faster) for workload, faster in found.items()}


def list_losses(run: Run, *kinds: str) -> str:
    return "; ".join(f"{workload} ({faster})" for workload, faster in losses(run, *kinds).items()) or "none of them"


def count_losses(run: Run) -> str:
    found = contests(run)
    lost = dict.fromkeys(key.kind for key, _, ratio in found if ratio.high < 1)
    kinds = "".join(f"\n- {kind}: {list_losses(run, kind)}" for kind in lost)
    return f"in {sum(ratio.high < 1 for *_, ratio in found)} of {len(found)}{':' * bool(kinds)}\n{kinds}"


def shorten(run: Run) -> Run:
    """The README's rows, and every one in which tilecore is slower."""
    chosen = {*SHORT, *losses(run, "warm")}
    return run._replace(samples={key: values for key, values in run.samples.items() if key.workload in chosen})


def peers_table(run: Run, kind: str = "warm") -> str:
    return ratio_table(run, kind, NAMES | {"input × repeats": lambda key: run.shapes[key.group]}, PEERS)


def bounds_table(run: Run) -> str:
    keys = run.default_calls("warm")
    sides = ((key._replace(case=case), bound) for key in keys for bound, case in BOUNDS.items())
    return paired_table(run, ((key, bound, f"{bound} ÷ {key.case}") for key, bound in sides if key in run.samples))


def long_table(run: Run) -> str:
    sides = {"tilecore": "numpy", "tilecore out 1 thread": "memset"}
    keys = [key for key in run.samples if key.kind == "long" and key.case in sides]
    return paired_table(run, ((key, sides[key.case], f"{sides[key.case]} ÷ {key.case}") for key in keys))


def paired_table(run: Run, pairs: Iterable[tuple[Key, str, str]]) -> str:
    """The other's time relative to the key's, in the column of that name."""
    cells = (([key.workload], column, run.ratio(key, other)) for key, other, column in pairs)
    return pivot(["workload"], [(row, column, emphasis(it)) for row, column, it in cells if it])


def summary_table(run: Run, kind: str, name: Callable[[Key], str]) -> str:
    """A row for each of the others, over all workloads."""
    rows = []
    for case in run.others(kind):
        found = run.ratios(run.default_calls(kind), [case])
        if found:
            middle, (key, _, least) = median(it.mid for *_, it in found), min(found, key=lambda it: it[2].mid)
            cells = [case, str(len(found)), times(middle), times(least.mid), name(key) + run.shapes[key.group]]
            rows.append([*cells, str(sum(it.high < 1 for *_, it in found))])
    return table(["", "workloads", "median", "least", "at", "tilecore is clearly slower"], rows)


def programs_tables(run: Run) -> str:
    kinds = [kind for kind in PROGRAMS if run.default_calls(kind)]
    tables = (ratio_table(run, kind, cases=[*run.others(kind), "tilecore 1 thread"]) for kind in kinds)
    return "\n".join(f"{PROGRAMS[kind]}:\n\n{table}" for kind, table in zip(kinds, tables, strict=True))


def layouts_table(run: Run, kind: str) -> str:
    about = {
        "layout": lambda key: key.workload.rsplit(", ", 2)[0],
        "input × repeats": lambda key: run.shapes[key.group],
        "output": lambda key: size(run.nbytes[key.group]),
    }
    summary = summary_table(run, kind, lambda key: f"{about['layout'](key)}, ")
    return f"{summary}\n{fold('Every layout', ratio_table(run, kind, about))}"


def torch_table(run: Run) -> str:
    keys = [key for key in run.samples if key.kind in ("call", "step") and key.ours]
    counts = ((key, key.case.removeprefix("tilecore ")) for key in keys)
    return paired_table(run, ((key, f"torch {threads}", f"{key.kind}, {threads}") for key, threads in counts))


def threads_table(run: Run, kind: str) -> str:
    keys = [key for key in run.samples if key.kind == kind]
    return pivot([""], [([f"{key.case}: {key.workload}"], f"threads: {key.threads}", speed(run, key)) for key in keys])


def forms_tables(run: Run) -> str:
    """The workloads' names begin with a row and a column."""
    text = ""
    for kind in ("form", "input"):
        found = run.ratios(run.default_calls(kind), ["numpy"])
        names = [key.workload.partition(":")[0].partition(", ") for key, *_ in found]
        cells = [([row], column, it.mid) for (row, _, column), (*_, it) in zip(names, found, strict=True)]
        text += pivot([""], cells, lambda values: f"{times(median(values))}, {times(min(values))}") + "\n"
    return f"{text}tilecore is clearly slower at: {list_losses(run, 'form', 'input')}.\n"


def drawn_tables(run: Run) -> str:
    """How many are below 0.95, and which."""
    groups: dict[str, list[tuple[float, Key]]] = {}
    for key, peer, ratio in contests(run, "drawn", "references"):
        groups.setdefault(f"{key.kind}, {key.case}, {peer}", []).append((ratio.mid, key))
    text = ""
    for group, found in groups.items():
        slower = [(mid, key) for mid, key in sorted(found) if mid < SLOWER]
        text += f"- {group}: {len(found)} forms, median {times(median(mid for mid, _ in found))}, least "
        text += f"{times(min(found)[0])}, below {SLOWER}: {len(slower)}\n"
        text += "".join(f"  - {key.workload}: {run.shapes[key.group]}, {times(mid)}\n" for mid, key in slower)
    return text


def kinds_table(run: Run, kinds: dict[str, str]) -> str:
    """A column for each kind."""
    keys = [key for key in run.samples if key.kind in kinds]
    show = {"memory": lambda nbytes: f"{nbytes / 2**20:.0f} MiB", "tasks": "{:.0f}".format}
    cells = [(key, show.get(key.kind, seconds)(run.times(key).mid)) for key in keys]
    return pivot([""], [([f"{key.workload}: {key.case}"], kinds[key.kind], text) for key, text in cells])


def every_case(run: Run) -> str:
    rows = []
    for key in run.samples:
        if key.kind not in MANY:
            row = [key.workload, key.kind, key.case, str(key.threads or "")]
            rows.append([*row, *map(seconds, run.times(key)), speed(run, key)])
    spread = ["lower quartile", "median", "upper quartile"]
    return table(["workload", "kind", "case", "threads", *spread, "bytes a second"], rows)


def fold(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{text}\n</details>\n"


def speed(run: Run, key: Key) -> str:
    return f"{size(run.nbytes[key.group] / run.times(key).mid)}/s"


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
tilecore is clearly slower at: {losses}. Of all comparisons with these libraries in this report, by kind, it is clearly
slower {all_losses}

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

# Kinds, of which there must be one; a title, a text, and what makes the tables.
SECTIONS: list[tuple[set[str], str, str, Callable[[Run], str]]] = [
    ({"long"}, "One array to a batch", "", long_table),
    (
        {"fresh"},
        "In fresh memory",
        "Each result is kept, so the next one is written to memory that the system has to clear first.",
        lambda run: peers_table(run, "fresh"),
    ),
    (
        {*PROGRAMS},
        "In programs that do other things between the calls",
        "Each in a process of its own. Between the calls NumPy makes other arrays, large and small, and drops them.",
        programs_tables,
    ),
    (
        {"rival"},
        "Functions that do the same for some shapes",
        "numpy.?stack: by the axis; torch.expand: with `.contiguous()`. No ratio: the function does other work.",
        lambda run: ratio_table(run, "rival"),
    ),
    (
        {"program"},
        "Whole programs",
        '"other work" is the program with a result that was made before; what is above it is the time of the tilings.',
        lambda run: ratio_table(run, "program"),
    ),
    (
        {"copied", "tiled"},
        "By layout",
        """\
One thread. tilecore writes to memory that was written to before, and so do numpy (`numpy.copyto`) and memcpy
where the input is only copied. First copied into C order, all repeats 1; then tiled twice along each axis.""",
        lambda run: f"{layouts_table(run, 'copied')}\n{layouts_table(run, 'tiled')}",
    ),
    (
        {"call", "step"},
        "PyTorch tensors",
        """\
The time of `torch.tile` relative to `tilecore.integrations.torch.tile`, with as many threads for both. A step also
computes the gradient of the input.""",
        torch_table,
    ),
    (
        {"drawn", "references"},
        "Random forms",
        "Shapes, layouts, dtypes and repeats at random; what was slower was timed a second time, for longer.",
        drawn_tables,
    ),
    ({"threads"}, "By threads", "Into memory that was written to before.", lambda run: threads_table(run, "threads")),
    (
        {"scaling"},
        "Small calls of several threads at once",
        "Bytes written a second, by all of them together.",
        lambda run: threads_table(run, "scaling"),
    ),
    (
        {"form", "input"},
        "By form of the repeats, and by kind of input",
        "The time of `numpy.tile` relative to tilecore: the median of the calls, and the least.",
        forms_tables,
    ),
    (
        {*MEMORY},
        "By what is done with a large result",
        "Its memory is what the process has more once the result was read.",
        lambda run: kinds_table(run, MEMORY),
    ),
    ({*DASK}, "Lazy arrays of Dask", "By its threads.", lambda run: kinds_table(run, DASK)),
]


def report(run: Run, folder: Path | None) -> str:
    """The Markdown; with a folder, the charts are drawn there."""
    kinds = {key.kind for key in run.samples}

    def picture(name: str, about: str, run: Run = run) -> str:
        if folder is None:
            return ""
        import charts

        getattr(charts, f"draw_{name}")(run, folder / f"{name}.svg")
        return f"![{about}]({name}.svg)\n\n"

    text = REPORT.format(machine=as_list(run.machine))
    if run.default_calls("warm"):
        short = shorten(run)
        chart = picture("peers", "Time relative to tilecore, for each library and workload", short)
        tables = {"short": peers_table(short), "peers": peers_table(run), "bounds": bounds_table(run)}
        text += WARM.format(short_chart=chart, losses=list_losses(run, "warm"), all_losses=count_losses(run), **tables)
    if folder and "size" in kinds:
        text += "\n## By size\n\n" + picture("sizes", "Bytes written a second, by size") + SIZES
    for needed, title, about, tables in SECTIONS:
        if kinds & needed:
            text += "\n".join([f"\n## {title}\n", *([f"{about}\n"] if about else []), tables(run)])
    return f"{text}\n## Every case\n\n{fold('Median and quartiles', every_case(run))}"


def require(*names: str) -> None:
    for name in names:
        if importlib.util.find_spec(name) is None:
            raise SystemExit(f"{name} is not installed; in the clone: pip install '.[bench]'")


def measure(file: Path, options: Iterable[str]) -> bool:
    """Run the benchmarks into a file, or exit with what to do; whether one failed, and the file lacks it."""
    words = "-P -m pytest -q --benchmark-quiet --benchmark-json".split()
    command = [sys.executable, *words, file, HERE, *options]
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
        text, slower = judge.compare(old, new, as_list(busiest(new)))
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
