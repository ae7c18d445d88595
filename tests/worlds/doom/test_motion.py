import numpy as np
import pytest

from planvec.worlds.doom.level import LEVELS, SCALE
from planvec.worlds.doom.motion import FORWARD, HEADINGS, LEFT, RIGHT, State, beginning, step, waypoints

OPEN, ROOMS = LEVELS["open"], LEVELS["rooms"]
FAR_AWAY = [(11, 11), (11, 9), (9, 11), (9, 9)]


def state(x, y, heading=0, markers=FAR_AWAY):
    """One episode; metres."""
    return beginning(
        np.array([[round(x * SCALE), round(y * SCALE), heading]], np.int32),
        np.rint(np.array([markers]) * SCALE).astype(np.int32),
    )


def do(now, *actions, level=OPEN):
    for action in actions:
        now = step(level, now, np.array([action]))
    return now


def place(now):
    return now.agent[0, :2] / SCALE


def test_turns_are_exact():
    now = state(6, 6)
    assert do(now, LEFT).agent[0, 2] == 1 and do(now, RIGHT).agent[0, 2] == 23
    np.testing.assert_array_equal(do(now, *[LEFT] * HEADINGS).agent, now.agent)
    np.testing.assert_array_equal(do(now, *[LEFT, RIGHT, RIGHT, LEFT]).agent, now.agent)


@pytest.mark.parametrize("heading", range(HEADINGS))
def test_forward_is_a_metre(heading):
    angle = np.radians(15 * heading)
    moved = place(do(state(6, 6, heading), FORWARD)) - 6
    np.testing.assert_allclose(moved, [np.cos(angle), np.sin(angle)], atol=1e-6)


@pytest.mark.parametrize(
    ("begin", "heading", "end"),
    [
        ((11.2, 6.0), 0, (11.5, 6.0)),  # stops half a metre before the wall, which is half the agent
        ((11.5, 6.0), 0, (11.5, 6.0)),
        ((11.5, 6.0), 12, (10.5, 6.0)),  # and gets away from it
        ((11.5, 6.0), 3, (11.5, 6 + np.sqrt(0.5))),  # slides along it
        ((0.7, 0.7), 15, (0.5, 0.5)),
        ((6.0, 11.4), 6, (6.0, 11.5)),
    ],
)
def test_walls_of_the_open_room(begin, heading, end):
    np.testing.assert_allclose(place(do(state(*begin, heading), FORWARD)), end, atol=1e-6)


@pytest.mark.parametrize(
    ("begin", "heading", "end"),
    [
        ((7.0, 2.0), 0, (7.5, 2.0)),  # the wall between two rooms
        ((7.0, 4.0), 0, (8.0, 4.0)),  # the doorway in it
        ((8.2, 5.0), 6, (8.2, 5.0)),  # the side of the doorway: 5.5 less half the agent
        ((9.0, 9.0), 15, (9.0, 9.0)),  # the corner in the middle of everything
    ],
)
def test_walls_between_rooms(begin, heading, end):
    np.testing.assert_allclose(place(do(state(*begin, heading), FORWARD, level=ROOMS)), end, atol=1e-6)


@pytest.mark.parametrize("level", LEVELS.values(), ids=LEVELS)
def test_nobody_ever_walks_into_a_wall(level):
    rng = np.random.default_rng(0)
    now = beginning(
        np.column_stack([np.full((200, 2), 4 * SCALE), rng.integers(HEADINGS, size=200)]).astype(np.int32),
        np.zeros((200, 4, 2), np.int32),
    )
    for _ in range(150):
        now = step(level, now, rng.choice(3, size=200, p=(0.1, 0.1, 0.8)))
        inside = (now.agent[:, None, :2] / SCALE > level.solids[:, :2] - 0.5) & (
            now.agent[:, None, :2] / SCALE < level.solids[:, 2:] + 0.5
        )
        assert not inside.all(axis=2).any()
    assert np.ptp(now.agent[:, :2], axis=0).min() > (level.side - 2) * SCALE  # they got everywhere


def test_visited_at_the_edge_of_a_metre():
    near, far = state(6, 6), state(6, 6)
    near.markers[0, 0] = far.markers[0, 0] = [7 * SCALE, 6 * SCALE]
    far.markers[0, 0, 0] += 1
    np.testing.assert_array_equal(do(near, LEFT).visited[0], [True, False, False, False])
    assert not do(far, LEFT).visited.any()


def test_what_was_visited_stays_visited_and_is_not_there():
    now = do(state(4, 6, markers=[(6, 6), *FAR_AWAY[1:]]), FORWARD)
    assert now.visited[0].tolist() == [True, False, False, False]
    np.testing.assert_array_equal(waypoints(now)[0, 0], 0)
    away = do(now, *[LEFT] * 12, FORWARD, FORWARD)
    assert away.visited[0].tolist() == [True, False, False, False]
    assert (waypoints(away)[0, 1:, 2] == 1).all()


def test_waypoints_in_the_agents_frame():
    markers = [(8, 6), (6, 9), (5, 6), (6, 2)]
    seen = waypoints(state(6, 6, 0, markers))
    assert seen.dtype == np.float32 and seen.shape == (1, 4, 3)
    np.testing.assert_allclose(seen[0], [(2, 0, 1), (0, 3, 1), (-1, 0, 1), (0, -4, 1)], atol=1e-6)
    north = waypoints(state(6, 6, 6, markers))
    np.testing.assert_allclose(north[0], [(0, -2, 1), (3, 0, 1), (0, 1, 1), (-4, 0, 1)], atol=1e-6)
    angle = np.radians(15)
    turned = waypoints(state(6, 6, 1, markers))[0, 0]
    np.testing.assert_allclose(turned, (2 * np.cos(angle), -2 * np.sin(angle), 1), atol=1e-6)


def test_many_at_once_are_as_one_at_a_time():
    rng = np.random.default_rng(0)
    agents = np.column_stack([rng.integers(SCALE, 11 * SCALE, (50, 2)), rng.integers(HEADINGS, size=50)])
    now = beginning(agents.astype(np.int32), rng.integers(SCALE, 11 * SCALE, (50, 4, 2)).astype(np.int32))
    actions = rng.integers(3, size=50)
    after = step(OPEN, now, actions)
    assert after.agent.dtype == np.int32
    for i in range(50):
        alone = step(OPEN, now.take(slice(i, i + 1)), actions[i : i + 1])
        for one, other in zip(alone, after.take(slice(i, i + 1)), strict=True):
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(now.agent, agents)  # what was there before is as it was
    assert isinstance(after, State)
