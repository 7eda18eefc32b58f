"""Programs in files, and how Python or a command runs them."""

import py_compile
import subprocess
import sys
import zipfile

INPUT = "import sys; print(sys.argv, sys.path[:1], __name__, __loader__); 1 / 0"


def written(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
        if name == "other/inside/x":
            (folder / "link").symlink_to(path.parent)
        if name == "script.pyc":
            py_compile.compile(str(path), str(path), "script.py")
        if name.endswith(".zip"):
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("__main__.py", text)


def ran(folder, *command, python=sys.executable):
    command = [python, *command]
    done = subprocess.run(command, cwd=folder, input=INPUT, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr
