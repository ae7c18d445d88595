from collections import Counter

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import crafting as oracle
from oracles.boards import plain

from planvec.agents import build
from planvec.errors import InputError
from planvec.evaluation.scores import Score, evaluate, sum_plans
from planvec.evaluation.trials import make_trial, random_trial, strangers
from planvec.tasks import FRESH, parse_condition
from planvec.worlds import make

WORLD = make("crafting")


def agent(name="cpv-full", seed=0):
    return build(name, WORLD.space, 16, key=jax.random.key(seed))


def slow_scores(one, trial, seed):
    """The same episodes one step and one episode at a time, in plain Python, by the oracle's rules."""
    plans = one.add([one.encode(first, last) for first, last in trial.shown])
    boards = [
        plain(jax.tree.map(lambda leaf, i=i: np.asarray(leaf)[i], trial.scenes)) for i in range(len(trial.wanted))
    ]
    states, first = trial.scenes, jax.vmap(WORLD.observe)(trial.scenes)
    done, success, exact = [Counter() for _ in boards], [False] * len(boards), [False] * len(boards)
    wanted = [Counter({s: int(n) for s, n in zip(WORLD.skills, row, strict=True) if n}) for row in trial.wanted]
    outputs = eqx.filter_jit(lambda now: one.outputs(first, now, plans))
    for time in range(trial.horizon):
        logits = outputs(jax.vmap(WORLD.observe)(states))
        actions = one.policy.head.sample(logits, jax.random.fold_in(jax.random.key(seed), time))
        states, _ = jax.vmap(WORLD.step)(states, actions)
        for i, action in enumerate(np.asarray(actions)):
            *board, skill = oracle.step(*boards[i], int(action))
            boards[i] = tuple(board)
            if skill:
                done[i][skill] += 1
            if not success[i] and not wanted[i] - done[i]:
                success[i], exact[i] = True, done[i] == wanted[i]
    stops = [was and d == w for was, d, w in zip(exact, done, wanted, strict=True)]
    return np.mean(success), np.mean(exact), np.mean(stops)


def test_scores_agree_with_a_slow_evaluation():
    """Random policies do easy tasks now and then; short horizons keep all three figures apart."""
    tasks = [("EatBread",)] * 24
    trial = make_trial(WORLD, [tasks], seed=5)._replace(horizon=60)
    one = agent(seed=3)
    [score] = evaluate([one], WORLD, trial, seed=2)
    assert score[:3] == pytest.approx(slow_scores(one, trial, 2))
    assert 0 < score.success < 1


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
