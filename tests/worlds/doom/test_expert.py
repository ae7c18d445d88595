import numpy as np
import pytest

from planvec.tasks import encode_tasks
from planvec.worlds.doom.attempts import DONE, EXTRAS, FAILED, attempt, retrace
from planvec.worlds.doom.expert import _clear, _next_points, choose
from planvec.worlds.doom.level import LEVELS, SCALE, WAYPOINTS
from planvec.worlds.doom.motion import FORWARD, LEFT, RIGHT, beginning
from planvec.worlds.doom.scenes import APART, MARGIN, random_scene
from planvec.worlds.doom.world import HORIZONS

COUNT = 400


def attempts(level, size, noise=0.0, count=COUNT, seed=0):
    rng = np.random.default_rng(size)
    tasks = [tuple(WAYPOINTS[i] for i in rng.permutation(4)[:size]) for _ in range(count)]
    seeds = np.column_stack([np.full(count, seed), np.arange(count)])
    return tasks, attempt(LEVELS[level], encode_tasks(tasks, WAYPOINTS), seeds, noise)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_it_succeeds_and_takes_as_long_as_it_used_to(level, size):
    _, steady = attempts(level, size)
    _, unsteady = attempts(level, size, noise=0.1)
    for made in (steady, unsteady):
        assert (made.status == FAILED).mean() <= 0.01
        assert (made.status == EXTRAS).mean() < 0.25
    mean = unsteady.lengths[unsteady.status == DONE].mean()
    assert 3 * mean == pytest.approx(HORIZONS[level][size - 1], rel=0.08)
    assert steady.lengths[steady.status == DONE].mean() < mean
    assert unsteady.lengths[unsteady.status == DONE].max() < HORIZONS[level][size - 1]


def test_attempts_do_what_they_say():
    tasks, made = attempts("open", 2, noise=0.1, count=60)
    level = LEVELS["open"]
    for i, task in enumerate(tasks):
        length = made.lengths[i : i + 1]
        states = retrace(level, beginning(made.agent[i : i + 1], made.markers[i : i + 1]), made.actions[i], length)
        assert len(states.agent) == length[0] + 1 and not states.visited[0].any()
        visited = {WAYPOINTS[j] for j in np.flatnonzero(states.visited[-1])}
        assert set(task) <= visited and len(visited - set(task)) == made.extras[i]
        assert (made.status[i] == EXTRAS) == (made.extras[i] > 0)
        assert not set(task) <= {WAYPOINTS[j] for j in np.flatnonzero(states.visited[-2])}  # it ends when it is done
        order = [states.visited[:, WAYPOINTS.index(name)].argmax() for name in task]
        assert order == sorted(order) or made.status[i] == DONE  # a later one may lie on the way


def test_an_attempt_depends_on_its_seed_alone():
    tasks, together = attempts("open", 3, noise=0.2, count=40)
    seeds = np.column_stack([np.zeros(5, int), np.arange(10, 15)])
    some = attempt(LEVELS["open"], encode_tasks(tasks[10:15], WAYPOINTS), seeds, 0.2)
    for one, other in zip(some, together, strict=True):
        np.testing.assert_array_equal(one, other[10:15])


def test_noise_is_the_share_of_random_actions():
    level, others, total = LEVELS["open"], 0, 0
    tasks, made = attempts("open", 1, noise=0.3, count=200)
    for i, (name,) in enumerate(tasks):
        length = made.lengths[i : i + 1]
        states = retrace(level, beginning(made.agent[i : i + 1], made.markers[i : i + 1]), made.actions[i], length)
        steady = choose(level, states, np.full(length[0] + 1, WAYPOINTS.index(name)))
        others, total = others + np.sum(steady[:-1] != made.actions[i, : length[0]]), total + length[0]
    assert others / total == pytest.approx(0.3 * 2 / 3, abs=0.03)  # a third are what the expert would have done


def towards(x, y, heading=0, target=(9.0, 6.0), level="open"):
    agent = np.array([[round(x * SCALE), round(y * SCALE), heading]], np.int32)
    markers = np.rint(np.array([[target] * 4]) * SCALE).astype(np.int32)
    return choose(LEVELS[level], beginning(agent, markers), np.array([0]))[0]


def test_turning_and_going():
    assert towards(3, 6) == FORWARD
    assert towards(3, 6, heading=1) == RIGHT and towards(3, 6, heading=23) == LEFT
    assert towards(3, 6, heading=11) == RIGHT and towards(3, 6, heading=13) == LEFT
    angle = np.radians(7.9)
    assert towards(9 - 5 * np.cos(angle), 6 - 5 * np.sin(angle)) == FORWARD
    angle = np.radians(8.1)
    assert towards(9 - 5 * np.cos(angle), 6 - 5 * np.sin(angle)) == LEFT


ROOMS = LEVELS["rooms"]


SOUTH, WEST = ((7.4, 4.0), (9.1, 4.0)), ((4.0, 7.4), (4.0, 9.1))  # doorways, from both sides


@pytest.mark.parametrize(
    ("begin", "goal", "expected"),
    [
        ((2, 2), (6, 6), ((6, 6),)),  # the same room
        ((2, 4), (14, 4), ((14, 4),)),  # through a doorway, straight on
        ((2, 2), (14, 1), SOUTH),
        ((7, 1), (9.5, 1), SOUTH[:1]),
        ((9.5, 1), (7, 1), SOUTH[1:]),
        ((2, 2), (1, 14), WEST),
        ((4, 6), (14, 14), WEST),  # the shorter of two ways round
        ((6, 4), (14, 14), SOUTH),
    ],
)
def test_the_shortest_way(begin, goal, expected):
    point = _next_points(ROOMS, np.array([begin], float), np.array([goal], float))
    assert tuple(point[0].tolist()) in expected


def test_what_is_in_the_way():
    def clear(*ends):
        return bool(_clear(ROOMS, *np.array(ends, float)))

    assert clear((1, 1), (7.5, 7.5)) and clear((7.5, 1), (7.5, 7))  # touching a wall
    assert not clear((7.0, 2.0), (9.5, 2.0)) and clear((7.0, 4.0), (9.5, 4.0))
    assert not clear((7.0, 4.0), (9.5, 5.5))


@pytest.mark.parametrize("level", LEVELS.values(), ids=LEVELS)
def test_random_scenes(level):
    rng = np.random.default_rng(0)
    agents, markers = zip(*(random_scene(rng, level) for _ in range(300)), strict=True)
    assert agents[0].dtype == markers[0].dtype == np.int32
    places = np.concatenate([np.stack(agents)[:, None, :2], np.stack(markers)], axis=1) / SCALE
    apart = np.linalg.norm(places[:, :, None] - places[:, None], axis=-1) + 100 * np.eye(5)
    assert apart.min() >= APART
    within = [
        np.all((places >= (x0 + MARGIN, y0 + MARGIN)) & (places <= (x1 - MARGIN, y1 - MARGIN)), axis=-1)
        for x0, y0, x1, y1 in level.rooms
    ]
    assert np.any(within, axis=0).all() and np.any(within, axis=(1, 2)).all()
    assert set(np.stack(agents)[:, 2]) == set(range(24))
