"""Random scenes: where the agent and the markers are at first."""

import numpy as np

from planvec.worlds.doom.level import SCALE, WAYPOINTS, Level
from planvec.worlds.doom.motion import HEADINGS

MARGIN = 1.0  # metres from the walls of a room
APART = 2.5  # metres between any two: more than two, so that no two waypoints are visited at once, nor one at first
_AT_ONCE = 16  # scenes drawn, of which the first that will do is taken: about every sixth will
_ONE, _OTHER = np.triu_indices(len(WAYPOINTS) + 1, k=1)  # all pairs of things


def random_scene(rng: np.random.Generator, level: Level) -> tuple[np.ndarray, np.ndarray]:
    """The agent and the markers of a State: int32 [3] and [4, 2]"""
    rooms = np.array(level.rooms)
    low = rooms[:, :2] + MARGIN
    high = rooms[:, 2:] - MARGIN
    while True:
        room = rng.integers(len(rooms), size=(_AT_ONCE, len(WAYPOINTS) + 1))
        scenes = np.rint(SCALE * rng.uniform(low[room], high[room])).astype(np.int32)  # [scene, agent and markers, 2]
        good = np.flatnonzero(_nearest(scenes) >= APART * SCALE)
        if len(good):
            agent, *markers = scenes[good[0]]
            return np.array([*agent, rng.integers(HEADINGS)], np.int32), np.array(markers)


def _nearest(scenes: np.ndarray) -> np.ndarray:
    """How near to each other the two nearest of each scene are. [scene, thing, 2] to [scene]"""
    apart = scenes[:, _ONE] - scenes[:, _OTHER]
    return np.hypot(apart[..., 0], apart[..., 1]).min(axis=1)
