"""One of a pool's worker processes: reads pieces of work from its standard input, and answers on its standard output.

It is run as a file and takes planvec for a bare folder of modules, so that it starts without jax: in a fraction of the
time and the memory. It ends when its input does, or when its parent is gone.
"""

import os
import pickle
import signal
import sys
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import BinaryIO


def _take_for_bare_folders(folder: Path) -> None:
    """Let planvec's modules be imported without the packages' own __init__, which import jax."""
    for name in ("planvec", "planvec.worlds"):
        package = ModuleType(name)
        package.__path__ = [str(folder.joinpath(*name.split(".")))]
        sys.modules[name] = package


def _end_with_parent() -> None:
    """The input may be held open by other children of a parent that was killed."""
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _serve(requests: BinaryIO, answers: BinaryIO) -> None:
    from planvec.worlds.tabletop.pool import work
    from planvec.worlds.tabletop.simulator import Simulator

    simulator = Simulator()
    while True:
        try:
            request = pickle.load(requests)
        except (EOFError, pickle.UnpicklingError):  # the second: in the middle of a request
            return
        try:
            answer = work(simulator, *request)
        except Exception as error:  # for the parent to raise
            answer = error
        pickle.dump(answer, answers, protocol=pickle.HIGHEST_PROTOCOL)
        answers.flush()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends its workers
    _take_for_bare_folders(Path(__file__).parents[3])
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever else is printed must not mix with the answers
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        _serve(sys.stdin.buffer, answers)
    except BrokenPipeError:
        os._exit(1)  # the parent is gone: nothing to tell, nobody to tell it to


if __name__ == "__main__":
    main()
