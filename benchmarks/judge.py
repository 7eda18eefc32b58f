"""Whether a version is faster or slower than another: the comparison of `report.py --against`.

Times are relative to memset, numpy or the limit in the same run, on the same workload. A case is reported as faster
or slower only if the quartiles of all runs part, for all yardsticks, and if the change exceeds what the
peers seem to change: they did not, so that is noise.
"""

from collections.abc import Iterable, Sequence
from math import exp, log

from runs import Key, Run, Times, merge, pool
from tables import table

YARDSTICKS = ("memset", "numpy", "limit")
SAME = "no difference beyond noise"
MIN_CHANGE = 1.05  # a smaller one is never reported, however quiet the machine
ERRORS = 20  # one of so many peers and bounds may seem to have changed


def relative(runs: Sequence[Run], key: Key) -> dict[str, Times]:
    """By yardstick, its time over the case's."""
    found: dict[str, list[Times]] = {}
    for run in runs:
        for yardstick in YARDSTICKS:
            if key.case != yardstick and key in run.samples and (it := run.ratio(key, yardstick)):
                found.setdefault(yardstick, []).append(it)
    return {yardstick: pool(ratios) for yardstick, ratios in found.items()}


def changes(old: Sequence[Run], new: Sequence[Run], key: Key) -> list[tuple[float, int]]:
    """For each yardstick: new time over old, and 1 (slower) or -1 if the quartiles part."""
    before, after = relative(old, key), relative(new, key)
    found = []
    for yardstick in before.keys() & after.keys():
        a, b = before[yardstick], after[yardstick]
        found.append((a.mid / b.mid, (b.high < a.low) - (b.low > a.high)))
    return found


def middle_change(found: Sequence[tuple[float, int]]) -> float:
    return exp(sum(log(change) for change, _ in found) / len(found))


def judge(found: Sequence[tuple[float, int]], floor: float = 1.0) -> str:
    """Faster or slower only if every yardstick says so, beyond quartiles and beyond noise."""
    change = middle_change(found)
    for word, sign in (("slower", 1), ("faster", -1)):
        if all(parted == sign for _, parted in found) and change**sign > floor:
            return word
    return SAME


def measure_noise(old: Sequence[Run], new: Sequence[Run], keys: Iterable[Key]) -> float:
    """Peers and bounds did not change: at most one in ERRORS of them seems to have changed by more than this."""
    unchanged = [found for key in keys if not key.ours and (found := changes(old, new, key))]
    told = [abs(log(middle_change(found))) for found in unchanged if judge(found) != SAME]
    return exp(sorted([*told, 0.0], reverse=True)[min(len(told), len(unchanged) // ERRORS)])


def compare(old: Sequence[Run], new: Sequence[Run], machine: str) -> tuple[str, bool]:
    """The Markdown, and whether something became slower."""
    shared = [key for key in merge(new).samples if key in merge(old).samples]
    floor = max(MIN_CHANGE, measure_noise(old, new, shared))
    found = ((changes(old, new, key), key) for key in shared if key.ours)
    verdicts = [(judge(change, floor), middle_change(change), key) for change, key in found if change]
    if not verdicts:
        raise SystemExit("no case of tilecore has a yardstick in both files")
    count = {word: sum(verdict[0] == word for verdict in verdicts) for word in ("faster", "slower")}

    def rows(chosen):
        cells = ([key.words, f"{change:.2f}", word] for word, change, key in chosen)
        return table(["case", "new time ÷ old", "verdict"], cells)

    told = sorted((verdict for verdict in verdicts if verdict[0] in count), key=lambda v: -v[1])
    text = f"""\
# Comparison

{machine}
Of {len(verdicts)} cases {count["faster"]} became faster, {count["slower"]} slower. The others show no difference \
beyond noise.
Times are relative to {" and ".join(YARDSTICKS)}, by turns in the same run, and all of these must agree.
No change below a factor of {floor:.2f} is reported: the peers and bounds did not change, and at most one in {ERRORS}
of them seems to have changed by more.

"""
    text += f"{rows(told)}\n" if told else ""
    text += f"<details><summary>Every case</summary>\n\n{rows(verdicts)}\n</details>\n"
    return text, count["slower"] > 0
