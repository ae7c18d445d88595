import mujoco
import numpy as np
import pytest

from planvec.errors import InputError
from planvec.worlds.tabletop import motion
from planvec.worlds.tabletop.geometry import (
    BOX_FLOOR,
    BOX_HEIGHT,
    BOX_INNER,
    CUBE,
    CUBES,
    FINGER,
    HANDLE,
    LID,
    OBJECTS,
    TABLE,
)
from planvec.worlds.tabletop.layouts import LID_HOME, free_spot, layout_with
from planvec.worlds.tabletop.simulator import Simulator, check_action, positions

RED, BLUE, GREEN, WHITE, BOX, LID_AT = range(len(OBJECTS))
NOISE = 0.004  # a tenth of a cube's side
ON_TABLE, IN_BOX, LID_DOWN, LID_ON = CUBE, 2 * BOX_FLOOR + CUBE, LID[2], BOX_HEIGHT + LID[2]

# A quiet scene: the box closed in the middle, the cubes far apart.
QUIET = np.array(
    [
        (-0.15, -0.10, ON_TABLE),
        (0.15, -0.10, ON_TABLE),
        (-0.15, 0.10, ON_TABLE),
        (0.15, 0.10, ON_TABLE),
        (0.0, 0.0, 0.0),
        (0.0, 0.0, LID_ON),
    ]
)
EMPTY_SPOT = (0.0, -0.115)  # with room for the lid


@pytest.fixture(scope="module")
def simulator():
    simulator = Simulator()
    yield simulator
    simulator.close()


def act(simulator, places, *action):
    """Where everything was at rest, and where it is after an action."""
    state = simulator.place(places)
    after, sane = simulator.pick_and_place(state, np.array(action))
    assert sane
    return positions(state).reshape(-1, 3), positions(after).reshape(-1, 3)


def changed(places, **moves):
    """The scene with some objects elsewhere."""
    places = places.copy()
    for name, place in moves.items():
        places[OBJECTS.index(name)] = place
    return places


# Each primitive: a scene, what to take, where to put it, and the height that it then has.


def from_table(rng):
    places = layout_with(rng, None)
    return places, RED, free_spot(places, RED, rng), ON_TABLE


def onto_cube(rng):
    places = layout_with(rng, None)
    return places, RED, places[BLUE, :2], 3 * CUBE


def tower(rng, height):
    """White at the bottom, then green, blue, red."""
    places = layout_with(rng, None)
    for level in range(1, height):
        places[WHITE - level] = *places[WHITE, :2], (2 * level + 1) * CUBE
    return places


def from_tower(rng):
    height = int(rng.integers(2, 5))
    places, top = tower(rng, height), WHITE - height + 1
    return places, top, free_spot(places, top, rng), ON_TABLE


def onto_tower(rng):
    places = tower(rng, 3)
    return places, RED, places[WHITE, :2], 7 * CUBE


def open_box(rng, inside):
    places = layout_with(rng, inside)
    places[LID_AT] = *LID_HOME, LID_DOWN
    return places


def into_box(rng):
    places = open_box(rng, None)
    return places, RED, places[BOX, :2], IN_BOX


def out_of_box(rng):
    places = open_box(rng, "red")
    places[RED, :2] += rng.normal(0, NOISE, 2)
    return places, RED, free_spot(places, RED, rng), ON_TABLE


def lid_off(rng):
    places = layout_with(rng, rng.choice([None, *CUBES]))
    return places, LID_AT, free_spot(places, LID_AT), LID_DOWN


def lid_on(rng):
    places = open_box(rng, rng.choice([None, *CUBES]))
    return places, LID_AT, places[BOX, :2], LID_ON


PRIMITIVES = [from_table, onto_cube, from_tower, onto_tower, into_box, out_of_box, lid_off, lid_on]


def succeeds(simulator, primitive, rng):
    """Whether an inexact pick-and-place brings the thing where it should be, and leaves the rest where it was."""
    places, thing, target, height = primitive(rng)
    exact = np.array([*places[thing, :2], *target])
    before, after = act(simulator, places, *(exact + rng.normal(0, NOISE, 4)))
    aside = np.abs(after[thing, :2] - target).max() < 0.02
    others = np.abs(after - before)[np.arange(len(OBJECTS)) != thing].max() < 0.01
    return aside and others and abs(after[thing, 2] - height) < 0.004


@pytest.mark.parametrize("primitive", PRIMITIVES, ids=lambda primitive: primitive.__name__)
def test_primitives_succeed_with_an_inexact_hand(simulator, primitive):
    rng = np.random.default_rng(0)
    assert np.mean([succeeds(simulator, primitive, rng) for _ in range(60)]) >= 0.97


def test_an_exact_hand_is_exact(simulator):
    _, after = act(simulator, QUIET, *QUIET[RED, :2], *EMPTY_SPOT)
    np.testing.assert_allclose(after[RED], (*EMPTY_SPOT, ON_TABLE), atol=0.002)


