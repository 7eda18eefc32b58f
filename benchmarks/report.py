"""pytest-benchmark's JSON as Markdown and charts, and the comparison of two versions.

    pytest benchmarks --benchmark-json=new.json
    python benchmarks/report.py new.json --output FOLDER            # report.md and its charts
    python benchmarks/report.py new.json --against old.json --fail  # 1 if a case became slower: see judge.py

Without --output it prints the Markdown. Either side may be several files, runs of the same version: the more of them,
the smaller the difference that can be told from noise.
"""

import argparse
import importlib.util
import sys
from collections.abc import Collection
from math import exp, log
from pathlib import Path
from statistics import mean, median

import judge
from machine import as_list
from peers import PEERS
from runs import Key, Run, Times, busiest, keep, load, merge
from tables import pivot, seconds, table, times

# A bound, and the case of tilecore that it bounds.
BOUNDS = dict.fromkeys(("memset", "memcpy"), "tilecore out 1 thread") | {"memset 2 threads": "tilecore out 2 threads"}
IN_BYTES = ("memory", "peak")  # these kinds are not timed
SHORT = ("a few numbers", "short rows", "gray to RGB", "one image to a batch")  # the picture; three are in README
SHORT += ("attention heads", "a large matrix")


# ---------------------------------------------------------------- tables: empty if a run has no such cases


def emphasis(ratio: Times) -> str:
    """Bold if the difference is clear: tilecore is faster, or slower, in three quarters of the rounds."""
    mark = "**" if ratio.low > 1 or ratio.high < 1 else ""
    return f"{mark}{times(ratio.mid)}{mark}"


def ratio_table(run: Run, kind: str, cases: Collection[str] = PEERS, column: str = "") -> str:
    """A row for each workload: tilecore's time, and the times of these cases relative to it, each in a column of its
    own, or all in one of this name."""
    keys = run.calls(kind)
    rows = {key: [key.workload, run.shapes[key.group], seconds(run.times(key).mid)] for key in keys}
    found = ((rows[key], case, emphasis(ratio)) for key, case, ratio in run.ratios(keys, cases))
    cells = ((row, column or case, f"{case} {text}" if column else text) for row, case, text in found)
    return pivot(["workload", "input × repeats", "tilecore"], cells)


def summary_table(run: Run, kind: str, cases: Collection[str] = PEERS) -> str:
    """A row for each of the cases, over all workloads; below it, folded, every workload."""
    rows = []
    for case in cases:
        if found := run.ratios(run.calls(kind), [case]):
            middle, (key, _, least) = median(it.mid for *_, it in found), min(found, key=lambda it: it[2].mid)
            cells = [case, str(len(found)), times(middle), times(least.mid), f"{key.workload}: {run.shapes[key.group]}"]
            rows.append([*cells, str(sum(it.high < 1 for *_, it in found))])
    summary = table([kind, "workloads", "median", "least", "at", "tilecore is clearly slower"], rows)
    return f"{summary}\n{fold('Every workload', ratio_table(run, kind, cases))}" if rows else ""


def contests(run: Run, *kinds: str) -> list[tuple[Key, str, Times]]:
    """Of these kinds, or of all: tilecore, and a peer that was called in the same way."""
    keys = [key for key in run.samples if key.ours and (key.kind in kinds or not kinds) and key.kind not in IN_BYTES]
    return [it for key in keys for it in run.ratios([key], [key.case.replace("tilecore", peer) for peer in PEERS])]


def contests_table(run: Run, *kinds: str) -> str:
    """A column for each kind and way to call a peer."""
    cells = (([key.workload], f"{key.kind}, {peer}", emphasis(ratio)) for key, peer, ratio in contests(run, *kinds))
    return pivot(["workload"], cells)


def losses(run: Run, *kinds: str) -> list[tuple[Key, str, Times]]:
    return [it for it in contests(run, *kinds) if it[2].high < 1]


def losses_table(run: Run) -> str:
    rows = (((key.kind, key.workload, run.shapes[key.group]), peer, ratio) for key, peer, ratio in losses(run))
    cells = ((row, "faster than tilecore", f"{peer} (in {ratio.mid:.0%} of the time)") for row, peer, ratio in rows)
    return pivot(["kind", "workload", "input × repeats"], cells)


def bounds_table(run: Run, kind: str) -> str:
    sides = ((run.calls(kind, case), bound) for bound, case in BOUNDS.items())
    found = (it for keys, bound in sides for it in run.ratios(keys, [bound]))
    return pivot(["workload"], (([key.workload], f"{bound} ÷ {key.case}", emphasis(it)) for key, bound, it in found))


def limit_shares(run: Run) -> dict[Key, float]:
    """The speed of tilecore's calls relative to the limit, by the threads that the call may use."""
    keys = [key for key in run.samples if key.kind == "limit" and key.ours]
    found = ((key, run.ratio(key, "limit 1 thread" if "1 thread" in key.case else "limit")) for key in keys)
    return {key: ratio.mid for key, ratio in found if ratio}


