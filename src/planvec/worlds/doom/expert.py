"""The expert: turns towards where it wants to go, then goes there. For many episodes at once, NumPy alone."""

from functools import cache

import numpy as np

from planvec.worlds.doom.level import SCALE, Level
from planvec.worlds.doom.motion import FORWARD, HEADINGS, LEFT, RADIUS, RIGHT, State

STRAIGHT = np.radians(8)  # a heading that is off by no more than this will do; headings are 15° apart
CLEARANCE = RADIUS / SCALE  # metres kept from walls; touching them is allowed


def choose(level: Level, state: State, targets: np.ndarray) -> np.ndarray:
    """The action that leads to each episode's target, a waypoint's number. [episode]"""
    here = state.agent[:, :2] / SCALE
    aims = _next_points(level, here, state.markers[np.arange(len(targets)), targets] / SCALE) - here
    off = np.arctan2(aims[:, 1], aims[:, 0]) - state.agent[:, 2] * (2 * np.pi / HEADINGS)
    off = (off + np.pi) % (2 * np.pi) - np.pi
    return np.where(np.abs(off) <= STRAIGHT, FORWARD, np.where(off > 0, LEFT, RIGHT))


def _next_points(level: Level, here: np.ndarray, goals: np.ndarray) -> np.ndarray:
    """Where to head for: the goal where nothing is in between, else the next door on the shortest way. [episode, 2]"""
    if not level.walls:
        return goals
    doors = np.array(level.doors)
    from_here = _ways(level, here[:, None], doors)
    to_goal = _ways(level, doors, goals[:, None])  # [episode, door]
    beyond = (_between_doors(level) + to_goal[:, None]).min(axis=2)
    door = doors[(from_here + beyond).argmin(axis=1)]
    return np.where(_clear(level, here, goals)[:, None], goals, door)


@cache
def _between_doors(level: Level) -> np.ndarray:
    """The shortest way from any door to any other, by Floyd and Warshall. [door, door]"""
    doors = np.array(level.doors)
    ways = _ways(level, doors[:, None], doors)
    for middle in range(len(doors)):
        ways = np.minimum(ways, ways[:, middle, None] + ways[middle])
    return ways


def _ways(level: Level, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """How far it is from here to there straight on; infinitely far where a wall is in the way. […, 2] to […]"""
    distance = np.hypot(*np.moveaxis(ends - starts, -1, 0))
    return np.where(_clear(level, starts, ends), distance, np.inf)


def _clear(level: Level, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Whether one can walk straight from here to there: no axis separates a line from a wall that it meets. […]"""
    walls = np.array(level.walls)
    middle = (walls[:, :2] + walls[:, 2:]) / 2  # [wall, 2]
    half = (walls[:, 2:] - walls[:, :2]) / 2 + CLEARANCE  # [wall, 2]
    apart = ((starts + ends) / 2)[..., None, :] - middle
    reach = np.broadcast_to(((ends - starts) / 2)[..., None, :], apart.shape)
    beside = (np.abs(apart) >= half + np.abs(reach)).any(axis=-1)
    across = np.abs(reach[..., 0] * apart[..., 1] - reach[..., 1] * apart[..., 0])
    past = across >= half[:, 0] * np.abs(reach[..., 1]) + half[:, 1] * np.abs(reach[..., 0])
    return np.all(beside | past, axis=-1)