def test_same_state_and_action_same_result_whatever_was_done_before(simulator):
    rng = np.random.default_rng(1)
    state = simulator.place(tower(rng, 3))
    action = np.array([*positions(state)[3 * BLUE :][:2], 0.01, 0.02])
    first, _ = simulator.pick_and_place(state, action)
    simulator.pick_and_place(simulator.place(QUIET), np.array([0.0, 0.0, *EMPTY_SPOT]))
    again, _ = simulator.pick_and_place(state, action)
    fresh, _ = Simulator().pick_and_place(state, action)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, fresh)
    np.testing.assert_array_equal(simulator.place(QUIET), Simulator().place(QUIET))


def test_a_state_is_all_there_is(simulator):
    """Episodes go on the same from copies of their states, in other simulators, watched or not."""
    actions = [(0.0, 0.0, *EMPTY_SPOT), (*QUIET[RED, :2], 0.0, 0.0), (*EMPTY_SPOT, 0.0, 0.0)]
    state = other = simulator.place(QUIET)
    frames = []
    for action in map(np.array, actions):
        state, _ = simulator.pick_and_place(state, action)
        other, _ = Simulator().pick_and_place(other.copy(), action, watch=frames.append)
        np.testing.assert_array_equal(state, other)
    places = positions(state).reshape(-1, 3)
    np.testing.assert_allclose(places[RED], (0.0, 0.0, IN_BOX), atol=0.003)
    np.testing.assert_allclose(places[LID_AT], (0.0, 0.0, LID_ON), atol=0.003)
    assert 50 < len(frames) < 150


def test_the_inputs_are_left_alone(simulator):
    state, action = simulator.place(QUIET), np.array([*QUIET[RED, :2], *EMPTY_SPOT])
    copies = state.copy(), action.copy()
    simulator.pick_and_place(state, action)
    np.testing.assert_array_equal(state, copies[0])
    np.testing.assert_array_equal(action, copies[1])


# A hair inside and a hair outside the edge within which a thing is grasped.


@pytest.mark.parametrize("direction", [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1)])
@pytest.mark.parametrize(("thing", "half"), [(RED, (CUBE, CUBE)), (LID_AT, HANDLE[:2])])
def test_edges_of_the_footprint(simulator, thing, half, direction):
    edge = (np.array(half) + motion.AIM) * direction
    for factor, grasped in ((0.98, True), (1.02, False)):
        before, after = act(simulator, QUIET, *(QUIET[thing, :2] + factor * edge), *EMPTY_SPOT)
        moved = np.abs(after - before).max(axis=1)
        assert np.delete(moved, thing).max() < 0.001
        assert (moved[thing] > 0.05) == grasped and (grasped or moved[thing] < 0.0005)


def test_the_highest_thing_is_grasped(simulator):
    pile = changed(QUIET, blue=(*QUIET[RED, :2], 3 * CUBE), green=(QUIET[RED, 0], QUIET[RED, 1], 5 * CUBE))
    _, after = act(simulator, pile, *QUIET[RED, :2], *EMPTY_SPOT)
    np.testing.assert_allclose(after[GREEN], (*EMPTY_SPOT, ON_TABLE), atol=0.003)
    np.testing.assert_allclose(after[BLUE], pile[BLUE], atol=0.003)


NOTHING = {
    "an empty spot": (QUIET, EMPTY_SPOT),
    "the box's wall": (QUIET, (0.05, 0.0)),
    "the plate of the lid": (QUIET, (0.03, 0.03)),
    "far outside": (QUIET, (3.0, -2.0)),
    "outside, beside a cube at the wall": (changed(QUIET, red=(-0.218, -0.1, ON_TABLE)), (-0.26, -0.1)),
    "a cube in the closed box": (changed(QUIET, red=(0.015, 0.0, IN_BOX)), (0.03, 0.0)),
    "the box's floor": (changed(QUIET, lid=(*EMPTY_SPOT, LID_DOWN)), (0.0, 0.0)),
    "a cube with no room for a finger": (changed(QUIET, blue=(-0.107, -0.1, ON_TABLE)), (-0.15, -0.1)),
    "a cube below another": (changed(QUIET, blue=(-0.138, -0.1, 3 * CUBE)), (-0.168, -0.1)),
}


@pytest.mark.parametrize("case", NOTHING)
def test_where_nothing_can_be_grasped_nothing_moves(simulator, case):
    places, point = NOTHING[case]
    for goal in ((0.0, 0.12), (-0.15, -0.06), (9.0, 9.0)):
        before, after = act(simulator, places, *point, *goal)
        assert np.abs(after - before).max() < 0.0005


@pytest.mark.parametrize("goal", [(5.0, 5.0), (-0.24, -0.18), (0.24, -1e6), (1e300, 0.1)])
@pytest.mark.parametrize(("thing", "half"), [(RED, CUBE), (LID_AT, LID[0])])
def test_what_is_put_outside_ends_beside_the_wall(simulator, thing, half, goal):
    _, after = act(simulator, QUIET, *QUIET[thing, :2], *goal)
    np.testing.assert_allclose(
        after[thing, :2], np.clip(goal, half - np.array(TABLE), TABLE - np.array(half)), atol=0.01
    )