def limits_table(run: Run) -> str:
    """A row for each kind and size, a column for each state of the caches and the program; and the mean and lowest."""
    shares = limit_shares(run)
    if not shares:
        return ""
    names = {key: key.workload.partition(", ") for key in shares}
    cells = [([row], state, f"{shares[key]:.2f}") for key, (row, _, state) in names.items() if "," not in key.case]
    middle, least = mean(min(share, 1) for share in shares.values()), min(shares, key=shares.__getitem__)
    other = [shares[key] / shares[key._replace(case=key.case.partition(",")[0])] for key in shares if "," in key.case]
    text = (
        f"The mean is {middle:.2f}, if shares above 1 count as 1. The lowest is {shares[least]:.2f}: {least.words}.\n"
    )
    text += f"Calls in another thread than the main one have {mean(other):.2f} times the speed.\n"
    return f"{pivot(['default, one thread'], cells)}\n{text}"


def small_table(run: Run) -> str:
    """Each small result: the time of a call over the creation of its result. Then each door: its time above `tile`."""
    found = {key: 1 / ratio.mid for key in run.calls("small") if (ratio := run.ratio(key, "creation"))}
    rows = ([key.workload, seconds(run.times(key).mid), f"{share:.2f}"] for key, share in found.items())
    text = table(["result", "tilecore", "over its creation"], rows)
    if found:
        text += f"\nThe mean is {exp(mean(map(log, found.values()))):.2f}, the highest {max(found.values()):.2f}.\n\n"
    cells = []
    for key in (key for key in run.samples if key.kind == "door" and key.ours and "," in key.case):
        pairs = zip(run.samples[key], run.samples[key._replace(case="tilecore")], strict=False)
        above = f"{1e9 * median(a - b for a, b in pairs):.0f}"
        cells.append(([key.case.removeprefix("tilecore, ")], f"{key.workload}, ns above tile", above))
    return text + pivot(["door"], cells)


def kinds_table(run: Run, *kinds: str) -> str:
    """A column for each kind."""
    keys = [key for key in run.samples if key.kind in kinds]
    show = dict.fromkeys(IN_BYTES, lambda nbytes: f"{nbytes / 2**20:.0f} MiB")
    cells = [(key, show.get(key.kind, seconds)(run.times(key).mid)) for key in keys]
    return pivot([""], [([f"{key.workload}: {key.case}"], key.kind, text) for key, text in cells])


