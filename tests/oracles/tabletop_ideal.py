"""An ideal tabletop: exact geometry, no dynamics. What a hand could not do leaves everything where it is.

All things are upright boxes along the table's sides; what is carried keeps its place in the hand.
"""

import numpy as np

from planvec.worlds.tabletop.geometry import (
    BOX_FLOOR,
    BOX_HEIGHT,
    BOX_INNER,
    BOX_WALL,
    CUBE,
    FINGER,
    GRIPPER,
    HANDLE,
    LID,
    TABLE,
)

RED, BLUE, GREEN, WHITE, BOX, LID_AT = range(6)
CUBES = (RED, BLUE, GREEN, WHITE)
AIM = 0.004  # how far outside a footprint the hand may close
FINGERS = GRIPPER + 2 * FINGER[0]  # the room that open fingers take on either side of the middle
OUTER = BOX_INNER + 2 * BOX_WALL
HALF = {RED: CUBE, BLUE: CUBE, GREEN: CUBE, WHITE: CUBE, BOX: OUTER, LID_AT: LID[0]}


def pick_and_place(positions, action, thin_fingers=False):
    """The positions (6, 3) after an action (4,); thin fingers need no room beside things."""
    x0, y0, x1, y1 = action
    thing = aimed_at(positions, x0, y0)
    if thing is None or covered(positions, thing) or not (thin_fingers or finger_room(positions, thing)):
        return positions
    after = positions.copy()
    after[thing, :2] += x1 - x0, y1 - y0
    height = rest(after, thing)
    if height is None:
        return positions
    after[thing, 2] = height
    return after if thin_fingers or finger_room(after, thing) else positions


def aimed_at(positions, x, y):
    """The highest cube, or lid by its handle, at a point."""
    footprints = {cube: (CUBE, CUBE) for cube in CUBES} | {LID_AT: HANDLE[:2]}
    there = [
        thing
        for thing, (a, b) in footprints.items()
        if abs(x - positions[thing, 0]) <= a + AIM and abs(y - positions[thing, 1]) <= b + AIM
    ]
    return max(there, key=lambda thing: positions[thing, 2], default=None)


def covered(positions, thing):
    """Whether anything is above a thing, touching it or not: the hand could not come down."""
    others = [other for other in (*CUBES, LID_AT) if other != thing]
    return any(positions[other, 2] > positions[thing, 2] and overlap(positions, other, thing) for other in others)


def rest(positions, thing):
    """The height at which a thing comes to rest where it is let go; None where it would fall, jam or knock."""
    x, y = positions[thing, :2]
    below = [other for other in HALF if other != thing and overlap(positions, other, thing)]
    if abs(x) > TABLE[0] - HALF[thing] or abs(y) > TABLE[1] - HALF[thing]:
        return None
    if not below:
        return LID[2] if thing == LID_AT else CUBE
    off = np.abs(positions[below, :2] - (x, y)).max(axis=1)
    if thing == LID_AT:  # on the box or on nothing; what is in the box does not matter unless it sticks out
        sticks_out = any(positions[other, 2] + CUBE > BOX_HEIGHT for other in below if other != BOX)
        return BOX_HEIGHT + LID[2] if BOX in below and not sticks_out and off[below.index(BOX)] < BOX_INNER else None
    if below == [BOX]:
        return 2 * BOX_FLOOR + CUBE if off[0] <= BOX_INNER - CUBE else None
    top = max(below, key=lambda other: positions[other, 2])
    if top == LID_AT:  # beside the handle
        beside = (np.abs(positions[LID_AT, :2] - (x, y)) >= np.add(HANDLE[:2], CUBE)).any()
        return positions[LID_AT, 2] + LID[2] + CUBE if beside and off[below.index(top)] < LID[0] else None
    return positions[top, 2] + 2 * CUBE if off[below.index(top)] < CUBE else None


def finger_room(positions, thing):
    """Whether open fingers fit beside a thing, along one side of the table at least."""
    return thing == LID_AT or any(room_along(positions, thing, axis) for axis in (0, 1))


def room_along(positions, cube, axis):
    """Whether nothing that is as high as the fingers' tips is where they go."""
    at = positions[cube]
    in_box = np.abs(positions[BOX, :2] - at[:2]).max() < BOX_INNER and at[2] < BOX_HEIGHT
    if in_box and abs(positions[BOX, axis] - at[axis]) > BOX_INNER - FINGERS:
        return False
    tops = {other: positions[other, 2] + CUBE for other in CUBES} | {BOX: BOX_HEIGHT, LID_AT: positions[LID_AT, 2]}
    return not any(
        abs(positions[other, axis] - at[axis]) < HALF[other] + FINGERS
        and abs(positions[other, 1 - axis] - at[1 - axis]) < HALF[other] + FINGER[1]
        and top > at[2] - FINGER[2]
        for other, top in tops.items()
        if other != cube and not (in_box and other == BOX)
    )


def overlap(positions, one, other):
    """Whether two things' footprints overlap."""
    return np.abs(positions[one, :2] - positions[other, :2]).max() < HALF[one] + HALF[other]
