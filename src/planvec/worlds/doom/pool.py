"""Many states drawn at once, on all cores.

Workers are processes with an engine each, fed through pipes by one thread each. A picture is a function of a state, so
it does not matter who draws which, nor how often: the results are the same for any number of workers, and what a worker
was drawing when it died is simply drawn again.
"""

import math
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue

import numpy as np

from planvec.errors import InputError
from planvec.worlds.doom.motion import State

IMAGE, PICTURE = (60, 80, 3), (240, 320, 3)  # what agents see, and what people do
PIECES = 4  # of work for each worker, so that none waits long for the others
LARGEST = 64  # states in a piece
ATTEMPTS = 3  # how often a piece is begun before the pool gives up
PIPE = 2**20  # bytes that a worker may be ahead: a whole piece
PATIENCE = 10.0  # seconds for a worker to end by itself

_WORKER = (sys.executable, "-P", str(Path(__file__).with_name("worker.py")))


def check_installed() -> None:
    """Complain where there is no engine."""
    if find_spec("vizdoom") is None:
        raise InputError("the doom world needs ViZDoom: pip install 'planvec[doom]'")


class Pool:
    """Engines for a `with` block: half as many again as there are cores, unless told, as each waits for its process and
    the other way round."""

    def __init__(self, level: str, workers: int | None = None, large: bool = False) -> None:
        """`large`: pictures for people, rather than what agents see."""
        check_installed()
        self.workers = math.ceil(1.5 * _cores()) if workers is None else workers
        if self.workers < 1:
            raise InputError(f"a pool has at least one worker; got {workers}")
        self._shape = PICTURE if large else IMAGE
        self._processes = [_Worker(level, large) for _ in range(self.workers)]
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        for worker in self._processes:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(self.workers, thread_name_prefix="doom")
        self._open = True

    def draw(self, states: State, progress: Callable[[int], None] = lambda drawn: None) -> np.ndarray:
        """A picture of each state; `progress` is told how many there are. uint8 [state, height, width, 3]"""
        if not self._open:
            raise InputError("this pool is closed; open another one")
        pictures = np.empty((len(states.agent), *self._shape), np.uint8)
        drawn, lock = 0, threading.Lock()

        def draw_part(part: slice) -> None:
            nonlocal drawn
            self._draw(states.take(part), pictures[part])
            with lock:
                drawn += part.stop - part.start
                progress(drawn)

        try:
            list(self._threads.map(draw_part, _parts(len(pictures), self.workers)))
        except CancelledError:
            raise InputError("the pool was closed while it was at work") from None
        return pictures

    def close(self) -> None:
        """End the workers when they have drawn what they are at."""
        self._open = False
        self._threads.shutdown(cancel_futures=True)
        for worker in self._processes:
            worker.end()

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _draw(self, states: State, pictures: np.ndarray) -> None:
        """Have a few drawn by whoever is free; if they die over it, by another one."""
        worker = self._idle.get()
        try:
            for _ in range(ATTEMPTS):
                try:
                    return worker.draw(states, pictures)
                except (EOFError, OSError, pickle.UnpicklingError):
                    worker.end()
                    worker.start()
        finally:
            self._idle.put(worker)
        raise RuntimeError(f"{ATTEMPTS} workers of the doom world's pool died over the same work")


class _Worker:
    """A process that draws a few states at a time."""

    def __init__(self, level: str, large: bool) -> None:
        self._options = (level, str(large))
        self.start()

    def start(self) -> None:
        command = (*_WORKER, str(os.getpid()), *self._options)
        # In a session of its own, as Ctrl-C is for the parent.
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "pipesize": PIPE}
        self.process = subprocess.Popen(command, **pipes, start_new_session=True)

    def draw(self, states: State, pictures: np.ndarray) -> None:
        """If the process has died, raises one of the pipes' errors."""
        pickle.dump(tuple(states), self.process.stdin, protocol=pickle.HIGHEST_PROTOCOL)
        self.process.stdin.flush()
        error = pickle.load(self.process.stdout)
        if error:
            raise error
        if self.process.stdout.readinto(pictures) < pictures.nbytes:
            raise EOFError

    def end(self) -> None:
        """It ends when its input does; killed while its engine starts, it would leave shared memory behind."""
        with suppress(OSError):  # what could not be written is still in its buffer
            self.process.stdin.close()
        self.process.stdout.close()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _parts(count: int, workers: int) -> list[slice]:
    size = min(math.ceil(count / (workers * PIECES)), LARGEST)
    return [slice(begin, min(begin + size, count)) for begin in range(0, count, max(size, 1))]


def _cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
