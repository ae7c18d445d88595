"""What draws moves for people, in processes of their own: an engine takes longer to draw than an agent to act."""

from collections.abc import Callable

import numpy as np

from planvec.worlds.doom import pool
from planvec.worlds.doom.level import LEVELS
from planvec.worlds.doom.motion import State
from planvec.worlds.doom.pictures import beside_map, draw_map


def start(level: str) -> Callable[[tuple[State, np.ndarray]], list[np.ndarray]]:
    """What a worker begins with: an engine. What there was before the action need not be drawn again."""
    draw = pool.start(level, "large")

    def pictures(move: tuple[State, np.ndarray]) -> list[np.ndarray]:
        states, _ = move
        [view] = draw(states.take(slice(1, 2)))
        now = State._make(part[1] for part in states)
        return [beside_map(view, draw_map(LEVELS[level], *now, trail=states.agent[:, :2]))]

    return pictures
