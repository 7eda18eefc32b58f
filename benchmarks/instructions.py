"""Instructions per byte of another processor's kernels and of plain C's; emulated times mean nothing.

    python benchmarks/instructions.py aarch64-linux-gnu-gcc qemu-aarch64

Compiles instructions.c, runs it under qemu-user, and prints a Markdown table of the kernel chosen for each
shape of rows, with a mark if plain C needs fewer instructions.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from tables import table

HERE = Path(__file__).parent
CORE = HERE.parent / "tilecore" / "_core"
NOISE = 1.05  # a ratio below it says nothing


def count_instructions(compiler, emulator):
    """{(row, repeats, pitch): {set: (kernel, instructions per byte)}} of the kernels that are chosen."""
    with tempfile.TemporaryDirectory() as folder:
        plugin, program = f"{folder}/plugin.so", f"{folder}/program"
        source, kernels = HERE / "instructions.c", CORE / "kernels" / "kernels.c"
        flags = ["-O2", "-shared", "-fPIC", "-DPLUGIN", source, "-o", plugin]
        subprocess.run(["cc", *flags], check=True)
        flags = ["-O3", "-static", f"-I{CORE}", source, kernels, "-o", program]
        subprocess.run([compiler, *flags], check=True)
        command = [emulator, "-d", "plugin", "-plugin", plugin, program]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = {}
    for line, count in zip(done.stdout.split(), done.stderr.split(), strict=True):
        its_set, kernel, chosen, *shape, nbytes = line.split(",")
        if chosen == "1":
            of_shape = found.setdefault(tuple(map(int, shape)), {})
            of_shape[its_set] = kernel, int(count) / int(nbytes)
    return found


def main():
    compiler, emulator = sys.argv[1:]
    rows = []
    for (row, repeats, pitch), by_set in count_instructions(compiler, emulator).items():
        (kernel, of_best), (plain, of_plain) = next(iter(by_set.values())), by_set["scalar"]
        apart = ", apart" if pitch != row else ""
        loses = " plain C wins" if of_best > of_plain * NOISE else ""
        cells = [f"{row} × {repeats}{apart}", kernel, f"{of_best:.3f}", f"{of_plain:.3f} ({plain})"]
        rows.append([*cells, f"{of_plain / of_best:.2f}{loses}"])
    header = ["row × repeats", "chosen", "instructions per byte", "plain C", "plain C over chosen"]
    print(table(header, rows), end="")


if __name__ == "__main__":
    main()
