"""What the hand does in one pick-and-place, planned on the upright boxes round everything that stands on the table.

All heights are chosen here. The hand comes down until what it carries, or a finger, is just above something: it never
presses on anything, and where it cannot grasp it touches nothing.
"""

from typing import NamedTuple

import numpy as np

from planvec.data.recordings import starts_of
from planvec.worlds.tabletop.geometry import CUBES, FINGER, FINGER_TRAVEL, GRIPPER, TABLE

THICKNESS = 2 * FINGER[0]
WIDTH = FINGER[1]
BELOW = FINGER[2]
# The solids are the cubes, the box's five, the lid's two.
PLATE = len(CUBES) + 5
HANDLE = len(CUBES) + 6
GRASPABLE = (*range(len(CUBES)), HANDLE)

AIM = 0.004  # how far outside its footprint a thing may be aimed at
GAP = 0.0015  # what a finger leaves free beside and below it on its way down
PUT_DOWN = 0.002  # how far above its support a thing is let go
RELEASE = 0.004  # how far the fingers open to let go
CLEARANCE = 0.02  # metres that stay free below the hand when it travels …
ASIDE = 0.005  # … and beside it
CLOSING = 0.10  # seconds
OPENING = 0.06
SETTLING = 0.06

STEP = 0.005  # seconds from one goal for the joints to the next: a goal held for longer jerks things out of the hand
LOADED = 20.0  # metres/second², the hand's greatest acceleration with something in it …
FREE = 50.0  # … and with nothing


class Pose(NamedTuple):
    """Where the grip is to go and how far the fingers are to be open, then how long to wait there."""

    x: float
    y: float
    z: float
    left: float
    right: float
    wait: float = 0.0  # seconds


class Solids(NamedTuple):
    """The upright boxes round the solid parts of all objects, in the order of the scene."""

    low: np.ndarray  # [part, 3]
    high: np.ndarray  # [part, 3]


class Load(NamedTuple):
    """The hand with what it carries: how far it reaches, seen from the grip."""

    low: np.ndarray  # [3]
    high: np.ndarray  # [3]


def find_target(solids: Solids, x: float, y: float) -> int | None:
    """The highest graspable part whose footprint, with a narrow edge round it, holds the point."""
    over = np.all((solids.low[:, :2] - AIM <= (x, y)) & (solids.high[:, :2] + AIM >= (x, y)), axis=1)
    return max((part for part in GRASPABLE if over[part]), key=lambda part: solids.high[part, 2], default=None)


def plan(solids: Solids, start: Pose, action: np.ndarray) -> list[Pose]:
    """The poses of a pick-and-place: to the thing, close, to its new place, open, up."""
    x0, y0, x1, y1 = action.tolist()
    target = find_target(solids, x0, y0)
    if target is None:
        return _grope(solids, start, x0, y0, x1, y1)
    pick = _grasp(solids, target, x0, y0)
    if pick is None:
        return _grope(solids, start, x0, y0, x1, y1)
    load, rest = _lift(solids, target, pick)
    half = float(solids.high[target, 0] - solids.low[target, 0]) / 2
    held = _shut(pick, CLOSING)
    drop = _put_down(rest, load, half, x1, y1)
    leave = drop._replace(z=drop.z + float(load.high[2]) + BELOW + CLEARANCE, wait=SETTLING)
    return [*_hop(solids, EMPTY_HAND, start, pick), held, *_hop(rest, load, held, _shut(drop)), drop, leave]


def trajectory(start: Pose, poses: list[Pose]) -> np.ndarray:
    """The goals for grip and fingers at every step; the grip moves smoothly from pose to pose. [step, 5]"""
    ends = np.array(poses)
    begins = np.concatenate([[start], ends[:-1]])
    moves = _steps(begins, ends)
    total = moves + np.rint(ends[:, 5] / STEP).astype(int)
    step = np.arange(total.sum()) - np.repeat(starts_of(total), total) + 1
    along = np.minimum(step / np.maximum(np.repeat(moves, total), 1), 1)[:, None]
    smooth = along * along * (3 - 2 * along)
    begins = np.repeat(begins, total, axis=0)
    ends = np.repeat(ends, total, axis=0)
    return np.concatenate([begins[:, :3] + smooth * (ends[:, :3] - begins[:, :3]), ends[:, 3:5]], axis=1)


