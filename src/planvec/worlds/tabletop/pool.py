"""Many pick-and-places at once, on all cores. Each is a pure function of its state and action."""

from collections.abc import Callable
from functools import partial

import numpy as np

from planvec.worlds import pool
from planvec.worlds.tabletop.attempts import Attempts, make_attempts
from planvec.worlds.tabletop.geometry import OBJECTS
from planvec.worlds.tabletop.simulator import Simulator, check_numbers

Arrays = tuple[np.ndarray, ...]


def start() -> Callable[..., Arrays]:
    """What a worker begins with."""
    return partial(_work, Simulator())


def _work(simulator: Simulator, piece: tuple[str, *Arrays]) -> Arrays:
    """ "place" (with positions), "step" (with states and actions), "attempt" (as make_attempts)."""
    do, *batch = piece
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


class Pool(pool.Pool):
    """Simulators for a `with` block: as many as there are cores, unless told. A single one works in this process."""

    def __init__(self, workers: int | None = None) -> None:
        workers = pool.cores() if workers is None else workers
        super().__init__(start, workers=workers, settings={"MUJOCO_GL": "disable"}, here=True)  # workers draw nothing
        self.state_size = Simulator().state_size

    def place(self, positions: np.ndarray) -> np.ndarray:
        """The states in which the objects stand at these positions. [n, 6, 3] to [n, state]"""
        positions = check_numbers(positions, ("n", len(OBJECTS), 3), "positions")
        return self._have("place", positions)[0] if len(positions) else np.empty((0, self.state_size))

    def step(self, states: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The states after an action each, and whether the physics stayed sane. [n, state] and [n, 4], bool [n]"""
        states = check_numbers(states, ("n", self.state_size), "states")
        actions = check_numbers(actions, (len(states), 4), "actions (x0, y0, x1, y1)")
        if not len(states):
            return states.copy(), np.empty(0, bool)
        after, sane = self._have("step", states, actions)
        return after, sane

    def attempt(self, codes: np.ndarray, seeds: np.ndarray, noise: float) -> Attempts:
        """The expert's attempts at encoded tasks, each with a seed of its own. [n, skill] and [n, words]"""
        return Attempts(*self._have("attempt", codes, seeds, np.full(len(codes), noise)))

    def _have(self, do: str, *batch: np.ndarray) -> Arrays:
        """Something done by all workers, the results put together in order."""
        pieces = ((do, *[array[part] for array in batch]) for part in self.parts(len(batch[0])))
        return tuple(np.concatenate(column) for column in zip(*self.share(pieces), strict=True))
