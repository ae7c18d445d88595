"""Many pick-and-places at once, on all cores.

Workers are processes of their own, fed through pipes by one thread each. A pick-and-place is a pure function, so it
does not matter who does which, nor how often: the results are the same for any number of workers, and what a worker
was doing when it died is simply done again.
"""

import math
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np

from planvec.errors import InputError
from planvec.worlds.tabletop.attempts import Attempts, make_attempts
from planvec.worlds.tabletop.geometry import OBJECTS
from planvec.worlds.tabletop.simulator import Simulator, check_numbers

PIECES = 8  # of work for each worker, so that none waits long for the others
LARGEST = 64  # pick-and-places in a piece
ATTEMPTS = 3  # how often a piece is begun before the pool gives up

_COMMAND = (sys.executable, "-P", str(Path(__file__).with_name("worker.py")))
_SETTINGS = {"MUJOCO_GL": "disable", "OPENBLAS_NUM_THREADS": "1"}  # workers draw nothing, and are one core each


def work(simulator: Simulator, do: str, *batch: np.ndarray) -> tuple[np.ndarray, ...]:
    """A piece of work: "place" (with positions), "step" (with states and actions), "attempt" (as make_attempts)."""
    if do == "attempt":
        return make_attempts(simulator, *batch)
    if do == "place":
        return (np.stack([simulator.place(positions) for positions in batch[0]]),)
    results = [_step(simulator, state, action) for state, action in zip(*batch, strict=True)]
    return np.stack([state for state, _ in results]), np.array([sane for _, sane in results])


def _step(simulator: Simulator, state: np.ndarray, action: np.ndarray) -> tuple[np.ndarray, bool]:
    """An action, or nothing where the simulator breaks down over it."""
    try:
        return simulator.pick_and_place(state, action)
    except Exception:
        return state, False


class Pool:
    """Workers for a `with` block: as many as there are cores, unless told. A single one works in this process."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = _cores() if workers is None else workers
        if self.workers < 1:
            raise InputError(f"a pool has at least one worker; got {workers}")
        self._simulator = Simulator()
        self.state_size = self._simulator.state_size
        self._processes = [_Worker() for _ in range(self.workers if self.workers > 1 else 0)]
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        for worker in self._processes:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(self.workers, thread_name_prefix="tabletop")
        self._open = True

    def place(self, positions: np.ndarray) -> np.ndarray:
        """The states in which the objects stand at these positions. [n, 6, 3] to [n, state]"""
        positions = check_numbers(positions, ("n", len(OBJECTS), 3), "positions")
        return self._share("place", positions)[0] if len(positions) else np.empty((0, self.state_size))

    def step(self, states: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The states after an action each, and whether the physics stayed sane. [n, state] and [n, 4], bool [n]"""
        states = check_numbers(states, ("n", self.state_size), "states")
        actions = check_numbers(actions, (len(states), 4), "actions (x0, y0, x1, y1)")
        return self._share("step", states, actions) if len(states) else (states.copy(), np.empty(0, bool))

    def attempt(self, codes: np.ndarray, seeds: np.ndarray, noise: float) -> Attempts:
        """The expert's attempts at encoded tasks, each with a seed of its own. [n, skill] and [n, words]"""
        return Attempts(*self._share("attempt", codes, seeds, np.full(len(codes), noise)))

    def close(self) -> None:
        """End the workers, whatever they are doing."""
        self._open = False
        for worker in self._processes:
            worker.process.kill()  # a thread that waits for its answer then gets none, and ends
        self._threads.shutdown(cancel_futures=True)
        for worker in self._processes:
            worker.end()

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _share(self, do: str, *batch: np.ndarray) -> tuple[np.ndarray, ...]:
        """Give the work out in pieces to whoever is free, and put the results together in order."""
        if not self._open:
            raise InputError("this pool is closed; open another one")
        if not self._processes:
            return work(self._simulator, do, *batch)
        pieces = ((do, *(array[part] for array in batch)) for part in _parts(len(batch[0]), self.workers))
        results = list(self._threads.map(self._do, pieces))
        return tuple(np.concatenate(column) for column in zip(*results, strict=True))

    def _do(self, piece: tuple[Any, ...]) -> tuple[np.ndarray, ...]:
        """Have a piece done; if its worker dies, by another one."""
        worker = self._idle.get()
        try:
            answer = self._answer(worker, piece)
        finally:
            self._idle.put(worker)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _answer(self, worker: "_Worker", piece: tuple[Any, ...]) -> tuple[np.ndarray, ...] | Exception:
        for _ in range(ATTEMPTS):
            try:
                return worker.ask(piece)
            except (EOFError, OSError, pickle.UnpicklingError):
                if not self._open:
                    return InputError("the pool was closed while it was at work")
                worker.end()
                worker.start()
        return RuntimeError(f"{ATTEMPTS} workers of the tabletop's pool died over the same work")


class _Worker:
    """A process that does one piece of work at a time."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            _COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | _SETTINGS
        )

    def ask(self, piece: tuple[Any, ...]) -> tuple[np.ndarray, ...] | Exception:
        """Have a piece done. If the process has died, raises one of the pipes' errors."""
        pickle.dump(piece, self.process.stdin, protocol=pickle.HIGHEST_PROTOCOL)
        self.process.stdin.flush()
        return pickle.load(self.process.stdout)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        with suppress(OSError):  # what could not be written is still in its buffer
            self.process.stdin.close()


def _parts(count: int, workers: int) -> list[slice]:
    size = min(math.ceil(count / (workers * PIECES)), LARGEST)
    return [slice(begin, begin + size) for begin in range(0, count, size)]


def _cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
