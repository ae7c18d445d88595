"""Looking at processes, and work for them to do."""

import os
import sys
import time
from pathlib import Path


def pids(pool):
    return [worker.process.pid for worker in pool._processes]


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def comes_true(what, seconds=10.0):
    until = time.monotonic() + seconds
    while not what() and time.monotonic() < until:
        time.sleep(0.02)
    return what()


def gone(numbers):
    return comes_true(lambda: not any(map(is_alive, numbers)))


class Unspeakable(Exception):
    """An error that cannot be pickled."""

    def __reduce__(self):
        raise TypeError("no")


def start(*options):
    """A worker that runs whichever of these functions it is told to."""
    tasks = {"square": lambda x: x * x, "sleep": _sleep, "fail": _fail, "print": print, "die": os._exit}
    tasks |= {"fail unspeakably": lambda: _fail(Unspeakable())}
    tasks |= {"options": lambda: options, "setting": os.environ.get}
    tasks |= {"worker": os.getpid, "modules": lambda: set(sys.modules)}
    return lambda piece: tasks[piece[0]](*piece[1:])


def _sleep(seconds):
    time.sleep(seconds)
    return seconds


def _fail(error):
    raise error
