import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.tabletop_ideal import pick_and_place

from planvec.worlds.tabletop.expert import follow, next_action
from planvec.worlds.tabletop.geometry import BOX_HEIGHT, CORNERS, CUBE, LID, OBJECTS
from planvec.worlds.tabletop.layouts import LID_HOME, random_layout
from planvec.worlds.tabletop.skills import BY_NAME, SKILLS, TASKS, closed, compatible, goals, relations

SCENES = 12  # for every task
NOISE = 0.1 * 2 * CUBE
LONGEST = 4  # actions for a skill: lid off, one cube out, another in, lid on


def perform(positions, task, rng, noise=0.0, thin_fingers=False, limit=60):
    """All positions on the way, [step, 18]."""
    steps, index = [positions], 0
    for _ in range(limit):
        action, index = follow(steps[-1].ravel(), task, index)
        if action is None:
            assert index == len(task)
            return np.stack(steps).reshape(len(steps), -1)
        action = action + noise * rng.normal(size=4)
        steps.append(pick_and_place(steps[-1], action, thin_fingers))
    raise AssertionError(f"{task} was not done in {limit} actions; it began with {positions}")


def in_order(skills):
    """Compatible skills in an order in which none undoes another: towers grow upwards."""
    left, order = list(skills), []
    while left:
        cubes = {BY_NAME[skill].cube for skill in left}
        order.append(next(skill for skill in left if BY_NAME[skill].base not in cubes))
        left.remove(order[-1])
    return tuple(order)


def asked(steps):
    return {(*SKILLS, "lid")[i] for i in np.flatnonzero(goals(steps))}


def test_all_tasks():
    """Every action does something, nothing but the task's relations comes about, and the last skill's holds."""
    rng = np.random.default_rng(0)
    for task in TASKS * SCENES:
        steps = perform(random_layout(rng, task), task, rng)
        assert 2 <= len(steps) <= 1 + LONGEST * len(task)
        assert np.all(np.abs(np.diff(steps, axis=0)).max(axis=1) > CUBE / 2)  # nothing was refused
        assert task[-1] in asked(steps) <= {*task, "lid"}
        assert closed(steps[-1])


def test_skills_asked_for_together_hold_together():
    rng = np.random.default_rng(1)
    for pair in (task for task in TASKS if len(task) == 2 and compatible(task)):
        steps = perform(random_layout(rng, pair), in_order(pair), rng)
        assert asked(steps) - {"lid"} == set(pair)
        assert len(steps) <= 1 + 2 * LONGEST


def test_an_unsteady_hand_still_gets_there():
    rng = np.random.default_rng(2)
    lengths = []
    for task in TASKS:
        steps = perform(random_layout(rng, task), task, rng, noise=NOISE)
        assert relations(steps[-1])[SKILLS.index(task[-1])] and closed(steps[-1])
        lengths.append(len(steps) - 1)
    assert np.mean(lengths[20:]) < 4  # hardly more than the 3.75 of a steady one


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(SKILLS))
def test_whatever_has_happened_is_put_right(seed, skill):
    rng = np.random.default_rng(seed)
    positions = meddled_with(random_layout(rng), rng)
    steps = perform(positions, (skill,), rng, thin_fingers=True, limit=15)
    assert relations(steps[-1])[SKILLS.index(skill)] and closed(steps[-1])


def meddled_with(positions, rng):
    """A scene after a dozen senseless actions: things on each other, in corners, beside and across the box."""
    for _ in range(12):
        thing = rng.choice([0, 1, 2, 3, 5])
        near = positions[rng.integers(6), :2] + rng.normal(size=2) * rng.choice([0.004, 0.03])
        corner = np.array(list(CORNERS.values()))[rng.integers(4)]
        anywhere = rng.uniform(-1, 1, size=2) * (0.22, 0.16)
        target = (near, near, corner, anywhere)[rng.integers(4)]
        positions = pick_and_place(positions, [*positions[thing, :2], *target], thin_fingers=True)
    return positions


BOX = (0.0, -0.05)
INSIDE = (*BOX, 0.026)


def scene(**places):
    """The box closed, two cubes on either side of it, unless told otherwise."""
    default = {"red": (-0.15, 0), "blue": (-0.1, -0.12), "green": (0.1, -0.12), "white": (0.15, 0)}
    default = {cube: (*spot, CUBE) for cube, spot in default.items()}
    default |= {"box": (*BOX, 0), "lid": (*BOX, BOX_HEIGHT + LID[2])}
    return np.array([(default | places)[name] for name in OBJECTS], float)


def on(place, height=1):
    return (*place[:2], place[2] + 2 * CUBE * height)


def moves(positions, skill):
    """What the expert moves, in order."""
    names = []
    while (action := next_action(positions.ravel(), skill)) is not None:
        after = pick_and_place(positions, action)
        names += [OBJECTS[thing] for thing in np.flatnonzero(np.any(after != positions, axis=1))]
        assert after is not positions, f"refused: {action} in {positions}"
        positions = after
    return names


