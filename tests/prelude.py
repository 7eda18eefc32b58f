"""What every program of the tests begins with: see `program` in conftest.py."""
# ruff: noqa: F401

import ctypes
import operator
import os
import signal
import sys
import threading
import time
from _thread import interrupt_main
from contextlib import suppress
from functools import partial
from glob import glob

import numpy
import numpy as np

import tilecore

with suppress(ImportError):  # Windows has none
    import resource

MIB = 2**20


def together(*works):
    """Run each work in a thread of its own, at the same time, until Linux counts none. What one raises is raised."""
    wrong, start = [], threading.Barrier(len(works))

    def run(work):
        try:
            start.wait(), work()
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    while any(os.path.exists(f"/proc/self/task/{thread.native_id}") for thread in threads):
        time.sleep(0.001)
    for error in wrong[:1]:
        raise error


def refuse(call, kind, text=""):
    """The call must raise this kind of error, with this text in its message."""
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"expected {kind}: {text}")


def interrupted(call, *arguments, **keywords):
    """The result of a call, of a function in C, during which a signal arrives."""
    return list(map(operator.call, [interrupt_main, partial(call, *arguments, **keywords)]))[1]


def forked(work):
    """Work in a child process, which must end well."""
    if not (child := os.fork()):
        try:
            work(), os._exit(0)
        except BaseException:
            sys.excepthook(*sys.exc_info()), os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def status(name):
    """The bytes that Linux shows for the process under this name."""
    with open("/proc/self/status") as file:
        sizes = dict(line.split(":", 1) for line in file)
    return int(sizes[name].split()[0]) << 10


def threads():
    """The process's threads, as Linux counts them."""
    return {int(task) for task in os.listdir("/proc/self/task")}


def mapped(array):
    """Whether it is tile_mapped's own, not an ordinary copy."""
    return type(array.base).__name__ == "Mapping"


def mappings():
    """The number of the process's mappings of tilecore's files."""
    with open("/proc/self/maps") as file:
        return file.read().count("memfd:tilecore")


def descriptors_now(of="/memfd:tilecore"):
    """What the process has open: of tilecore, or all if `of` is empty."""
    return sorted(path for path in map(os.path.realpath, glob("/proc/self/fd/*")) if path.startswith(of))