def fold(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{text}\n</details>\n"


def draw(run: Run, folder: Path) -> dict[str, str]:
    """The charts that the run has cases for, as SVG in the folder; links to them."""
    import charts

    short = {*SHORT, *(key.workload for key, *_ in losses(run, "warm"))}
    few = run._replace(samples={key: values for key, values in run.samples.items() if key.workload in short})
    links = {}
    if few.calls("warm"):
        charts.draw_peers(few, folder / "peers.svg")
        links["peers"] = "![Time relative to tilecore, for each library and workload](peers.svg)"
    if shares := limit_shares(run):
        charts.draw_limits(run, folder / "limits.svg", shares)
        links["limits"] = "![Speed relative to the fastest plain loop in C, by size](limits.svg)"
    return links


def report(run: Run, folder: Path | None) -> str:
    """The Markdown; with a folder, the charts are drawn there. Sections without a table or chart are left out."""
    pictures = draw(run, folder) if folder else {}
    head = f"""\
# Benchmarks

{as_list(run.machine)}
Made by `python benchmarks/report.py`. Every result was verified before it was timed. The cases of a
workload took turns.

Ratios are times relative to tilecore: higher means that tilecore is faster. Each is the median over the
rounds; bold if the difference is clear, above 1 or below 1 in three quarters of the rounds. f4 is
float32, f2 float16, u1 uint8.

Of {len(contests(run))} comparisons with {", ".join(PEERS)}, tilecore is clearly slower in {len(losses(run))}."""
    # A title, texts and tables.
    sections = [
        ["In short", pictures.get("peers"), """\
Default calls in a loop, each result dropped before the next call: the README's workloads, some others, and every one in
which tilecore is clearly slower. The next table has the losses of all kinds of calls.
"""],
        ["Where tilecore is clearly slower", losses_table(run)],
        ["All workloads", "The default call of each library. Each result is dropped before the next call.",
         ratio_table(run, "warm")],
        ["The bounds", "memset and memcpy write as many bytes to memory that was written to before, and tile nothing.",
         bounds_table(run, "warm")],
        ["Small results", """\
Of 86,666 calls with results of up to 64 KiB, recorded in 20 projects, nine in ten made results of up to 1 KB. Their
limit is the creation of the result, with nothing written, by one call of a compiled function (`creation.c`).
""", small_table(run), summary_table(run, "small")],
        ["The limit", pictures.get("limits"), """\
Speed relative to the fastest of several plain loops in C that write the same bytes: by one thread, and by the default,
which is compared with loops by one thread and by two. "Cold": the source is removed from the caches before each call.
""", limits_table(run)],
        ["One array to a batch", ratio_table(run, "long"), bounds_table(run, "long")],
        ["In fresh memory",
         "Each result is kept, so the next one is written to memory that the system has to clear first.",
         ratio_table(run, "fresh")],
        ["In programs that do other things between the calls", """\
Each in a process of its own. Between the calls NumPy makes other arrays, large and small, and drops them.""",
         ratio_table(run, "work"),
         "With what uses the result in the same time: a sum, an addition in place, and every fourth item doubled.",
         ratio_table(run, "use")],
        ["Beside other processes", """\
The same programs, each beside two processes for each CPU that compute, copy arrays, or start processes.""",
         ratio_table(run, "busy", ["numpy", "tilecore 1 thread"])],
        ["The first call of a process", ratio_table(run, "first")],
        ["In programs with results of random sizes",
         "By how much is alive at most, and the largest size; the repeats make a result of the mean size.",
         ratio_table(run, "sizes")],
        ["In random programs", "Processor time of a step that tiles and does two to seven other things.",
         summary_table(run, "mixed")],
        ["Functions that do the same for some shapes", """\
numpy.?stack: by the axis; torch.expand: with `.contiguous()`. A function that is not named does other work.""",
         ratio_table(run, "rival", run.others("rival"), "time relative to tilecore")],
        ["Whole programs of other projects",
         "The input, repeats and dtype are those of one of a program's tilings.",
         ratio_table(run, "program", ["numpy"])],
        ["What follows a tiling", """\
"broadcast": NumPy's operation repeats the input itself; "made once": with an earlier result; "advised": see
docs/what-follows.md.""", ratio_table(run, "following", ["numpy", "broadcast", "tile_view", "made once", "advised"])],
        ["By layout: copied into C order", """\
All repeats are 1. One thread. tilecore, numpy (`numpy.copyto`) and memcpy write to memory that was written to before.
""", summary_table(run, "copied", ["numpy", "torch", "memcpy"])],
        ["By layout: tiled twice along each axis",
         "One thread. tilecore writes to memory that was written to before.", summary_table(run, "tiled")],
        ["PyTorch tensors", """\
The time of `torch.tile` relative to `tilecore.integrations.torch.tile`, with as many threads for both. A step also
computes the gradient of the input.""", contests_table(run, "call", "step")],
        ["Random forms", """\
Shapes, layouts, dtypes and repeats at random. First numbers, then references: objects and strings.""",
         summary_table(run, "drawn"), summary_table(run, "references")],
        ["Calls of other projects, and kinds of input", summary_table(run, "form"), summary_table(run, "input")],
        ["By what is done with a large result", """\
The time to get it, to read and to write all of it. Its memory is what the process has more once the result was read;
the peak, once it was dropped and another array of its size was made.
""", kinds_table(run, "get", "read", "write", "memory", "peak")],
        ["Lazy arrays of Dask", "By its threads: the call alone, with the sum of the result, with the whole result.",
         kinds_table(run, "built", "summed", "whole")],
    ]  # fmt: skip
    texts = ["\n\n".join([f"## {title}", *(part.strip() for part in parts if part)]) for title, *parts in sections]
    return "\n\n".join([head, *(text for text in texts if "\n| " in text or "\n![" in text)]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("new", nargs="+", type=Path, help="JSON of pytest-benchmark")
    parser.add_argument("--against", nargs="+", type=Path, metavar="OLD", help="an older version")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="for report.md and charts")
    parser.add_argument("--fail", action="store_true", help="exit with 1 if a case became slower")
    arguments = parser.parse_args()
    folder, slower = arguments.output, False
    if arguments.fail and not arguments.against:
        parser.error("--fail needs --against")
    if folder:
        if not arguments.against and importlib.util.find_spec("matplotlib") is None:
            parser.error("the charts need matplotlib; in the clone: pip install '.[bench]'")
        folder.mkdir(parents=True, exist_ok=True)
    runs = [load(path) for path in arguments.new]
    if arguments.against:
        text, slower = judge.compare([load(path) for path in arguments.against], runs, as_list(busiest(runs)))
    else:
        text = report(merge(runs), folder)
    if folder:
        path = folder / ("comparison.md" if arguments.against else "report.md")
        path.write_text(text, encoding="utf-8")
        print(path)
        for new in arguments.new:
            if new.parent != folder:
                keep(new, folder)
    else:
        print(text)
    sys.exit(arguments.fail and slower)


if __name__ == "__main__":
    main()
