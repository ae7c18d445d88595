"""Many states drawn at once, on all cores. A picture is a function of its state alone."""

import atexit
import math
import sys
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

from planvec.errors import InputError
from planvec.worlds import pool
from planvec.worlds.doom.motion import State

IMAGE = (60, 80, 3)  # what agents see
PICTURE = (240, 320, 3)  # what people see


def check_installed() -> None:
    """Complain where there is no engine."""
    if find_spec("vizdoom") is None:
        raise InputError("the doom world needs ViZDoom: pip install 'planvec[doom]'")


def start(level: str, size: str) -> Callable[[State], np.ndarray]:
    """What a worker begins with."""
    from planvec.worlds.doom.engine import ENGINE_ERRORS, Engine

    engine = Engine(level, size == "large")
    atexit.register(engine.close)

    def draw(states: State) -> np.ndarray:
        try:
            return np.ascontiguousarray(engine.draw(states))
        except ENGINE_ERRORS:  # the engine died: so does this process, and the pool starts another one
            sys.exit(1)

    return draw


class Pool(pool.Pool):
    """Engines for a `with` block: half as many again as there are cores, unless told, as each waits for its process and
    the other way round."""

    pieces = 4  # a state is little work

    def __init__(self, level: str, workers: int | None = None, large: bool = False) -> None:
        """`large`: pictures for people, rather than what agents see."""
        check_installed()
        workers = math.ceil(1.5 * pool.cores()) if workers is None else workers
        super().__init__(start, level, "large" if large else "small", workers=workers)
        self._shape = PICTURE if large else IMAGE

    def draw(self, states: State, progress: Callable[[int], None] = lambda drawn: None) -> np.ndarray:
        """A picture of each state; `progress` is told how many there are. uint8 [state, height, width, 3]"""
        pictures = np.empty((len(states.agent), *self._shape), np.uint8)
        parts = self.parts(len(pictures))
        for part, some in zip(parts, self.share(map(states.take, parts)), strict=True):
            pictures[part] = some
            progress(part.stop)
        return pictures
