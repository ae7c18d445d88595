from itertools import combinations, product

import numpy as np
import pytest

from planvec.errors import InputError
from planvec.tasks import parse_task, show_task
from planvec.worlds.tabletop.geometry import BOX_FLOOR, BOX_HEIGHT, BOX_INNER, CORNERS, CUBE, CUBES, LID, OBJECTS
from planvec.worlds.tabletop.skills import (
    BY_NAME,
    CORNER_TOLERANCE,
    HEIGHT_TOLERANCE,
    LID_ON,
    LID_TOLERANCE,
    MOVED,
    SKILLS,
    STACK_TOLERANCE,
    TASKS,
    closed,
    compatible,
    goals,
    inside,
    met,
    relations,
)

ON_RIM = BOX_HEIGHT + LID[2]
EDGE = 1e-6  # as much inside or outside a tolerance


def scene(**places):
    """Positions: the box closed in the middle, the cubes in a row, unless told otherwise."""
    default = {"red": (-0.15, 0), "blue": (-0.09, 0), "green": (0.09, 0), "white": (0.15, 0)}
    default = {cube: (*spot, CUBE) for cube, spot in default.items()} | {"box": (0, 0, 0), "lid": (0, 0, ON_RIM)}
    return np.array([(default | places)[name] for name in OBJECTS], float).ravel()


def holding(positions):
    return {SKILLS[i] for i in np.flatnonzero(relations(positions))}


def shifted(place, axis, by):
    return tuple(value + by * (axis == i) for i, value in enumerate(place))


def test_twenty_skills_and_420_tasks():
    assert len(set(SKILLS)) == 20 and {"PlaceInCorner(red)", "Stack(red,blue)", "PlaceInBox(white)"} < set(SKILLS)
    assert len(set(TASKS)) == 420 == 20 + 20**2


def test_tasks_are_read_as_they_are_shown():
    assert all(parse_task(show_task(task), SKILLS) == task for task in TASKS)
    assert parse_task("stack(red,blue), PlaceInBox(green)", SKILLS) == ("Stack(red,blue)", "PlaceInBox(green)")
    with pytest.raises(InputError, match="no skill is called 'Stack"):
        parse_task("Stack(red,red)", SKILLS)


def arrangements():
    """Every way in which four cubes can be placed, each as the set of relations that hold in it."""
    for places in product(("table", "corner", "box", *CUBES), repeat=4):
        where = dict(zip(CUBES, places, strict=True))
        bases = [place for place in places if place in CUBES]
        falls = any(len(bases) > len(set(bases)) or floats(cube, where) for cube in CUBES)
        if not falls and places.count("box") <= 1 and not any(where[base] == "box" for base in bases):
            yield {name for name, skill in BY_NAME.items() if where[skill.cube] == place_of(skill)}


def floats(cube, where):
    """Whether there is no ground below a cube."""
    for _ in CUBES:
        cube = where.get(cube, cube)
    return cube in CUBES


def place_of(skill):
    return skill.base or {"PlaceInCorner": "corner", "PlaceInBox": "box"}[skill.family]


def test_compatible_skills_are_those_of_some_arrangement():
    possible = list(arrangements())
    for skills in (*product(SKILLS, repeat=2), *combinations(SKILLS, 3)):
        assert compatible(skills) == any(set(skills) <= relations for relations in possible), skills


def test_38_percent_of_pairs_are_incompatible():
    assert sum(not compatible(pair) for pair in product(SKILLS, repeat=2)) == 152


def test_nothing_holds_at_first():
    assert not holding(scene()) and closed(scene()) and not inside(scene()).any()


@pytest.mark.parametrize("cube", CUBES)
@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize(("axis", "tolerance"), [(0, CORNER_TOLERANCE), (1, CORNER_TOLERANCE), (2, HEIGHT_TOLERANCE)])
def test_edges_of_corners(cube, sign, axis, tolerance):
    spot = (*CORNERS[cube], CUBE)
    near, far = (scene(**{cube: shifted(spot, axis, sign * (tolerance + by))}) for by in (-EDGE, EDGE))
    assert holding(near) == {f"PlaceInCorner({cube})"} and not holding(far)


def test_each_cube_has_its_own_corner():
    assert not holding(scene(red=(*CORNERS["blue"], CUBE)))


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize(("axis", "tolerance"), [(0, STACK_TOLERANCE), (1, STACK_TOLERANCE), (2, HEIGHT_TOLERANCE)])
@pytest.mark.parametrize(("cube", "base"), [("red", "blue"), ("white", "red"), ("green", "white")])
def test_edges_of_stacks(cube, base, sign, axis, tolerance):
    below = (-0.05, 0.1, CUBE)
    top = shifted(below, 2, 2 * CUBE)
    near, far = (scene(**{base: below, cube: shifted(top, axis, sign * (tolerance + by))}) for by in (-EDGE, EDGE))
    assert holding(near) == {f"Stack({cube},{base})"} and not holding(far)


