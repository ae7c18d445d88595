from collections import Counter
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import crafting as oracle
from oracles.boards import plain
from oracles.outside import OutsideSession

import planvec as pv
from planvec.agents import build
from planvec.agents.policies import Stopping
from planvec.errors import InputError
from planvec.evaluation.episodes import episodes, stack
from planvec.evaluation.judge import Judge
from planvec.evaluation.scores import Score, evaluate, sum_plans
from planvec.tasks import FRESH, parse_condition
from planvec.worlds import make
from planvec.worlds.sessions import PureSession
from planvec.worlds.trials import make_trial, random_trial, strangers

WORLD = make("crafting")


def agent(name="cpv-full", seed=0):
    return build(name, WORLD.space, 16, key=jax.random.key(seed))


def stopping():
    """A shipped agent that says stop now and then, for no reason."""
    one = pv.load("crafting-te-full")
    head = Stopping(one.policy.head, one.policy.layers[-1].bias.size, key=jax.random.key(2))
    head = eqx.tree_at(lambda head: (head.end.weight, head.end.bias), head, (5 * head.end.weight, jnp.full(1, -2.5)))
    return eqx.tree_at(lambda one: one.policy.head, one, head)


class Outside(type(WORLD)):
    """The same world as one that is stepped from outside."""

    def __init__(self):
        super().__init__()
        self.stepped = []  # at each step, which episodes went on

    def start(self, scenes):
        return WatchedSession(self, PureSession(WORLD, scenes))


class WatchedSession(OutsideSession):
    def __init__(self, world, inner):
        super().__init__(inner)
        self.world = world

    def step(self, actions, going):
        self.world.stepped.append(going)
        return super().step(actions, going)


observe = jax.jit(jax.vmap(WORLD.observe))
step = jax.jit(lambda states, actions: jax.vmap(WORLD.step)(states, actions)[0])


def slow_scores(one, trial, seed):
    """The same episodes one step and one episode at a time, in plain Python, by the oracle's rules."""
    plans = eqx.filter_jit(lambda one: one.add([one.encode(first, last) for first, last in trial.shown]))(one)
    boards = [
        plain(jax.tree.map(lambda leaf, i=i: np.asarray(leaf)[i], trial.scenes)) for i in range(len(trial.wanted))
    ]
    states, first = trial.scenes, observe(trial.scenes)
    done, success, exact, stopped = [Counter() for _ in boards], *([False] * len(boards) for _ in range(3))
    wanted = [Counter({s: int(n) for s, n in zip(WORLD.skills, row, strict=True) if n}) for row in trial.wanted]

    @eqx.filter_jit
    def act(states, time):
        told = one.outputs(first, observe(states), plans)
        actions = one.policy.head.sample(told, jax.random.fold_in(jax.random.key(seed), time))
        return told, actions, step(states, actions)  # also where it has stopped: nobody looks

    for time in range(trial.horizon):
        told, actions, states = act(states, np.int32(time))
        for i, action in enumerate(np.asarray(actions)):
            stopped[i] = stopped[i] or (one.can_stop and bool(told.stop[i] > 0))
            if stopped[i]:
                continue
            *board, skill = oracle.step(*boards[i], int(action))
            boards[i] = tuple(board)
            if skill:
                done[i][skill] += 1
            if not success[i] and not wanted[i] - done[i]:
                success[i], exact[i] = True, done[i] == wanted[i]
    said = stopped if one.can_stop else [True] * len(boards)
    stops = [was and d == w and so for was, d, w, so in zip(exact, done, wanted, said, strict=True)]
    return np.mean(success), np.mean(exact), np.mean(stops)


def test_scores_agree_with_a_slow_evaluation():
    """A shipped agent does some tasks, some with more beside, and some with more after: all three figures differ."""
    trial = random_trial(WORLD, "4", 24, 0, "discard")
    one = pv.load("crafting-te-full")
    [score] = evaluate([one], WORLD, trial, seed=2)
    assert score[:3] == pytest.approx(slow_scores(one, trial, 2))
    assert 0 < score.stops < score.exact < score.success < 1


@pytest.fixture(scope="module")
def slowly():
    return slow_scores(stopping(), random_trial(WORLD, "4", 24, 0, "discard"), 2)


