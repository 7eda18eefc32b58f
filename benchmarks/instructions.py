"""Instructions per byte of the kernels of another processor, against plain C's: where times mean nothing.

    python benchmarks/instructions.py aarch64-linux-gnu-gcc qemu-aarch64

Compiles instructions.c, runs it under qemu-user, and prints a Markdown table of what is chosen for each
shape of rows, with a mark where plain C does with fewer instructions.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
CORE = HERE.parent / "tilecore" / "_core"
NOISE = 1.05  # between the two, that says nothing


def counted(compiler, emulator):
    """{(row, repeats, pitch): {set: (kernel, instructions per byte)}} of the kernels that are chosen."""
    with tempfile.TemporaryDirectory() as folder:
        plugin, program = f"{folder}/plugin.so", f"{folder}/program"
        source, kernels = HERE / "instructions.c", CORE / "kernels" / "kernels.c"
        subprocess.run(
            ["cc", "-O2", "-shared", "-fPIC", "-DPLUGIN", source, "-o", plugin], check=True
        )
        flags = ["-O3", "-static", f"-I{CORE}", source, kernels, "-o", program]
        subprocess.run([compiler, *flags], check=True)
        command = [emulator, "-d", "plugin", "-plugin", plugin, program]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = {}
    for line, count in zip(done.stdout.split(), done.stderr.split(), strict=True):
        its_set, kernel, chosen, *shape, nbytes = line.split(",")
        if chosen == "1":
            found.setdefault(tuple(map(int, shape)), {})[its_set] = (
                kernel,
                int(count) / int(nbytes),
            )
    return found


def main():
    compiler, emulator = sys.argv[1:]
    print("| row × repeats | chosen | instructions per byte | plain C | plain C over chosen |")
    print("| --- | --- | --- | --- | --- |")
    for (row, repeats, pitch), by_set in counted(compiler, emulator).items():
        (kernel, of_best), (plain, of_plain) = next(iter(by_set.values())), by_set["scalar"]
        apart = ", apart" if pitch != row else ""
        loses = " plain C wins" if of_best > of_plain * NOISE else ""
        print(
            f"| {row} × {repeats}{apart} | {kernel} | {of_best:.3f} | {of_plain:.3f} ({plain}) ",
            end="",
        )
        print(f"| {of_plain / of_best:.2f}{loses} |")


if __name__ == "__main__":
    main()
