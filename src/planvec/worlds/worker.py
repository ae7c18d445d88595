"""One of a pool's worker processes: reads pieces of work from its standard input, and answers on its standard output.

    python worker.py PARENT MODULE FUNCTION OPTION…

The module's function is called with the options, and gives a function from a piece of work to its answer.

It is run as a file and takes planvec for a bare folder of modules, so that it starts without jax: in a fraction of the
time and the memory. It ends when its input does, or when its parent is gone.
"""

import importlib
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO


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


def _serve(work: Callable[[Any], Any], requests: BinaryIO, answers: BinaryIO) -> None:
    while True:
        try:
            piece = pickle.load(requests)
        except (EOFError, pickle.UnpicklingError):  # the second: in the middle of a piece
            return
        try:
            answer = work(piece)
        except Exception as error:  # for the parent to raise
            answer = _sent(error)
        pickle.dump(answer, answers, protocol=pickle.HIGHEST_PROTOCOL)
        answers.flush()


def _sent(error: Exception) -> Exception:
    """Not all errors survive the pipe; of those that do not, what they say."""
    try:
        return pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(repr(error))


def main() -> None:
    parent, module, function, *options = sys.argv[1:]
    _take_for_bare_folders(Path(__file__).parents[2])
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever else is printed must not mix with the answers
    work = getattr(importlib.import_module(module), function)(*options)
    threading.Thread(target=_end_with, args=[int(parent)], daemon=True).start()
    with suppress(BrokenPipeError):  # the parent is gone: nothing to tell, nobody to tell it to
        _serve(work, sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
