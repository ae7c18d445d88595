"""The tabletop expert: looks at where everything is, and names the next pick-and-place towards a skill.

It remembers nothing, so that whatever went wrong is simply put right: a cube that was dropped is picked up again,
what stands in the way is set aside, and the box is closed at the end of every skill.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from planvec.worlds.tabletop.geometry import CORNERS, CUBE, CUBES, OBJECTS
from planvec.worlds.tabletop.layouts import CUBE_HOME, HALVES, LEAST_GAP, LID_HOME, free_spot
from planvec.worlds.tabletop.skills import (
    BOX_AT,
    BY_NAME,
    LID_AT,
    PLACE_IN_BOX,
    PLACE_IN_CORNER,
    SKILLS,
    STACK,
    Skill,
    closed,
    inside,
    relations,
)

HIGHER = 0.01  # what overlaps another thing, and is higher by more, is on top of it
CORNER_ROOM = 0.015  # what is nearer to a cube in its corner is in the way of the hand

_NUMBER = {name: number for number, name in enumerate(SKILLS)}
_MOVABLE = tuple(number for number in range(len(OBJECTS)) if number != BOX_AT)


class Scene(NamedTuple):
    positions: np.ndarray  # [18]
    places: list[list[float]]  # x, y and z of each object
    inside: list[bool]  # which cubes are in the box


class Step(NamedTuple):
    """Set the obstacles aside, one at a time; when there are none left, put the thing on the target."""

    thing: int
    obstacles: list[int]
    target: Sequence[float]


def follow(positions: np.ndarray, task: Sequence[str], index: int) -> tuple[np.ndarray | None, int]:
    """The next action for a task whose first `index` skills are done, and how many are done now; None at its end."""
    while index < len(task):
        action = next_action(positions, task[index])
        if action is not None:
            return action, index
        index += 1
    return None, index


def next_action(positions: np.ndarray, skill: str) -> np.ndarray | None:
    """The next pick-and-place, float64 [4]; None once the skill's relation holds and the box is closed.

    Things are set aside on the free spots that are nearest to their homes.
    """
    positions = np.asarray(positions, np.float64).reshape(3 * len(OBJECTS))
    holds = bool(relations(positions)[_NUMBER[skill]])
    if holds and closed(positions):
        return None
    scene = Scene(positions, positions.reshape(-1, 3).tolist(), inside(positions).tolist())
    parts = BY_NAME[skill]
    step = _STEPS[parts.family](scene, parts, holds) or _close(scene)
    if step.obstacles:
        return _set_aside(scene, _top(scene, step.obstacles[0]))
    return _move(scene, step.thing, step.target)


def _place_in_corner(scene: Scene, skill: Skill, holds: bool) -> Step | None:
    """None where all is done but to close the box; so below."""
    if holds:
        return None
    cube = CUBES.index(skill.cube)
    x, y = CORNERS[skill.cube]
    return Step(cube, _on(scene, cube) + _movable_near(scene, x, y, CUBE + CORNER_ROOM, cube), (x, y))


def _stack(scene: Scene, skill: Skill, holds: bool) -> Step | None:
    """A base in the box or on the lid goes to the table first: the box could not be closed."""
    cube = CUBES.index(skill.cube)
    base = CUBES.index(skill.base)
    obstacles = [base] if _is_on(scene, base, BOX_AT) or _is_on(scene, base, LID_AT) else []
    if holds and not obstacles:
        return None
    obstacles += [thing for thing in _on(scene, base) if thing != cube]
    return Step(cube, obstacles + _on(scene, cube), scene.places[base])


def _place_in_box(scene: Scene, skill: Skill, holds: bool) -> Step | None:
    """The box holds one cube: whatever else is in it comes out first."""
    cube = CUBES.index(skill.cube)
    obstacles = [thing for thing in _on(scene, BOX_AT) if thing != cube]
    if scene.inside[cube] and set(obstacles) <= {LID_AT}:
        return None
    return Step(cube, obstacles + _on(scene, cube), scene.places[BOX_AT])


def _close(scene: Scene) -> Step:
    sticking_out = [thing for thing in _on(scene, BOX_AT) if thing != LID_AT and not scene.inside[thing]]
    return Step(LID_AT, _on(scene, LID_AT) + sticking_out, scene.places[BOX_AT])


def _on(scene: Scene, thing: int) -> list[int]:
    """What is on a thing, in it, or above it."""
    return [other for other in _MOVABLE if other != thing and _is_on(scene, other, thing)]


def _is_on(scene: Scene, upper: int, lower: int) -> bool:
    x, y, z = scene.places[lower]
    if not _near(scene.places[upper], x, y, HALVES[upper] + HALVES[lower]):
        return False
    # A lid that leans on a cube has its middle hardly higher than the cube's.
    leans = upper == LID_AT and lower != BOX_AT
    return scene.places[upper][2] - z > (-HIGHER if leans else HIGHER)


def _movable_near(scene: Scene, x: float, y: float, reach: float, but: int) -> list[int]:
    """What reaches into the square round a point, except for one thing."""
    return [thing for thing in _MOVABLE if thing != but and _near(scene.places[thing], x, y, reach + HALVES[thing])]


def _near(place: Sequence[float], x: float, y: float, reach: float) -> bool:
    """Along both sides of the table."""
    return abs(place[0] - x) < reach and abs(place[1] - y) < reach


def _top(scene: Scene, thing: int) -> int:
    """The topmost of what is piled on a thing, or the thing itself."""
    above = _on(scene, thing)
    return _top(scene, above[0]) if above else thing


def _set_aside(scene: Scene, thing: int) -> np.ndarray:
    """Put a thing on a free spot. Where the lid finds none, a cube near its home makes room first."""
    spot = free_spot(scene.positions, thing)
    if thing != LID_AT:
        return _move(scene, thing, spot or CUBE_HOME)  # on a full table: whatever comes of it can be put right
    if spot is None:
        at_home = _movable_near(scene, *LID_HOME, HALVES[LID_AT] + LEAST_GAP, LID_AT)
        tops = [top for cube in at_home if (top := _top(scene, cube)) != LID_AT]  # not those that the lid lies on
        if tops:
            return _set_aside(scene, tops[0])
    return _move(scene, thing, spot or LID_HOME)


def _move(scene: Scene, thing: int, target: Sequence[float]) -> np.ndarray:
    return np.array([*scene.places[thing][:2], *target[:2]])


_STEPS = {PLACE_IN_CORNER: _place_in_corner, STACK: _stack, PLACE_IN_BOX: _place_in_box}