@pytest.mark.parametrize("world", [WORLD, Outside()], ids=["pure", "hosted"])
def test_scores_of_agents_that_stop_agree_with_a_slow_evaluation(world, slowly):
    trial = random_trial(WORLD, "4", 24, 0, "discard")
    one = stopping()
    [score] = evaluate([one], world, trial, seed=2)
    assert score[:3] == pytest.approx(slowly)
    assert 0 < score.stops < score.exact < score.success < 1
    [never] = evaluate([one], WORLD, trial, seed=2, stop="never")
    assert never[:3] == evaluate([pv.load("crafting-te-full")], WORLD, trial, seed=2)[0][:3] != score[:3]


def test_simulators_of_episodes_that_have_stopped_rest():
    world, one = Outside(), stack([stopping()])
    trial = random_trial(WORLD, "4", 24, 0, "discard")
    plans = sum_plans(one, trial.shown, False)
    stopped, last = [], None
    for moment in episodes(one, world, plans, trial.scenes, trial.wanted, jax.random.key(2), trial.horizon):
        steps = moment.session.steps()
        if stopped:
            for before, after in zip(*map(jax.tree.leaves, (last, steps)), strict=True):
                np.testing.assert_array_equal(before[moment.stopped], after[moment.stopped])
        last = steps
        stopped.append(moment.stopped)
    assert not stopped[0].any() and 0 < np.mean(stopped) < 1 and moment.can_stop
    np.testing.assert_array_equal(world.stepped, ~np.array(stopped[1 : 1 + len(world.stepped)]))


@pytest.mark.parametrize("world", [WORLD, Outside()], ids=["pure", "hosted"])
def test_the_loop_ends_when_all_have_stopped(world):
    one = stopping()
    one = eqx.tree_at(lambda one: one.policy.head.end.bias, one, jnp.full(1, 1e3))
    trial = random_trial(WORLD, "4", 3, 0, "discard")
    agents = stack([one])
    run = partial(episodes, agents, world, sum_plans(agents, trial.shown, False), trial.scenes)
    at_once = list(run(trial.wanted, jax.random.key(0), trial.horizon))
    assert [moment.stopped.tolist() for moment in at_once] == [[False] * 3, [True] * 3]
    assert not getattr(world, "stepped", []) and not at_once[-1].done.any()
    judge = Judge(3)
    for moment in run(0 * trial.wanted, jax.random.key(0), trial.horizon):
        judge.see(moment)
    assert judge.verdicts.stops.all() and (judge.verdicts.success_at == 0).all()  # nothing was asked for


def test_agents_are_scored_together_as_alone():
    trial = make_trial(WORLD, [[("EatBread",)] * 16, [("EatBread",)] * 16], seed=1)
    agents = [agent(seed=seed) for seed in range(3)]
    together = evaluate(agents, WORLD, trial)
    assert together == [evaluate([one], WORLD, trial)[0] for one in agents]


def test_references_hold_what_is_wanted():
    parts = [[("ChopTree", "EatBread")] * 5, [("ChopTree",)] * 5]
    trial = make_trial(WORLD, parts, seed=0)
    assert (trial.wanted == [2, 0, 0, 0, 1]).all() and trial.horizon == WORLD.horizon([3])
    assert len(trial.shown) == 2 and trial.shown[0][0].shape == (5, 33, 30, 3)
    assert (trial.scenes.cells == 1).sum(axis=1).min() >= 2  # the scene offers both trees
    kept = make_trial(WORLD, [WORLD.sample_tasks((0,), 100, 4, 4)], seed=0, extras="keep")
    assert (kept.wanted.sum(axis=1) >= 4).all() and (kept.wanted.sum(axis=1) > 4).any()


def test_references_are_fresh():
    one, other = (random_trial(WORLD, "2", 8, seed, "discard") for seed in (0, 1))
    assert not np.array_equal(one.scenes.cells, other.scenes.cells)
    assert not np.array_equal(one.shown[0][0][0], np.asarray(WORLD.observe(jax.tree.map(lambda x: x[0], one.scenes))))


def test_nothing_is_drawn_as_training_data_are():
    """Their seeds have the number of a shard in the second word."""
    seeds = []

    class Watched(type(WORLD)):
        def sample_parts(self, seed, *rest):
            seeds.append(seed)
            return super().sample_parts(seed, *rest)

        def record(self, tasks, seed, *rest):
            seeds.append(seed)
            return super().record(tasks, seed, *rest)

        def scenes(self, tasks, seed):
            seeds.append(seed)
            return super().scenes(tasks, seed)

    random_trial(Watched(), "1+1", 2, 0, "discard")
    assert len(set(seeds)) == 4 and all(seed[1] >= FRESH for seed in seeds)