def test_a_tower_of_three_is_two_relations():
    tower = scene(red=(0.1, 0.1, 5 * CUBE), blue=(0.1, 0.1, 3 * CUBE), green=(0.1, 0.1, CUBE))
    assert holding(tower) == {"Stack(red,blue)", "Stack(blue,green)"}


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("axis", [0, 1])
def test_edges_of_the_box(sign, axis):
    middle = (0, 0, 2 * BOX_FLOOR + CUBE)
    near, far = (scene(red=shifted(middle, axis, sign * (BOX_INNER + by))) for by in (-EDGE, EDGE))
    assert holding(near) == {"PlaceInBox(red)"} and not holding(far)


def test_a_cube_above_the_rim_is_not_in_the_box():
    highest = BOX_HEIGHT - CUBE + HEIGHT_TOLERANCE
    near, far = (scene(red=(0, 0, highest + by)) for by in (-EDGE, EDGE))
    assert holding(near) == {"PlaceInBox(red)"} and not holding(far)


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize(("axis", "tolerance"), [(0, LID_TOLERANCE), (1, LID_TOLERANCE), (2, HEIGHT_TOLERANCE)])
def test_edges_of_the_lid(sign, axis, tolerance):
    near, far = (
        scene(lid=shifted((0, 0, ON_RIM), axis, sign * (tolerance + by)), red=(0, 0, 0.026)) for by in (-EDGE, EDGE)
    )
    assert closed(near) and holding(near) == {"PlaceInBox(red)"}
    assert not closed(far) and not holding(far) and inside(far)[0]


def test_many_scenes_at_once():
    rng = np.random.default_rng(0)
    many = np.stack([scene(red=(*rng.uniform(-0.05, 0.05, 2), 0.026)) for _ in range(20)])
    many = np.concatenate([many, np.full((1, 18), np.nan)])
    assert relations(many).shape == (21, 20) and relations(many).any() and not relations(many)[-1].any()
    np.testing.assert_array_equal(relations(many), [relations(one) for one in many])
    np.testing.assert_array_equal(closed(many), [closed(one) for one in many])
    goal = np.zeros(21, bool)
    goal[SKILLS.index("PlaceInBox(red)")] = True
    np.testing.assert_array_equal(met(goal, many), inside(many)[:, 0])


RED_ON_BLUE = {"red": (0.1, 0.1, 3 * CUBE), "blue": (0.1, 0.1, CUBE)}
LID_OFF = {"lid": (0, 0.11, LID[2])}


def asked(*scenes):
    return {(*SKILLS, "lid")[i] for i in np.flatnonzero(goals(np.stack(scenes)))}


def test_goals_are_the_relations_of_what_was_moved():
    assert asked(scene(blue=RED_ON_BLUE["blue"]), scene(**RED_ON_BLUE)) == {"Stack(red,blue)"}
    assert asked(scene(**RED_ON_BLUE), scene(**RED_ON_BLUE)) == set()
    boxed = {"red": (0, 0, 0.026)}
    steps = [scene(), scene(**LID_OFF), scene(**LID_OFF, **boxed), scene(**boxed)]
    assert asked(*steps) == {"PlaceInBox(red)", "lid"}
    assert asked(*steps[:3]) == set()


def test_goals_ask_for_what_went_away_and_came_back():
    assert asked(scene(), scene(**LID_OFF), scene()) == {"lid"}
    assert asked(scene(**RED_ON_BLUE), scene(), scene(**RED_ON_BLUE)) == {"Stack(red,blue)"}


def test_goals_ask_nothing_of_what_was_set_aside():
    assert asked(scene(**RED_ON_BLUE), scene()) == set()


@pytest.mark.parametrize(("by", "counts"), [(MOVED - EDGE, False), (MOVED + EDGE, True)])
def test_edges_of_having_moved(by, counts):
    spot = (*CORNERS["red"], CUBE)
    steps = [scene(red=shifted(spot, 0, by)), scene(red=spot)]
    assert asked(*steps) == ({"PlaceInCorner(red)"} if counts else set())


def test_meeting_goals():
    goal = np.zeros(21, bool)
    assert met(goal, scene())  # nothing was asked for
    goal[LID_ON] = True
    assert met(goal, scene()) and not met(goal, scene(**LID_OFF))
    goal[SKILLS.index("Stack(red,blue)")] = True
    assert met(goal, scene(**RED_ON_BLUE)) and not met(goal, scene())
    assert not met(goal, scene(**RED_ON_BLUE, **LID_OFF))


def test_goals_of_many_demonstrations():
    one, other = (np.stack([scene(), scene(**LID_OFF), last]) for last in (scene(), scene(**LID_OFF)))
    np.testing.assert_array_equal(goals(np.stack([one, other])), [goals(one), goals(other)])
