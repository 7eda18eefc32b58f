"""`python tests/build.py FOLDER` builds the sdist, and from it the wheel, by tools of their own.

It leaves in FOLDER an environment `tools`, a copy `tree` of the sources, both files, and `unpacked`, the sdist in which
the wheel was built. Its modules may be slow, so CFLAGS compile them in a hurry; Cython runs once, for the sdist.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent


def run(*command, env=None):
    subprocess.run(command, check=True, env=env)


def build(folder):
    venv.create(folder / "tools", with_pip=False)
    tools = folder / "tools" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    pip = (sys.executable, "-m", "pip", "--python", tools, "--disable-pip-version-check", "--quiet")
    run(*pip, "install", "build>=1.2", *needed)

    tree, unpacked = folder / "tree", folder / "unpacked"
    ignored = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "*.so")
    shutil.copytree(ROOT, tree, ignore=ignored)
    command = (tools, "-m", "build", "--no-isolation", "--outdir", folder)
    run(*command, "--sdist", tree)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
        (folder / archive.getnames()[0].partition("/")[0]).rename(unpacked)
    (tree / "build").rename(unpacked / "build")
    run(*command, "--wheel", unpacked, env={**os.environ, "CFLAGS": os.environ.get("CFLAGS", "") + " -O0 -g1"})


if __name__ == "__main__":
    build(Path(sys.argv[1]).resolve())