def test_beside_a_wall_things_can_be_grasped(simulator):
    places = changed(QUIET, red=(half_in(0), half_in(1), ON_TABLE))
    _, after = act(simulator, places, *places[RED, :2], *EMPTY_SPOT)
    np.testing.assert_allclose(after[RED], (*EMPTY_SPOT, ON_TABLE), atol=0.003)


def half_in(axis):
    return -(TABLE[axis] - CUBE - 0.001)


def test_a_cube_put_half_onto_another_falls_and_comes_to_rest(simulator):
    state = simulator.place(QUIET)
    state, sane = simulator.pick_and_place(state, np.array([*QUIET[RED, :2], QUIET[BLUE, 0] - 0.03, QUIET[BLUE, 1]]))
    assert sane and positions(state)[2] < 2 * CUBE
    later, _ = simulator.pick_and_place(state, np.array([*EMPTY_SPOT, *EMPTY_SPOT]))
    np.testing.assert_allclose(positions(later), positions(state), atol=0.001)


def test_fingers_have_room_in_the_box():
    assert FINGER[0] * 2 + motion.RELEASE + CUBE + 3 * NOISE < BOX_INNER


BAD_ACTIONS = [(0.1, 0.1, 0.1), np.zeros((1, 4)), (0, 0, 0, np.nan), (np.inf, 0, 0, 0), "abcd", None, (0, 0, 0, "x")]


@pytest.mark.parametrize("action", BAD_ACTIONS, ids=repr)
def test_bad_actions_are_named(simulator, action):
    with pytest.raises(InputError, match="an action"):
        check_action(action)
    with pytest.raises(InputError, match="an action"):
        simulator.pick_and_place(simulator.place(QUIET), action)


def test_bad_states_and_positions_are_named(simulator):
    with pytest.raises(InputError, match="a state"):
        simulator.pick_and_place(np.zeros(3), np.zeros(4))
    with pytest.raises(InputError, match="positions"):
        simulator.place(QUIET[:5])
    with pytest.raises(InputError, match="finite"):
        simulator.place(changed(QUIET, red=(np.nan, 0, 0)))
    with pytest.raises(InputError, match="on the table"):
        simulator.place(changed(QUIET, red=(2.0, 0, 0.02)))


def test_physics_that_diverges_is_told_and_changes_nothing(simulator, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    state = simulator.place(QUIET)
    state[simulator.model.nq : simulator.model.nq + 3] = 1e9  # a velocity
    after, sane = simulator.pick_and_place(state, np.array([*QUIET[BLUE, :2], *EMPTY_SPOT]))
    assert not sane
    np.testing.assert_array_equal(after, state)
    assert not list(tmp_path.iterdir()), "MuJoCo wrote a log"
    np.testing.assert_array_equal(simulator.place(QUIET), Simulator().place(QUIET))


def test_positions_of_many_states(simulator):
    states = np.stack([simulator.place(QUIET), simulator.place(tower(np.random.default_rng(0), 4))])
    many = positions(states)
    assert many.shape == (2, 18) and many.dtype == np.float32
    np.testing.assert_array_equal(many[1], simulator.positions(states[1]))
    np.testing.assert_allclose(many[0], QUIET.ravel(), atol=0.001)


@pytest.fixture
def drawing(simulator):
    try:
        simulator.render(simulator.place(QUIET), 32, 32)
    except InputError as error:
        pytest.skip(str(error))
    return simulator


def test_pictures_show_the_state(drawing):
    state = drawing.place(QUIET)
    moved, _ = drawing.pick_and_place(state, np.array([*QUIET[RED, :2], *EMPTY_SPOT]))
    pictures = [drawing.render(each, 160, 120) for each in (state, moved, state)]
    assert pictures[0].shape == (120, 160, 3) and pictures[0].dtype == np.uint8
    assert pictures[0].std() > 20
    np.testing.assert_array_equal(pictures[0], pictures[2])
    assert (pictures[0] != pictures[1]).any()
    assert drawing.render(state, 160, 120, view="above").shape == (120, 160, 3)


def test_a_film_shows_the_arm_moving(drawing):
    frames = []
    state = drawing.place(QUIET)
    drawing.pick_and_place(
        state,
        np.array([*QUIET[RED, :2], *EMPTY_SPOT]),
        watch=lambda watched: frames.append(watched.render(None, 64, 48)),
    )
    assert len({frame.tobytes() for frame in frames}) > len(frames) / 2


def test_drawing_what_cannot_be_drawn(drawing, monkeypatch):
    state = drawing.place(QUIET)
    with pytest.raises(InputError, match="front or above"):
        drawing.render(state, 32, 32, view="below")
    with pytest.raises(InputError, match="at most"):
        drawing.render(state, 99999, 32)

    def no_context(*args, **options):
        raise RuntimeError("no EGL")

    monkeypatch.setattr(mujoco, "MjrContext", no_context)
    with pytest.raises(InputError, match="libegl1"):
        drawing.render(state, 33, 33)
