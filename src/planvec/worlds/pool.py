"""Work that is given out in pieces to processes, on all cores.

Each worker is fed through pipes by a thread of its own. A piece's answer must follow from the piece alone: then it does
not matter who does which, nor how often. The results are the same for any number of workers, and what a worker was
doing when it died, or hung, is simply done again.
"""

import math
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Self

from planvec.errors import Failure, InputError

LARGEST = 64  # rows in a piece
ATTEMPTS = 3  # how often a piece is begun before the pool gives up
LIMIT = 120.0  # seconds for a piece, which takes one or two; whoever takes longer hangs, and is killed
PATIENCE = 10.0  # seconds for a worker to end by itself

_WORKER = (sys.executable, "-P", str(Path(__file__).with_name("worker.py")))


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Pool:
    """Workers for a `with` block."""

    pieces = 8  # of work for each worker, so that none waits long for the others

    def __init__(
        self,
        start: Callable[..., Callable[[Any], Any]],
        *options: str,
        workers: int,
        settings: Mapping[str, str] | None = None,
        here: bool = False,
    ) -> None:
        """In each worker `start`, a function of a module, is called with the options; what it returns does the pieces.

        `settings`: for the workers' environment. `here`: a single worker is no process, but works in this one.
        """
        if workers < 1:
            raise InputError(f"a pool has at least one worker; got {workers}")
        self.workers = workers
        self._work = start(*options) if here and workers == 1 else None
        command = (*_WORKER, str(os.getpid()), start.__module__, start.__name__, *options)
        self._processes = [_Worker(command, settings or {}) for _ in range(0 if self._work else workers)]
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        for worker in self._processes:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="pool")
        self._open = True

    def parts(self, count: int) -> list[slice]:
        """So many rows cut into pieces."""
        size = max(1, min(math.ceil(count / (self.workers * self.pieces)), LARGEST))
        return [slice(begin, min(begin + size, count)) for begin in range(0, count, size)]

    def share(self, pieces: Iterable[Any]) -> Iterator[Any]:
        """Give pieces of work to whoever is free; their answers, in order."""
        if not self._open:
            raise InputError("this pool is closed; open another one")
        if self._work:
            yield from map(self._work, pieces)
            return
        try:
            yield from self._threads.map(self._do, pieces)
        except CancelledError:
            raise InputError("the pool was closed while it was at work") from None

    def close(self) -> None:
        """End the workers when they have done what they are at."""
        self._open = False
        self._threads.shutdown(cancel_futures=True)
        for worker in self._processes:
            worker.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _do(self, piece: Any) -> Any:
        worker = self._idle.get()
        try:
            answer = worker.do(piece)
        finally:
            self._idle.put(worker)
        if isinstance(answer, Exception):
            raise answer
        return answer


class _Worker:
    """A process that does one piece of work at a time."""

    def __init__(self, command: tuple[str, ...], settings: Mapping[str, str]) -> None:
        self._command = command
        self._settings = dict(settings)
        self._start()

    def do(self, piece: Any) -> Any:
        """Have a piece done; if the process dies or hangs over it, by another one. The answer may be an error."""
        for _ in range(ATTEMPTS):
            try:
                return self._ask(piece)
            except (EOFError, OSError, pickle.UnpicklingError):
                self.end()
                self._start()
        return Failure(f"{ATTEMPTS} workers died or hung over the same piece of work")

    def end(self) -> None:
        """It ends when its input does: by itself, so that it can close what it has opened."""
        with suppress(OSError):  # what could not be written is still in its buffer
            self._questions.close()
        self._answers.close()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _start(self) -> None:
        """It finds modules where this process does. In a session of its own, as Ctrl-C is for the parent."""
        own = {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
        self.process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | own | self._settings,
            start_new_session=True,
        )
        assert self.process.stdin is not None and self.process.stdout is not None  # as both are pipes
        self._questions = self.process.stdin
        self._answers = self.process.stdout

    def _ask(self, piece: Any) -> Any:
        """If the process has died, raises one of the pipes' errors."""
        overdue = threading.Timer(LIMIT, self.process.kill)
        overdue.start()
        try:
            pickle.dump(piece, self._questions, protocol=pickle.HIGHEST_PROTOCOL)
            self._questions.flush()
            return pickle.load(self._answers)
        finally:
            overdue.cancel()
