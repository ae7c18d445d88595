from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import tabletop_ideal as ideal

from planvec.worlds.tabletop.geometry import BOX_FLOOR, CORNERS, CUBE, CUBES, LID, OBJECTS, TABLE
from planvec.worlds.tabletop.layouts import (
    GAP,
    HALVES,
    LID_HOME,
    PITCH,
    WALL_GAP,
    free_spot,
    layout_with,
    random_layout,
)
from planvec.worlds.tabletop.skills import SKILLS, closed, relations

BOX_AT, LID_AT = OBJECTS.index("box"), OBJECTS.index("lid")
SEED = st.integers(0, 2**32 - 1)
CONTENT = st.sampled_from([None, *CUBES])
ROUNDING = 1e-9


def gap(place, half, other, other_half):
    """The free room between two squares, along the side of the table where it is wider."""
    return np.abs(np.subtract(place[:2], other[:2])).max() - half - other_half


def on_table(positions, inside):
    """The squares that stand on the table: the box and all cubes but the one inside."""
    return [i for i in range(BOX_AT + 1) if i == BOX_AT or CUBES[i] != inside]


@settings(max_examples=300, deadline=None)
@given(SEED, CONTENT)
def test_layouts(seed, inside):
    positions = layout_with(np.random.default_rng(seed), inside)
    assert positions.shape == (6, 3) and closed(positions.ravel())
    standing = on_table(positions, inside)
    for one, other in combinations(standing, 2):
        assert gap(positions[one], HALVES[one], positions[other], HALVES[other]) >= GAP - ROUNDING
    for i in standing:
        assert positions[i, 2] == (0 if i == BOX_AT else CUBE)
        assert np.all(np.abs(positions[i, :2]) + HALVES[i] + WALL_GAP - PITCH / 2 <= np.array(TABLE) + ROUNDING)
        assert gap(positions[i], HALVES[i], LID_HOME, LID[0]) >= GAP - ROUNDING
        for corner in CORNERS.values():
            assert gap(positions[i], HALVES[i], corner, CUBE) >= GAP - ROUNDING
        assert i == BOX_AT or all(ideal.room_along(positions, i, axis) for axis in (0, 1))
    holds = {SKILLS[i] for i in np.flatnonzero(relations(positions.ravel()))}
    assert holds == (set() if inside is None else {f"PlaceInBox({inside})"})
    if inside is not None:
        np.testing.assert_allclose(positions[CUBES.index(inside)] - positions[BOX_AT], [0, 0, 2 * BOX_FLOOR + CUBE])


def test_a_cube_is_inside_in_two_scenes_of_five():
    rng = np.random.default_rng(0)
    boxes = relations(np.stack([random_layout(rng).ravel() for _ in range(3000)]))[:, -4:]
    assert boxes.any(axis=1).mean() == pytest.approx(0.4, abs=0.03)
    np.testing.assert_allclose(boxes.mean(axis=0), 0.1, atol=0.02)


@pytest.mark.parametrize(
    "task", [("PlaceInBox(red)",), ("PlaceInCorner(red)", "PlaceInBox(blue)"), tuple(f"PlaceInBox({c})" for c in CUBES)]
)
def test_nothing_of_the_task_is_done_yet(task):
    rng = np.random.default_rng(0)
    holds = relations(np.stack([random_layout(rng, task).ravel() for _ in range(300)]))
    assert not holds[:, [SKILLS.index(skill) for skill in task]].any()
    assert holds.any(axis=1).mean() == pytest.approx(0.4 if len(task) < 4 else 0, abs=0.1)


def test_layouts_depend_on_the_seed_alone():
    one, same, other = (random_layout(np.random.default_rng(seed)) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_layouts_use_the_table():
    rng = np.random.default_rng(1)
    many = np.stack([layout_with(rng, None) for _ in range(500)])
    assert np.ptp(many[:, 0, 0]) > 0.38 and np.ptp(many[:, 0, 1]) > 0.26
    assert np.ptp(many[:, BOX_AT, 0]) > 0.3 and np.ptp(many[:, BOX_AT, 1]) > 0.12


@settings(max_examples=200, deadline=None)
@given(SEED, st.sampled_from(CUBES), st.booleans())
def test_there_is_room_for_the_lid_and_then_for_the_content(seed, inside, at_random):
    rng = np.random.default_rng(seed)
    positions = layout_with(rng, inside)
    for thing, height in ((LID_AT, LID[2]), (CUBES.index(inside), CUBE)):
        spot = free_spot(positions, thing, rng if at_random else None)
        for other in set(range(len(OBJECTS))) - {thing}:
            assert gap(spot, HALVES[thing], positions[other], HALVES[other]) >= GAP - ROUNDING
        for corner in CORNERS.values():
            assert gap(spot, HALVES[thing], corner, CUBE) >= GAP - ROUNDING
        positions[thing] = *spot, height


def test_without_chance_the_lid_goes_home():
    rng = np.random.default_rng(0)
    spots = [free_spot(layout_with(rng, None), LID_AT) for _ in range(50)]
    np.testing.assert_allclose(spots, [LID_HOME] * 50)


def test_cubes_are_not_put_where_the_lid_goes():
    rng = np.random.default_rng(0)
    for _ in range(100):
        assert gap(free_spot(layout_with(rng, None), 0, rng), CUBE, LID_HOME, LID[0]) >= GAP - ROUNDING


def scattered(box, lid, *cubes):
    places = [(*spot, CUBE) for spot in cubes] + [(*box, 0.0), (*lid, LID[2])]
    return np.array(places)


def test_things_move_together_where_there_is_little_room():
    crowded = scattered((0.10, -0.02), (-0.14, 0), (-0.2, 0), (-0.02, -0.02), (-0.02, 0.09), (-0.02, -0.12))
    spot = free_spot(crowded, LID_AT)
    assert spot is not None
    least = min(gap(spot, LID[0], crowded[i], HALVES[i]) for i in range(5))
    assert 0 < least < GAP


def test_a_full_table_has_no_spot():
    full = scattered((0, 0), (0, 0), (-0.13, 0), (0.13, 0), (0, -0.12), (0, 0.12))
    assert free_spot(full, LID_AT) is None and free_spot(full, LID_AT, np.random.default_rng(0)) is None