def _steps(begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """How many steps the ways take: smooth ones of length d in time t begin with an acceleration of 6 d / t²."""
    loaded = (begins[:, 3] == 0) & (ends[:, 3] == 0)
    distances = np.linalg.norm(ends[:, :3] - begins[:, :3], axis=1)
    return np.ceil(np.sqrt(6 * distances / np.where(loaded, LOADED, FREE)) / STEP).astype(int)


def _fingers(opening: float) -> Load:
    """The hand with nothing in it."""
    half = opening + THICKNESS
    return Load(np.array([-half, -WIDTH, -BELOW]), np.array([half, WIDTH, 0.0]))


EMPTY_HAND = _fingers(FINGER_TRAVEL)


def _top_below(solids: Solids, load: Load, *places: Pose, aside: float = ASIDE) -> float:
    """The height of the highest part below the load, at the places and anywhere in their rectangle; 0 for none."""
    points = np.array([place[:2] for place in places])
    low = points.min(axis=0) + load.low[:2] - aside
    high = points.max(axis=0) + load.high[:2] + aside
    below = np.all((solids.low[:, :2] < high) & (solids.high[:, :2] > low), axis=1)
    return float(solids.high[below, 2].max(initial=0.0))


def _grasp(solids: Solids, target: int, x: float, y: float) -> Pose | None:
    """Where to grasp a part: at the point, or the nearest one where the fingers hold it. None: they have no room."""
    low = solids.low[target]
    high = solids.high[target]
    middle = (low + high) / 2
    half = (high - low) / 2
    leeway = np.maximum((FINGER_TRAVEL - GAP - half[0], half[1] - WIDTH), 0)
    x, y = np.clip((x, y), middle[:2] - leeway, middle[:2] + leeway).tolist()
    beside = (solids.low[:, 1] < y + WIDTH) & (solids.high[:, 1] > y - WIDTH) & (solids.high[:, 2] > middle[2] - BELOW)
    beside[target] = False
    left = _opening(x - low[0], x - solids.high[beside, 0], x - solids.low[beside, 0])
    right = _opening(high[0] - x, solids.low[beside, 0] - x, solids.high[beside, 0] - x)
    return None if left is None or right is None else Pose(x, y, float(middle[2]), left, right)


def _opening(edge: float, near: np.ndarray, far: np.ndarray) -> float | None:
    """How far a finger opens to come down between the target's edge and whatever reaches beyond that edge.

    All are distances from the grip: the target's edge, and where the other things begin and end. None: no room.
    """
    room = near[far > edge].min(initial=np.inf) - THICKNESS - GAP
    opening = min(max(GRIPPER, edge + GAP), room, FINGER_TRAVEL)
    return float(opening) if opening >= edge + GAP / 2 else None


def _lift(solids: Solids, target: int, pick: Pose) -> tuple[Load, Solids]:
    """What is carried once the fingers have closed and so brought the target between them; and what stays behind."""
    parts = [PLATE, HANDLE] if target == HANDLE else [target]
    grip = np.array([(solids.low[target, 0] + solids.high[target, 0]) / 2, pick.y, pick.z])
    stays = np.ones(len(solids.low), bool)
    stays[parts] = False
    load = Load(solids.low[parts].min(axis=0) - grip, solids.high[parts].max(axis=0) - grip)
    return load, Solids(solids.low[stays], solids.high[stays])


def _put_down(rest: Solids, load: Load, half: float, x: float, y: float) -> Pose:
    """Where to let go: as near the point as the load fits on the table, just above what is below it."""
    drop = _on_table(load, x, y, opening=half + RELEASE)
    held = _top_below(rest, load, drop, aside=0.0) + PUT_DOWN - float(load.low[2])
    free = _top_below(rest, _fingers(half + RELEASE), drop, aside=0.0) + GAP + BELOW
    return drop._replace(z=max(held, free), wait=OPENING)


def _on_table(load: Load, x: float, y: float, opening: float) -> Pose:
    """The nearest place where the load is clear of the walls."""
    most = np.array(TABLE) - ASIDE
    x, y = np.clip((x, y), -most - load.low[:2], most - load.high[:2]).tolist()
    return Pose(x, y, 0.0, opening, opening)


def _shut(pose: Pose, wait: float = 0.0) -> Pose:
    return pose._replace(left=0.0, right=0.0, wait=wait)


def _hop(solids: Solids, load: Load, start: Pose, end: Pose) -> list[Pose]:
    """Up, across above everything that is in the way, and down."""
    z = max(start.z, end.z, _top_below(solids, load, start, end) - float(load.low[2]) + CLEARANCE)
    return [start._replace(z=z, wait=0.0), end._replace(z=z, wait=0.0), end._replace(wait=0.0)]


def _grope(solids: Solids, start: Pose, x0: float, y0: float, x1: float, y1: float) -> list[Pose]:
    """The motions with nothing to grasp: the hand closes just above whatever is there, and goes on."""
    pick = _on_table(EMPTY_HAND, x0, y0, opening=GRIPPER)
    drop = _on_table(EMPTY_HAND, x1, y1, opening=GRIPPER)
    pick = pick._replace(z=_top_below(solids, EMPTY_HAND, pick) + GAP + BELOW)
    rise, across, _ = _hop(solids, EMPTY_HAND, pick, drop)
    return [*_hop(solids, EMPTY_HAND, start, pick), _shut(pick, CLOSING), rise, across]
