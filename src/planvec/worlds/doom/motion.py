"""How the agent moves and what it has visited: exact, in whole numbers, for many episodes at once. NumPy alone.

The engine only draws: it is put where this says. Walking by itself it would do the same, to less than a millimetre in
the open; along walls both slide, the engine a few centimetres less in corners. A test compares them.
"""

from typing import NamedTuple

import numpy as np

from planvec.worlds.doom.level import SCALE, WAYPOINTS, Level

LEFT, RIGHT, FORWARD = ACTIONS = range(3)
HEADINGS = 24  # 15° each, counted to the left from the east
REACH = SCALE  # a waypoint is visited from within a metre of it
RADIUS = SCALE // 2  # half the side of the square that the agent fills: Doom's player
STRIDES = 4  # a metre is walked in so many, each of which may slide along a wall: the engine's tics

_TURNS = np.array([1, -1, 0])
_ANGLES = 2 * np.pi * np.arange(HEADINGS) / HEADINGS
_STRIDE = np.rint(SCALE / STRIDES * np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=1)).astype(np.int64)


class State(NamedTuple):
    """Episodes as they are; whatever can be known about them follows. NumPy arrays, [episode, …]"""

    agent: np.ndarray  # int32 [3]: x and y in Doom's numbers, and which heading
    markers: np.ndarray  # int32 [4, 2]: x and y
    visited: np.ndarray  # bool [4]

    def take(self, rows: slice | np.ndarray) -> "State":
        """Some of the episodes."""
        return State(self.agent[rows], self.markers[rows], self.visited[rows])


def beginning(agent: np.ndarray, markers: np.ndarray) -> State:
    """Episodes in which nothing was done yet."""
    return State(agent, markers, np.zeros((len(agent), len(WAYPOINTS)), bool))


def step(level: Level, state: State, actions: np.ndarray) -> State:
    """One action in each episode: turn left, turn right, go forward."""
    agent = state.agent.copy()
    agent[:, 2] = (agent[:, 2] + _TURNS[actions]) % HEADINGS
    walking = actions == FORWARD
    agent[walking, :2] = _walk(level, agent[walking])
    apart = agent[:, None, :2].astype(np.int64) - state.markers
    return State(agent, state.markers, state.visited | ((apart**2).sum(axis=2) <= REACH**2))


def waypoints(state: State) -> np.ndarray:
    """Of each waypoint how far it is ahead and how far to the left, in metres, and whether it is still there; zeroes
    where it was visited. float32 [episode, 4, 3]"""
    apart = (state.markers - state.agent[:, None, :2]) / SCALE
    ahead = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=1)[state.agent[:, None, 2]]
    left = np.stack([-ahead[..., 1], ahead[..., 0]], axis=-1)
    seen = np.stack([(apart * ahead).sum(axis=2), (apart * left).sum(axis=2), ~state.visited], axis=2)
    return np.where(state.visited[..., None], 0, seen).astype(np.float32)


def _walk(level: Level, agents: np.ndarray) -> np.ndarray:
    """Where they are a metre ahead, or as far as walls let them. [agent, 3] to [agent, 2]"""
    places = agents[:, :2].astype(np.int64)
    strides = _STRIDE[agents[:, 2]]
    solids = np.rint(level.solids * SCALE).astype(np.int64).reshape(-1, 2, 2)
    lows = solids[:, 0] - RADIUS  # from here …
    highs = solids[:, 1] + RADIUS  # … to there a solid is closed to the agent's middle: [solid, 2]
    for _ in range(STRIDES):
        for axis in (0, 1):
            places[:, axis] = _slide(places, strides, axis, lows, highs)
    return places


def _slide(places: np.ndarray, strides: np.ndarray, axis: int, lows: np.ndarray, highs: np.ndarray) -> np.ndarray:
    """A stride along one axis, up to the first solid in the way. [agent]"""
    here = places[:, axis, None]
    across = places[:, 1 - axis, None]
    in_line = (lows[:, 1 - axis] < across) & (across < highs[:, 1 - axis])
    most = np.where(in_line & (here <= lows[:, axis]), lows[:, axis], np.iinfo(np.int64).max).min(axis=1)
    least = np.where(in_line & (highs[:, axis] <= here), highs[:, axis], np.iinfo(np.int64).min).max(axis=1)
    return np.clip(places[:, axis] + strides[:, axis], least, most)
