import os
import signal
import subprocess
import sys
from itertools import pairwise, product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles.tabletop_ideal import pick_and_place
from PIL import Image

import planvec
from planvec.agents import build
from planvec.agents.agent import Choice, Difference
from planvec.cli import main
from planvec.data import folders
from planvec.data.folders import Recipe, collect
from planvec.errors import InputError
from planvec.evaluation.scores import evaluate
from planvec.io import files
from planvec.worlds import make
from planvec.worlds.protocol import is_hosted
from planvec.worlds.retrying import TRIES
from planvec.worlds.tabletop import attempts, skills, world
from planvec.worlds.tabletop.attempts import DONE, EXTRAS, FAILED, attempt
from planvec.worlds.tabletop.expert import follow, next_action
from planvec.worlds.tabletop.geometry import BOX_HEIGHT, CORNERS, CUBE, LID, OBJECTS
from planvec.worlds.tabletop.layouts import LID_HOME, random_layout
from planvec.worlds.tabletop.pool import Pool
from planvec.worlds.tabletop.simulator import positions
from planvec.worlds.tabletop.skills import LID_ON, SKILLS, compatible, goals, outcome, relations
from planvec.worlds.tabletop.world import HORIZONS, Tabletop
from planvec.worlds.trials import make_trial, random_trial

WORLD = make("tabletop")
PAIRS = tuple(product(SKILLS, repeat=2))


@pytest.fixture(scope="module")
def alone():
    """The same world with a single worker, in this process."""
    return Tabletop(workers=1)


@pytest.fixture(scope="module")
def recording():
    """A task of every skill, and pairs of skills, by an unsteady expert."""
    tasks = [(skill,) for skill in SKILLS] + [PAIRS[i] for i in range(0, 400, 13)]
    return tasks, WORLD.record(tasks, (0,), noise=0.1)


def agent(seed=0):
    return build("cpv-full", WORLD.space, 16, key=jax.random.key(seed))


def test_tasks_are_drawn_evenly():
    tasks = WORLD.sample_tasks((0,), 4000, 1, 2)
    assert tasks == WORLD.sample_tasks((0,), 4000, 1, 2) != WORLD.sample_tasks((1,), 4000, 1, 2)
    assert abs(sum(len(task) == 1 for task in tasks) - 2000) < 150
    counts = np.unique([skill for task in tasks for skill in task], return_counts=True)[1]
    assert len(counts) == 20 and counts.min() > 220 and counts.max() < 380  # of 300
    assert {len(task) for task in WORLD.sample_tasks((0,), 50, 3, 3)} == {3}


def test_parts_that_are_added_can_hold_together():
    first, second = WORLD.sample_parts((0, 2), 500, (1, 1))
    assert all(compatible(a + b) for a, b in zip(first, second, strict=True))
    assert [first, second] == WORLD.sample_parts((0, 2), 500, (1, 1)) != WORLD.sample_parts((1, 2), 500, (1, 1))
    assert len(set(zip(first, second, strict=True))) > 200  # of 248


@pytest.mark.parametrize("sizes", [(2, 2), (1, 1, 1), (2, 1)])
def test_other_sums(sizes):
    parts = WORLD.sample_parts((0,), 100, sizes)
    assert [{len(task) for task in part} for part in parts] == [{size} for size in sizes]
    for tasks in zip(*parts, strict=True):
        assert compatible({skill for task in tasks for skill in outcome(task)})


def test_a_single_part_is_any_task():
    [tasks] = WORLD.sample_parts((0,), 300, (2,))
    assert 80 < sum(not compatible(task) for task in tasks) < 150  # 38%


def test_a_single_sum_is_always_found():
    for seed in range(30):
        [first], [second] = WORLD.sample_parts((seed,), 1, (1, 1))
        assert compatible(first + second)


