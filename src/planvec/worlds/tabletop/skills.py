"""The twenty skills, the relations that they bring about, and what a demonstration asks for.

A relation is judged from positions alone: x, y and z of every object, in the order of geometry.OBJECTS. [..., 18]
"""

from collections.abc import Iterable
from itertools import permutations, product
from typing import NamedTuple

import numpy as np

from planvec.tasks import Task
from planvec.worlds.tabletop.geometry import BOX_HEIGHT, BOX_INNER, CORNERS, CUBE, CUBES, LID, OBJECTS

CORNER_TOLERANCE = 0.02  # how far from its corner's spot a cube may stand, along each side of the table
STACK_TOLERANCE = 0.02  # the same for a cube from the middle of the one it stands on: further out it would topple
LID_TOLERANCE = 0.02  # the same for the lid from the middle of the box
HEIGHT_TOLERANCE = 0.01  # how far from its support's height a thing may be, and still rest on it
MOVED = 0.01  # an object that an action shifts by more has been moved

PLACE_IN_CORNER = "PlaceInCorner"
STACK = "Stack"
PLACE_IN_BOX = "PlaceInBox"


class Skill(NamedTuple):
    family: str
    cube: str  # the one to be placed
    base: str | None = None  # the cube to stack it on

    @property
    def name(self) -> str:
        return f"{self.family}({self.cube})" if self.base is None else f"{self.family}({self.cube},{self.base})"


_SKILLS = [Skill(PLACE_IN_CORNER, cube) for cube in CUBES]
_SKILLS += [Skill(STACK, cube, base) for cube, base in permutations(CUBES, 2)]
_SKILLS += [Skill(PLACE_IN_BOX, cube) for cube in CUBES]
BY_NAME = {skill.name: skill for skill in _SKILLS}
SKILLS = tuple(BY_NAME)
TASKS: tuple[Task, ...] = (*product(SKILLS, repeat=1), *product(SKILLS, repeat=2))
LID_ON = len(SKILLS)  # a goal has an entry for each skill, and this one

BOX_AT = OBJECTS.index("box")
LID_AT = OBJECTS.index("lid")
_CUBE_OF = np.array([CUBES.index(skill.cube) for skill in _SKILLS])
_STACKED = [(CUBES.index(skill.cube), CUBES.index(skill.base)) for skill in _SKILLS if skill.base]
_CUBE, _BASE = np.array(_STACKED).T

_CORNER_SPOTS = np.array([(*CORNERS[cube], CUBE) for cube in CUBES])
_ONE_HIGHER = np.array([0.0, 0.0, 2 * CUBE])
_ON_THE_RIM = np.array([0.0, 0.0, BOX_HEIGHT + LID[2]])
_CORNER_LIMITS = np.array([CORNER_TOLERANCE, CORNER_TOLERANCE, HEIGHT_TOLERANCE])
_STACK_LIMITS = np.array([STACK_TOLERANCE, STACK_TOLERANCE, HEIGHT_TOLERANCE])
_LID_LIMITS = np.array([LID_TOLERANCE, LID_TOLERANCE, HEIGHT_TOLERANCE])
# A cube is in the box if its middle is between the walls and its top not above the rim.
_BOX_LIMITS = np.array([BOX_INNER, BOX_INNER, BOX_HEIGHT - CUBE + HEIGHT_TOLERANCE])


def relations(positions: np.ndarray) -> np.ndarray:
    """Which skills' relations hold. bool [..., 20]"""
    cubes = _objects(positions)[..., : len(CUBES), :]
    return np.concatenate(
        [
            _within(cubes - _CORNER_SPOTS, _CORNER_LIMITS),
            _within(cubes[..., _CUBE, :] - cubes[..., _BASE, :] - _ONE_HIGHER, _STACK_LIMITS),
            inside(positions) & closed(positions)[..., None],
        ],
        axis=-1,
    )


def inside(positions: np.ndarray) -> np.ndarray:
    """Which cubes lie in the box, be it open or closed. bool [..., 4]"""
    objects = _objects(positions)
    return _within(objects[..., : len(CUBES), :] - objects[..., BOX_AT, None, :], _BOX_LIMITS)


def closed(positions: np.ndarray) -> np.ndarray:
    """Whether the lid lies on the box. bool [...]"""
    objects = _objects(positions)
    return _within(objects[..., LID_AT, :] - objects[..., BOX_AT, :] - _ON_THE_RIM, _LID_LIMITS)


def goals(steps: np.ndarray) -> np.ndarray:
    """What a demonstration asks for: the relations at its end of all that it moved. [..., step, 18] to bool [..., 21]

    Entry LID_ON asks for the lid on the box. What was set aside, and ends in no relation, is not asked for.
    """
    shifts = np.linalg.norm(np.diff(_objects(steps), axis=-3), axis=-1)  # [..., step - 1, 6]
    moved = np.any(shifts > MOVED, axis=-2)
    last = steps[..., -1, :]
    lid_on = closed(last) & moved[..., LID_AT]
    return np.concatenate([relations(last) & moved[..., _CUBE_OF], lid_on[..., None]], axis=-1)


def met(goal: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Whether all that a goal asks for holds. bool [..., 21], [..., 18] to bool [...]"""
    holds = np.concatenate([relations(positions), closed(positions)[..., None]], axis=-1)
    return np.all(holds | ~goal, axis=-1)


def compatible(skills: Iterable[str]) -> bool:
    """Whether the relations of all these skills can hold together."""
    chosen = {BY_NAME[skill] for skill in skills}
    cubes = [skill.cube for skill in chosen]
    bases = {skill.cube: skill.base for skill in chosen if skill.base}
    boxed = [skill.cube for skill in chosen if skill.family == PLACE_IN_BOX]
    return (
        len(set(cubes)) == len(cubes)
        and len(set(bases.values())) == len(bases)
        and len(boxed) <= 1
        and not set(boxed) & set(bases.values())  # the box would not close over two
        and not any(_stands_on_itself(cube, bases) for cube in bases)
    )


def outcome(task: Iterable[str]) -> tuple[str, ...]:
    """The relations that hold after a task was done skill by skill: a later skill may undo an earlier one."""
    held: list[str] = []
    for name in task:
        if name not in held:
            shifted = _shifted(BY_NAME[name], [BY_NAME[other] for other in held])
            held = [other for other in held if BY_NAME[other].cube not in shifted] + [name]
    return tuple(held)


def _shifted(skill: Skill, held: list[Skill]) -> set[str]:
    """The cubes that lose their relation when a skill is done: its own, what stands in its way, and all on top."""
    boxed = {other.cube for other in held if other.family == PLACE_IN_BOX}
    shifted = {skill.cube} | (boxed if skill.family == PLACE_IN_BOX else boxed & {skill.base})
    shifted |= {other.cube for other in held if other.base == skill.base is not None}
    while above := {other.cube for other in held if other.base in shifted} - shifted:
        shifted |= above
    return shifted


def _objects(positions: np.ndarray) -> np.ndarray:
    """[..., 18] to [..., 6, 3]"""
    return positions.reshape(*positions.shape[:-1], len(OBJECTS), 3)


def _within(offsets: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """Whether an offset keeps its limits along all axes. [..., 3] to bool [...]"""
    return np.all(np.abs(offsets) <= limits, axis=-1)


def _stands_on_itself(cube: str, bases: dict[str, str]) -> bool:
    under = bases[cube]
    for _ in bases:
        if under == cube:
            return True
        if under not in bases:
            return False
        under = bases[under]
    return False
