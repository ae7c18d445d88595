"""Run as a program while an engine starts: should that fail, takes away the engine's folder and its shared memory.

    python sweep.py FOLDER

It ends when it reads a line. It sets to work when its input just ends: the process that starts the engine was killed.
"""

import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path

LINGER = 1.0  # seconds: longer than the engine outlives that process, and than any takes to map memory that it has made


def sweep(memory: str) -> None:
    """Take away shared memory of such names that nobody has, except what was made just now."""
    used = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is somebody else's
            used |= {line.split(maxsplit=5)[-1] for line in (process / "maps").read_text().splitlines()}
    for path in Path("/dev/shm").glob(memory):
        with suppress(OSError):  # somebody else took it away, or owns it
            if str(path) not in used and path.stat().st_ctime < time.time() - LINGER:
                path.unlink()


if __name__ == "__main__":
    if not sys.stdin.readline():
        time.sleep(2 * LINGER)
        shutil.rmtree(sys.argv[1], ignore_errors=True)
        sweep("ViZDoom*")