def test_sums_that_hardly_exist_are_an_error():
    with pytest.raises(InputError, match=r"1\+1\+1\+1\+1\+1\+1\+1\+1 skills"):
        WORLD.sample_parts((0,), 10, (1,) * 9)


def ideal_goals(task, rng):
    """What the expert brings about where nothing ever goes wrong."""
    steps, index = [random_layout(rng, task)], 0
    while True:
        action, index = follow(steps[-1].ravel(), task, index)
        if action is None:
            return {SKILLS[i] for i in np.flatnonzero(goals(np.stack(steps).reshape(len(steps), -1))[:LID_ON])}
        steps.append(pick_and_place(steps[-1], action))
        assert len(steps) < 50, task


def test_outcomes_are_what_the_expert_leaves_behind():
    rng = np.random.default_rng(0)
    for task in PAIRS:
        assert ideal_goals(task, rng) == set(outcome(task)), task


@pytest.mark.parametrize("size", [1, 3, 4, 5])
def test_outcomes_of_other_tasks(size):
    rng = np.random.default_rng(size)
    for numbers in rng.integers(len(SKILLS), size=(200, size)):
        task = tuple(SKILLS[number] for number in numbers)
        assert ideal_goals(task, rng) == set(outcome(task)), task


def test_a_tower_that_is_pulled_down_leaves_nothing():
    tower = ("Stack(green,blue)", "Stack(white,green)")
    assert outcome(tower) == tower
    assert outcome((*tower, "PlaceInBox(blue)")) == ("PlaceInBox(blue)",)
    assert outcome((*tower, "Stack(red,blue)")) == ("Stack(red,blue)",)
    assert outcome((*tower, "PlaceInBox(white)")) == ("Stack(green,blue)", "PlaceInBox(white)")


def named(row):
    return {(*SKILLS, "lid")[i] for i in np.flatnonzero(row)}


def test_what_tasks_ask_for():
    tasks = [
        ("Stack(red,blue)",),
        ("Stack(red,blue)", "Stack(red,blue)"),
        ("Stack(red,blue)", "PlaceInCorner(red)"),  # the second undoes the first
        ("Stack(red,blue)", "Stack(blue,green)"),  # done in this order too, but both can hold
    ]
    asked = WORLD.asked(tasks)
    assert asked.shape == (4, 21) and asked.dtype == np.int32 and set(asked.ravel()) == {0, 1}
    assert [named(row) - {"lid"} for row in asked] == [
        {"Stack(red,blue)"},
        {"Stack(red,blue)"},
        {"PlaceInCorner(red)"},
        {"Stack(red,blue)", "Stack(blue,green)"},
    ]
    assert asked[:, LID_ON].all()


