"""What draws moves for people, in processes of their own: the arm's way is simulated again, picture by picture."""

from collections.abc import Callable
from typing import Any

import numpy as np


def start() -> Callable[[tuple[Any, np.ndarray]], list[np.ndarray]]:
    """What a worker begins with: the world. Things that move need no smooth edges, which would take twice the time."""
    from planvec.worlds.tabletop.world import Tabletop  # which names this as its painter

    world = Tabletop()
    world.simulator.model.vis.quality.offsamples = 0
    return lambda move: [picture for _, picture in list(world.film(*move))[1:]]