def test_references_are_by_an_expert_without_noise_and_with_extras_only_where_they_are_kept():
    asked = []

    class Watched(type(WORLD)):
        def record(self, tasks, seed, noise=0.0, extras="discard", *rest):
            asked.append((noise, extras))
            return super().record(tasks, seed, noise, extras, *rest)

    for extras in ("discard", "keep"):
        random_trial(Watched(), "1", 2, 0, extras)
    assert asked == [(0.0, "discard"), (0.0, "keep")]


def test_the_control_shows_other_references():
    seen = []

    class Spy(type(agent())):
        def encode(self, first, last):
            jax.debug.callback(lambda x: seen.append(np.asarray(x)), first)
            return jnp.zeros((len(first), 16))

    one = agent()
    spy = Spy(policy=one.policy, encoder=one.encoder)
    trial = make_trial(WORLD, [[("EatBread",), ("EatBread",), ("ChopTree",), ("ChopTree",)]], seed=0)._replace(
        horizon=1
    )
    for control in (False, True):
        evaluate([spy], WORLD, trial, control=control)
    shown = [images for images in seen if np.array_equal(images, trial.shown[0][0])]
    moved = [images for images in seen if np.array_equal(images, trial.shown[0][0][[2, 2, 0, 0]])]
    assert shown and moved


def test_centred_sums_hold_the_plan_of_nothing_once():
    class Constant(type(agent())):
        def encode(self, first, last):
            return jnp.array([5.0, 0.0]) + jnp.stack([first[:, 0], last[:, 0] - first[:, 0]], axis=1)

    one = agent()
    agents = jax.tree.map(lambda leaf: leaf[None], Constant(policy=one.policy, encoder=one.encoder))
    shown = tuple((jnp.array([[-1.0], [1.0]]) + part, jnp.array([[4.0], [5.0]])) for part in (0, 7, 0))
    parts = [agents.encode(*part) for part in shown]
    assert np.array_equal(sum_plans(agents, shown[:1], centred=True), [parts[0]])
    assert np.array_equal(sum_plans(agents, shown, centred=False), [sum(parts)])
    np.testing.assert_allclose(sum_plans(agents, shown, centred=True), [sum(parts) - np.array([5 + 7 + 5, 0])])
    with pytest.raises(InputError, match="no plan of nothing"):
        evaluate([agent("naive")], WORLD, random_trial(WORLD, "1+1", 2, 0, "discard"), centred=True)


@given(st.lists(st.sampled_from([("A",), ("B",), ("A", "B"), ("B", "A")]), min_size=2, max_size=8))
def test_strangers_want_something_else(tasks):
    if len({"".join(sorted(task)) for task in tasks}) == 1:
        with pytest.raises(InputError, match="all episodes are of one task"):
            strangers(tasks)
        return
    for here, there in enumerate(strangers(tasks)):
        passed = range(here + 1, there) if there > here else [*range(here + 1, len(tasks)), *range(there)]
        assert sorted(tasks[there]) != sorted(tasks[here])
        assert all(sorted(tasks[i]) == sorted(tasks[here]) for i in passed)


def test_conditions():
    assert parse_condition("4") == (4,) and parse_condition("1+1+1") == (1, 1, 1) and parse_condition("32") == (32,)
    for text in ("", "0", "2+", "+2", "a", "1-2", "2+0", "1.5"):
        with pytest.raises(InputError, match="not a condition"):
            parse_condition(text)
    with pytest.raises(InputError, match="at least one"):
        random_trial(WORLD, "1", 0, 0, "discard")
    assert random_trial(WORLD, "1+1+1", 2, 0, "discard").horizon == WORLD.horizon([3])


def test_intervals():
    assert Score(0.5, 0, 0, 0, 100, 1).ci95 == pytest.approx((0.404, 0.596), abs=1e-3)
    assert Score(0.0, 0, 0, 0, 100, 1).ci95 == pytest.approx((0, 0.037), abs=1e-3)
    assert Score(1.0, 0, 0, 0, 100, 1).ci95 == pytest.approx((0.963, 1), abs=1e-3)
    assert set(Score(0.5, 0, 0, 0, 96, 1).as_dict()) == {*Score._fields, "ci95"}


def test_naive_reads_the_mean_of_its_references():
    one = agent("naive")
    first, second = (np.full((2, 33, 30, 3), value, np.uint8) for value in (10, 30))
    mean = one.add([one.encode(first, first), one.encode(second, second)])
    np.testing.assert_allclose(mean[0], 20.0)