def test_any_number_of_workers_records_the_same(recording, alone):
    tasks, demos = recording
    told = []
    same = alone.record(tasks, (0,), 0.1, progress=told.append)
    assert told[-1] == len(tasks)
    for one, other in zip(jax.tree.leaves(demos), jax.tree.leaves(same), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    fewer = WORLD.record(tasks[:4], (0,), 0.1)  # a demonstration does not depend on the others
    np.testing.assert_array_equal(fewer.stored["steps"], demos.stored["steps"][: len(fewer.stored["steps"])])
    other = WORLD.record(tasks[:4], (1,), 0.1)
    assert not np.array_equal(other.stored["steps"][0], demos.stored["steps"][0])


def test_recordings_hold_what_they_say(recording):
    tasks, demos = recording
    steps = WORLD.replay(demos)
    assert steps.dtype == demos.actions.dtype == np.float32 and demos.lengths.dtype == np.int32
    assert steps.shape == (demos.lengths.sum() + len(tasks), 18) and demos.actions.shape == (demos.lengths.sum(), 4)
    assert (demos.attempts[:, DONE] == 1).all() and (demos.extras == 0).all()
    assert demos.attempts[:, FAILED].sum() < len(tasks) / 20
    assert WORLD.decode(steps[0]) is not None and steps[0].shape == (WORLD.space.size,)


def test_noise_is_the_error_of_the_hand(recording):
    """A tenth of a cube's side, along each axis of where it grasps and where it puts down."""
    tasks, demos = recording
    errors = []
    for demo, task in enumerate(tasks):
        index = 0
        for seen, action in zip(demos.stored["steps"][demos.steps_of(demo)], demos.actions_of(demo), strict=False):
            steady, index = follow(seen, task, index)
            errors.append(action - steady)
    half_of_all = 0.6745  # of what is normally distributed lies within so many standard deviations
    assert np.median(np.abs(errors)) == pytest.approx(half_of_all * 0.1 * 2 * CUBE, rel=0.15)


def test_demonstrations_ask_for_their_tasks_outcome(recording):
    tasks, demos = recording
    first, last, asked = WORLD.ends(demos)
    steps, ends = WORLD.replay(demos), np.cumsum(demos.lengths + 1)
    np.testing.assert_array_equal(last, steps[ends - 1])
    np.testing.assert_array_equal(first[1:], steps[ends[:-1]])
    assert asked.dtype == np.int32
    for i, task in enumerate(tasks):
        assert named(asked[i]) - {"lid"} == set(outcome(task)), task
        mine = steps[ends[i] - demos.lengths[i] - 1 : ends[i]]
        lid_moved = np.linalg.norm(np.diff(mine[:, 15:], axis=0), axis=1).max() > 0.01
        assert asked[i, LID_ON] == lid_moved
    assert 0 < asked[:, LID_ON].mean() < 1


def test_attempts_over_which_the_simulator_breaks_down_are_made_again(alone, monkeypatch):
    """An error in it is a failed attempt, and no end of the whole recording."""

    def broken(simulator, task, seed, noise):
        if seed[-1] == 0:
            raise RuntimeError("the engine")
        return attempt(simulator, task, seed, noise)

    monkeypatch.setattr(attempts, "attempt", broken)
    demos = alone.record([("PlaceInCorner(red)",)] * 2, (7,))
    assert demos.attempts.tolist() == [[1, 0, 1]] * 2 and (demos.lengths > 0).all()


def test_failed_attempts_are_made_again(alone, monkeypatch):
    tasks = [("PlaceInCorner(red)",), ("Stack(red,blue)",), ("PlaceInCorner(white)",)]

    def clumsy(simulator, task, seed, noise):
        result = attempt(simulator, task, seed, noise)
        *_, demo, tries = seed
        return result._replace(status=FAILED) if tries < demo else result

    monkeypatch.setattr(attempts, "attempt", clumsy)
    demos = alone.record(tasks, (7,), 0.0)
    assert demos.attempts.tolist() == [[1, 0, 0], [1, 0, 1], [1, 0, 2]]
    scenes = np.cumsum(demos.lengths + 1) - demos.lengths - 1
    for demo, task in enumerate(tasks):  # the one that succeeded, in a scene of its own
        made = attempt(alone.simulator, task, (7, demo, demo), 0.0)
        np.testing.assert_array_equal(demos.stored["steps"][scenes[demo]], positions(made.states[0]))


@pytest.mark.parametrize("how", ["record", "demonstrate"])
def test_an_expert_that_always_fails_is_an_error(alone, monkeypatch, how):
    tried = []

    def failing(simulator, task, seed, noise):
        tried.append(seed)
        return attempts.Attempt(np.zeros((1, alone.simulator.state_size)), np.zeros((0, 4), np.float32), FAILED, 0)

    monkeypatch.setattr(attempts, "attempt", failing)
    monkeypatch.setattr(world, "attempt", failing)
    with pytest.raises(InputError, match=rf"failed {TRIES} times at Stack\(red,blue\)"):
        alone.record([("Stack(red,blue)",)], (0,)) if how == "record" else alone.demonstrate("Stack(red,blue)")
    assert len(set(map(tuple, tried))) == TRIES


def test_extras_are_discarded_or_kept(alone, monkeypatch):
    def first_did_more(simulator, task, seed, noise):
        result = attempt(simulator, task, seed, noise)
        return result._replace(status=EXTRAS, extras=2) if seed[-1] == 0 else result

    monkeypatch.setattr(attempts, "attempt", first_did_more)
    monkeypatch.setattr(world, "attempt", first_did_more)
    tasks = [("PlaceInCorner(red)",)]
    discarded, kept = (alone.record(tasks, (0,), 0.0, extras) for extras in ("discard", "keep"))
    assert discarded.attempts.tolist() == [[1, 1, 0]] and discarded.extras.tolist() == [0]
    assert kept.attempts.tolist() == [[1, 0, 0]] and kept.extras.tolist() == [2]
    one, other = (alone.demonstrate(tasks[0], extras=extras) for extras in ("discard", "keep"))
    assert not np.array_equal(one.first, other.first)


def test_recordings_that_make_no_sense():
    for options in ({"noise": 1.0}, {"noise": -0.1}, {"extras": "some"}):
        for use in (lambda o: WORLD.record([("Stack(red,blue)",)], (0,), **o), lambda o: WORLD.demonstrate("x", **o)):
            with pytest.raises(InputError):
                use(options)
    with pytest.raises(InputError, match="seed"):
        WORLD.demonstrate("Stack(red,blue)", seed=-1)
    with pytest.raises(InputError, match="no skill"):
        WORLD.demonstrate("Stack(red,red)")


class Broken:
    """A simulator that breaks down at its second action."""

    def __init__(self, simulator):
        self.simulator, self.actions = simulator, 0

    def place(self, layout):
        return self.simulator.place(layout)

    def pick_and_place(self, state, action):
        self.actions += 1
        return self.simulator.pick_and_place(state, action) if self.actions == 1 else (state, False)


def test_an_attempt_over_which_the_simulator_breaks_down_has_failed(alone):
    made = attempt(Broken(alone.simulator), ("PlaceInBox(red)",), (0,), 0.0)
    assert made.status == FAILED and made.states.shape[0] == 2 and made.actions.shape == (1, 4)


def test_attempts_end_in_time(alone):
    class Idle(Broken):
        def pick_and_place(self, state, action):
            return state, True

    made = attempt(Idle(alone.simulator), ("Stack(red,blue)", "PlaceInBox(red)"), (0,), 0.0)
    assert made.status == FAILED and len(made.actions) == 2 * attempts.PATIENCE


def on_table(**places):
    """Positions of everything: the box closed, unless told otherwise."""
    default = {"red": (-0.15, 0), "blue": (-0.1, -0.12), "green": (0.1, -0.12), "white": (0.15, 0)}
    default = {cube: (*spot, CUBE) for cube, spot in default.items()}
    default |= {"box": (0, -0.05, 0), "lid": (0, -0.05, BOX_HEIGHT + LID[2])}
    return np.array([(default | places)[name] for name in OBJECTS], np.float32).ravel()


RED_IN_CORNER, WHITE_IN_CORNER = ({cube: (*CORNERS[cube], CUBE)} for cube in ("red", "white"))
OPEN = {"lid": (*LID_HOME, LID[2])}


@pytest.mark.parametrize(
    ("last", "verdict"),
    [
        (RED_IN_CORNER, (DONE, 0)),
        (RED_IN_CORNER | WHITE_IN_CORNER, (EXTRAS, 1)),
        (RED_IN_CORNER | OPEN, (FAILED, 0)),
        (WHITE_IN_CORNER, (FAILED, 0)),
    ],
)
def test_verdicts(last, verdict):
    assert attempts._verdict(np.stack([on_table(), on_table(**last)]), ("PlaceInCorner(red)",)) == verdict


def test_scenes_begin_with_nothing_done():
    tasks = WORLD.sample_tasks((0,), 60, 1, 2)
    states = WORLD.scenes(tasks, (0, 4))
    np.testing.assert_array_equal(states, WORLD.scenes(tasks, (0, 4)))
    np.testing.assert_array_equal(states[:5], WORLD.scenes(tasks[:5], (0, 4)))
    assert not np.array_equal(states, WORLD.scenes(tasks, (1, 4)))
    seen = positions(states)
    held = relations(seen)
    assert skills.closed(seen).all() and len(np.unique(seen, axis=0)) == 60
    assert not (held & WORLD.asked(tasks)[:, :LID_ON].astype(bool)).any()
    assert held.sum(axis=1).max() == 1 and 0.2 < held.mean() * 20 < 0.6  # a cube in the box, and nothing else


def test_episodes_are_judged_as_they_go():
    tasks = [("PlaceInBox(red)",), ("Stack(red,blue)",), ("PlaceInBox(green)", "PlaceInCorner(white)")]
    asked, indices = WORLD.asked(tasks), [0] * len(tasks)
    assert is_hosted(WORLD)
    with WORLD.start(WORLD.scenes(tasks, (0,))) as episodes:
        assert episodes.observe().shape == (3, 18) and episodes.observe().dtype == np.float32
        assert not episodes.judge(asked)[0].any() and episodes.judge(asked)[1].all()
        for _ in range(10):
            chosen = [follow(*args) for args in zip(episodes.observe(), tasks, indices, strict=True)]
            indices = [index for _, index in chosen]
            finished = np.array([action is None for action, _ in chosen])
            done, clean = episodes.judge(asked)
            np.testing.assert_array_equal(done, finished)
            np.testing.assert_array_equal(clean, skills.closed(episodes.observe()))
            if finished.all():
                break
            idle = np.array([0.0, 0.15, 0.0, 0.15])  # nothing stands there
            actions = np.stack([idle if a is None else a for a, _ in chosen])
            assert episodes.step(actions, np.ones(len(actions), bool)).all()
        assert finished.all() and done.all() and clean.all()
        assert episodes.steps().shape == (3, WORLD.pool.state_size)


def judged(first, then, task, lid=True):
    """Done and clean, after an episode that began in one situation came into another."""
    places = np.stack([on_table(**first), on_table(**then)]).reshape(2, 6, 3)
    states = WORLD.pool.place(places)
    episodes = WORLD.start(states[:1])
    episodes._states = states[1:]
    asked = WORLD.asked([task])
    asked[:, LID_ON] = lid
    done, clean = episodes.judge(asked)
    return bool(done[0]), bool(clean[0])


RED_IN_BOX = {"red": (0, -0.05, 0.026)}
WHITE_ON_GREEN = {"white": (0.1, -0.12, 3 * CUBE)}


@pytest.mark.parametrize(
    ("first", "then", "lid", "expected"),
    [
        ({}, {}, True, (False, True)),
        ({}, RED_IN_CORNER, True, (True, True)),
        ({}, RED_IN_CORNER | WHITE_ON_GREEN, True, (True, False)),  # not asked for
        (WHITE_ON_GREEN, RED_IN_CORNER | WHITE_ON_GREEN, True, (True, True)),  # but there at first
        (WHITE_ON_GREEN, RED_IN_CORNER, True, (True, True)),
        ({}, RED_IN_CORNER | OPEN, True, (False, False)),
        ({}, RED_IN_CORNER | OPEN, False, (True, False)),  # done, where the reference did not touch the lid
        (RED_IN_BOX, RED_IN_BOX, True, (False, True)),
        ({}, RED_IN_BOX, True, (False, False)),
    ],
)
def test_done_and_clean(first, then, lid, expected):
    assert judged(first, then, ("PlaceInCorner(red)",), lid) == expected


def test_what_is_asked_for_twice_is_asked_for():
    """The wanted relations of a sum are added up."""
    first = WORLD.pool.place(on_table(**RED_IN_CORNER).reshape(1, 6, 3))
    asked = 2 * WORLD.asked([("PlaceInCorner(red)",)])
    done, clean = WORLD.start(first).judge(asked)
    assert done.all() and clean.all()


def test_horizons():
    assert (WORLD.horizon([1]), WORLD.horizon([2]), WORLD.horizon([1, 1])) == (6, 12, 10)
    assert WORLD.horizon([2, 2]) == WORLD.horizon([4]) == 4 * HORIZONS[1,]


def test_fingerprints_follow_the_rules(monkeypatch):
    before = Tabletop().fingerprint
    assert before == WORLD.fingerprint == Tabletop(workers=1).fingerprint and len(before) == 16
    monkeypatch.setattr(skills, "MOVED", 0.02)
    assert Tabletop().fingerprint != before


@pytest.fixture(scope="module")
def demo():
    return WORLD.demonstrate("placeinbox(red),Stack(green,blue)", seed=0)


def test_a_demonstration(demo):
    assert demo.task == ("PlaceInBox(red)", "Stack(green,blue)")
    assert demo.observations.shape == (len(demo) + 1, 18) and demo.actions.shape == (len(demo), 4)
    np.testing.assert_array_equal(demo.observations, positions(demo.steps))
    np.testing.assert_array_equal(demo.steps, WORLD.demonstrate(demo.task, seed=0).steps)
    assert not np.array_equal(demo.first, WORLD.demonstrate(demo.task, seed=1).first)
    noisy = WORLD.demonstrate(demo.task, seed=0, noise=0.1)
    np.testing.assert_array_equal(noisy.first, demo.first)
    assert not np.array_equal(noisy.actions[0], demo.actions[0])


def test_events_name_what_came_about(demo):
    for steps in (demo.steps, demo.observations):
        events = WORLD.events(steps, demo.actions)
        assert len(events) == len(demo) and tuple(filter(None, events)) == demo.task
    assert events[0] is None and events[-1] == "Stack(green,blue)"


def test_films_show_the_arm_moving(demo):
    times, frames = zip(*WORLD.film(demo.steps[:2], demo.actions[:1]), strict=True)
    assert list(times) == sorted(times) and times[0] == 0 and times[-1] == 1
    assert len(frames) > 10 and {frame.shape for frame in frames} == {(240, 320, 3)}
    changes = [(one != other).any() for one, other in pairwise(frames)]
    assert np.mean(changes) > 0.7  # the hand rests while the fingers close
    assert (frames[0] != frames[-1]).any()
    np.testing.assert_array_equal(frames[0], WORLD.draw(demo.steps[0]))
    np.testing.assert_array_equal(frames[-1], WORLD.draw(demo.steps[1]))


def test_positions_alone_can_be_drawn(demo):
    """As the first state, in which the arm is at home too; later it is elsewhere."""
    drawn, real = WORLD.draw(demo.observations[0]).astype(int), WORLD.draw(demo.steps[0]).astype(int)
    assert drawn.shape == (240, 320, 3) and np.abs(drawn - real).mean() < 1
    assert np.abs(WORLD.draw(demo.observations[-1]).astype(int) - WORLD.draw(demo.steps[-1])).mean() > 1


class Obedient(Difference):
    """Does what the expert would do for one skill, whatever its plan."""

    skill: str = eqx.field(static=True)

    def choose(self, first, now, plans, key, greedy=False):
        def act(seen):
            rows = [next_action(row, self.skill) for row in np.asarray(seen).reshape(-1, 18)]
            idle = np.array([0.0, 0.15, 0.0, 0.15])
            rows = np.array([idle if row is None else row for row in rows], np.float32)
            return rows.reshape(*seen.shape[:-1], 4)

        shape = jax.ShapeDtypeStruct((*now.shape[:-1], 4), jnp.float32)
        actions = jax.pure_callback(act, shape, now, vmap_method="expand_dims")
        return Choice(actions, jnp.zeros(len(now), bool))


def obedient(skill):
    one = agent()
    return Obedient(policy=one.policy, encoder=one.encoder, skill=skill)


def test_who_does_as_the_expert_succeeds():
    trial = make_trial(WORLD, [[("PlaceInBox(red)",)] * 5], seed=0)
    [right] = evaluate([obedient("PlaceInBox(red)")], WORLD, trial)
    assert right[:4] == (1, 1, 1, 0) and (right.episodes, right.horizon) == (5, 6)
    [wrong] = evaluate([obedient("PlaceInBox(blue)")], WORLD, trial)
    assert wrong[:4] == (0, 0, 0, 0)


@pytest.mark.parametrize("condition", ["1", "1+1"])
def test_simulators_that_diverge_are_failures_and_reported(monkeypatch, condition):
    trial = random_trial(WORLD, condition, 6, 0, "discard")
    assert trial.horizon == WORLD.horizon([int(part) for part in condition.split("+")])
    easy = trial._replace(wanted=np.zeros_like(trial.wanted))  # nothing is asked for
    agents = [agent(seed) for seed in range(2)]
    assert [score[:1] + score[3:4] for score in evaluate(agents, WORLD, easy)] == [(1, 0)] * 2
    step, calls = Pool.step, []

    def third_breaks_down(self, states, actions):
        after, sane = step(self, states, actions)
        calls.append(len(states))
        sane[2] = False  # the third episode of the first agent
        return after, sane

    monkeypatch.setattr(Pool, "step", third_breaks_down)
    first, second = evaluate(agents, WORLD, easy)
    assert (first.success, first.diverged) == pytest.approx((5 / 6, 1 / 6)) and first.exact <= 5 / 6
    assert (second.success, second.diverged) == (1, 0)
    assert calls == [12] * trial.horizon  # the others go on to the end
    hard = evaluate(agents, WORLD, trial)
    assert hard[0].diverged == pytest.approx(1 / 6) and hard[0].success <= 5 / 6 and hard[1].diverged == 0


def test_simulators_at_rest_are_not_asked(monkeypatch):
    step, asked = Pool.step, []
    monkeypatch.setattr(
        Pool, "step", lambda self, states, actions: asked.append(len(states)) or step(self, states, actions)
    )
    scenes = WORLD.scenes([("PlaceInBox(red)",)] * 3, (0,))
    actions = np.array([next_action(row, "PlaceInBox(red)") for row in positions(scenes)], np.float32)
    going = np.array([True, False, True])
    with WORLD.start(scenes) as session:
        assert session.step(actions, going).all() and asked == [2]
        np.testing.assert_array_equal(session.steps()[1], scenes[1])
        apart = WORLD.start(scenes)
        apart.step(actions, np.ones(3, bool))
        np.testing.assert_array_equal(session.steps()[going], apart.steps()[going])
        assert not np.array_equal(session.steps()[0], scenes[0])


def test_a_rollout_to_the_horizon(tmp_path, monkeypatch, demo):
    monkeypatch.setattr(world, "SKIPPED", 12)  # fewer pictures
    one = agent()
    episode = planvec.rollout(one, one.plan(demo), WORLD, task="PlaceInCorner(red)", seed=0)
    assert len(episode) == WORLD.horizon([1]) and not episode.success and episode.task == ("PlaceInCorner(red)",)
    assert episode.observations.shape == (7, 18) and episode.actions.shape == (6, 4)
    episode.save(tmp_path / "episode.gif")
    with Image.open(tmp_path / "episode.gif") as gif:
        assert gif.n_frames > 2 * len(episode)


def test_a_rollout_that_succeeds(demo):
    one = obedient("PlaceInBox(green)")
    episode = planvec.rollout(one, one.plan(demo), WORLD, task="PlaceInBox(green)", seed=1)
    assert episode.success and episode.skills_done == ("PlaceInBox(green)",) and episode.success_at in (3, 4)


def test_a_rollout_ends_where_the_simulator_breaks_down(monkeypatch, demo):
    one = agent()
    monkeypatch.setattr(Pool, "step", lambda self, states, actions: (states, np.zeros(len(states), bool)))
    episode = planvec.rollout(one, one.plan(demo), WORLD, task="PlaceInCorner(red)", seed=0)
    assert len(episode) == 1 and not episode.success


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr(Tabletop, "shard", 4)


RECIPE = Recipe("tabletop", pairs=10, skills=(1, 2), noise=0.1, extras="discard", seed=0)

KILLED = """
import sys
from pathlib import Path
from planvec.data import folders
from planvec.io import files
from planvec.worlds import make
from planvec.worlds.tabletop.world import Tabletop
Tabletop.shard = 4
write, count = files.write, 0
def slow_write(path, content):  # stops for ever in the middle of the second shard
    global count
    count += str(path).endswith("safetensors")
    if count == 2:
        path.with_name(path.name + files.TEMPORARY).write_bytes(content[: len(content) // 2])
        print("now", flush=True)
        sys.stdin.read()
    write(path, content)
files.write = slow_write
folders.collect(folders.Recipe("tabletop", 10, (1, 2), 0.1, "discard", 0), Path(sys.argv[1]), make("tabletop"))
"""


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_collecting_goes_on_after_a_kill(tmp_path, small_shards, alone):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    collect(RECIPE, whole, world=alone)
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(cut)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"now\n"
        os.kill(process.pid, signal.SIGKILL)
    assert (cut / f"shard-00001.safetensors{files.TEMPORARY}").exists()
    first = (cut / "shard-00000.safetensors").stat().st_mtime_ns
    collect(RECIPE, cut, WORLD)
    assert (cut / "shard-00000.safetensors").stat().st_mtime_ns == first
    assert contents(cut) == contents(whole) and len(contents(cut)) == 4


def test_collected_pairs_do_the_same_task(tmp_path, small_shards):
    collect(RECIPE, tmp_path / "data", WORLD)
    header, pairs = folders.read_header(tmp_path / "data", WORLD), folders.load(tmp_path / "data", WORLD)
    assert len(pairs) == 10 and pairs.steps.shape[1:] == (18,) and pairs.actions.shape[1:] == (4,)
    for demos, tasks in folders.read_shards(tmp_path / "data", header):
        _, _, asked = WORLD.ends(demos)
        assert [named(row) - {"lid"} for row in asked] == [set(outcome(task)) for task in tasks for _ in range(2)]
    batch = pairs.sample(jax.random.key(0), 8)
    assert batch.now.shape == (8, 18) and batch.action.shape == (8, 4)


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["planvec", *map(str, arguments)])
    main.main()


def test_collect_and_inspect_on_the_command_line(tmp_path, monkeypatch, capsys):
    run(monkeypatch, "collect", "tabletop", "--pairs", 4, "--out", tmp_path / "data")
    printed = capsys.readouterr().out
    assert "4 pairs" in printed and "attempts" in printed
    run(monkeypatch, "collect", "--inspect", tmp_path / "data")
    assert "tasks of 1 to 2 skills" in capsys.readouterr().out
    assert (tmp_path / "data" / "contact_sheet.png").stat().st_size > 10_000


def test_render_on_the_command_line(tmp_path, monkeypatch, capsys):
    run(monkeypatch, "render", "tabletop", "--task", "PlaceInBox(red)", "--gif", tmp_path / "out.gif")
    assert "steps in" in capsys.readouterr().out
    with Image.open(tmp_path / "out.gif") as gif:
        assert gif.n_frames > 30
    for arguments in (("--task", "Stack(red,red)", "--gif", tmp_path / "no.gif"), ("--interactive",)):
        with pytest.raises(SystemExit) as stop:
            run(monkeypatch, "render", "tabletop", *arguments)
        assert stop.value.code == 2 and not (tmp_path / "no.gif").exists()
