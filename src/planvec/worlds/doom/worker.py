"""One of a pool's worker processes: reads states from its standard input, and answers on its output: with an error or
None, and after None with the pictures' bytes.

    python worker.py PARENT LEVEL LARGE

It is run as a file and takes planvec for a bare folder of modules, so that it starts without jax: in a fraction of the
time and the memory. It ends when its input does, or when its parent is gone.
"""

import os
import pickle
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import BinaryIO


def _take_for_bare_folders(folder: Path) -> None:
    """Let planvec's modules be imported without the packages' own __init__, which import jax."""
    for name in ("planvec", "planvec.worlds"):
        package = ModuleType(name)
        package.__path__ = [str(folder.joinpath(*name.split(".")))]
        sys.modules[name] = package


def _end_with(parent: int) -> None:
    """The input may be held open by other children of a parent that was killed."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _start_engine(level: str, large: bool) -> "Engine":  # noqa: F821
    """Uninterrupted: until it runs, its shared memory and its files have names and would be left behind."""
    from planvec.worlds.doom.engine import Engine

    deferred = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, deferred)
    engine = Engine(level, large)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, deferred)
    return engine


def _serve(engine: "Engine", requests: BinaryIO, answers: BinaryIO) -> None:  # noqa: F821
    from planvec.worlds.doom.engine import ENGINE_ERRORS
    from planvec.worlds.doom.motion import State

    while True:
        try:
            request = pickle.load(requests)
        except (EOFError, pickle.UnpicklingError):  # the second: in the middle of a request
            return
        try:
            pictures, failure = engine.draw(State(*request)).tobytes(), None
        except ENGINE_ERRORS:  # the engine died: so does this process, and the pool starts another one
            return
        except Exception as error:  # for the parent to raise
            pictures, failure = b"", error
        pickle.dump(failure, answers)
        answers.write(pictures)
        answers.flush()


def main() -> None:
    parent, level, large = sys.argv[1:]
    _take_for_bare_folders(Path(__file__).parents[3])
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever else is printed must not mix with the answers
    engine = _start_engine(level, large == "True")
    threading.Thread(target=_end_with, args=[int(parent)], daemon=True).start()
    with suppress(BrokenPipeError):  # the parent is gone: nothing to tell, nobody to tell it to
        _serve(engine, sys.stdin.buffer, answers)
    engine.close()


if __name__ == "__main__":
    main()