SPOT, OPEN = (0.1, -0.12, CUBE), {"lid": (*LID_HOME, LID[2])}
NO_ROOM_FOR_LID = {"red": (-0.15, 0.03, CUBE), "white": (0.15, 0.03, CUBE), "blue": (0, 0.1, CUBE)}
ON_LID = (BOX[0] + 0.034, BOX[1], BOX_HEIGHT + 2 * LID[2] + CUBE)


@pytest.mark.parametrize(
    ("skill", "places", "expected"),
    [
        ("PlaceInCorner(red)", {}, "red"),
        ("PlaceInCorner(red)", {"red": INSIDE}, "lid red lid"),
        ("PlaceInCorner(red)", {"red": INSIDE, **OPEN}, "red lid"),
        ("PlaceInCorner(red)", {"red": (*CORNERS["red"], CUBE), **OPEN}, "lid"),
        ("PlaceInCorner(red)", {"red": (*CORNERS["red"], CUBE)}, ""),
        ("PlaceInCorner(red)", {"white": (-0.19, -0.13, CUBE)}, "white red"),
        ("PlaceInCorner(red)", {"white": (-0.19, -0.13, CUBE), "green": on((-0.19, -0.13, CUBE))}, "green white red"),
        ("PlaceInCorner(green)", {"green": SPOT, "red": on(SPOT), "blue": on(SPOT, 2)}, "blue red green"),
        ("PlaceInCorner(red)", {"white": (*CORNERS["red"], CUBE), "red": (*CORNERS["red"], 3 * CUBE)}, "red white red"),
        ("Stack(red,blue)", {}, "red"),
        ("Stack(red,blue)", {"red": INSIDE}, "lid red lid"),
        ("Stack(red,blue)", {"blue": INSIDE}, "lid blue red lid"),
        ("Stack(red,blue)", {"white": INSIDE}, "red"),
        ("Stack(red,green)", {"green": SPOT, "white": on(SPOT)}, "white red"),
        ("Stack(red,green)", {"red": SPOT, "green": on(SPOT)}, "green red"),
        ("Stack(red,green)", {"green": SPOT, "white": on(SPOT), "red": on(SPOT, 2)}, "red white red"),
        ("Stack(green,red)", {"green": SPOT, "white": on(SPOT)}, "white green"),
        ("Stack(red,green)", {"green": SPOT, "red": on((0.125, -0.12, CUBE))}, "red"),
        ("Stack(red,green)", {"green": SPOT, "red": on(SPOT), "blue": on(SPOT, 2)}, ""),
        ("Stack(red,blue)", {"blue": INSIDE, "red": on(INSIDE), **OPEN}, "red blue red lid"),
        ("Stack(red,blue)", {"blue": ON_LID}, "blue red"),
        ("PlaceInBox(red)", {}, "lid red lid"),
        ("PlaceInBox(red)", OPEN, "red lid"),
        ("PlaceInBox(red)", {"red": INSIDE}, ""),
        ("PlaceInBox(red)", {"red": INSIDE, **OPEN}, "lid"),
        ("PlaceInBox(red)", {"blue": INSIDE}, "lid blue red lid"),
        ("PlaceInBox(red)", {"blue": INSIDE, "white": on(INSIDE), **OPEN}, "white blue red lid"),
        ("PlaceInBox(red)", {"red": INSIDE, "white": on(INSIDE), **OPEN}, "white lid"),
        ("PlaceInBox(green)", {"green": SPOT, "white": on(SPOT)}, "lid white green lid"),
        ("PlaceInBox(red)", {"red": ON_LID}, "red lid red lid"),
        ("PlaceInBox(red)", {"blue": ON_LID}, "blue lid red lid"),
        ("PlaceInBox(red)", {"lid": (0.03, -0.05, BOX_HEIGHT + LID[2]), "red": INSIDE}, "lid"),
        ("PlaceInBox(red)", NO_ROOM_FOR_LID, "blue lid red lid"),
    ],
)
def test_orders_of_moves(skill, places, expected):
    assert moves(scene(**places), skill) == expected.split()


def test_a_lid_that_leans_on_a_cube_is_taken_off_first():
    leaning = scene(red=(0.12, 0.05, CUBE), lid=(0.1, 0.08, 0.022))
    assert next_action(leaning.ravel(), "PlaceInCorner(red)")[:2] == pytest.approx((0.1, 0.08))


def test_a_lid_without_room_that_lies_on_the_cube_at_its_home():
    leaning = scene(**NO_ROOM_FOR_LID | {"lid": (0.03, 0.12, 0.024)})
    action = next_action(leaning.ravel(), "PlaceInCorner(blue)")
    assert action == pytest.approx((0.03, 0.12, *LID_HOME))


def test_tasks_are_followed_skill_by_skill():
    done = scene(red=(*CORNERS["red"], CUBE)).ravel()
    task = ("PlaceInCorner(red)", "PlaceInCorner(red)", "Stack(white,blue)")
    action, index = follow(done, task, 0)
    assert index == 2 and action == pytest.approx((0.15, 0, -0.1, -0.12))
    assert follow(done, task[:2], 0) == (None, 2)


def test_the_first_relation_may_be_undone_by_the_second():
    rng = np.random.default_rng(0)
    task = ("Stack(red,blue)", "PlaceInBox(blue)")
    assert asked(perform(random_layout(rng, task), task, rng)) == {"PlaceInBox(blue)", "lid"}
