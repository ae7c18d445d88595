from collections import Counter
from dataclasses import replace
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.counting import SKILLS, WIDTH, Counting, Mixture

import planvec as pv
from planvec.agents import build
from planvec.agents.agent import Choice, Difference
from planvec.agents.probe import PROBE, RIDGES, Probe, Reading, load_probe, progress, ridge, save_probe
from planvec.analysis import corpus
from planvec.analysis.probes import fit, fit_probe, longest
from planvec.errors import InputError
from planvec.evaluation.scores import evaluate
from planvec.worlds import make
from planvec.worlds.trials import make_trial


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(corpus, "BATCH", 64)


@pytest.fixture(scope="module")
def agent():
    """One whose plans are linear in what was done, with the probe that was fitted to it."""
    bare = Difference(policy=None, encoder=Mixture((1.0, 0.0, 0.0)))
    return replace(bare, probe=fit_probe(bare, Counting(), demos=200))


def seen(a=0, b=0, c=0, d=0):
    """An observation: so many of each skill done, in the scene of zeroes."""
    return jnp.zeros(WIDTH).at[:SKILLS].set(jnp.array([a, b, c, d]))


def plan_of(agent, **counts):
    return agent.plan((seen(), seen(**counts)))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 5)), min_size=2, max_size=6))
def test_beginnings_of_demonstrations(sizes):
    world, kept = Counting(), np.array([min(size, part) for size, part in sizes], np.int32)
    tasks = [tuple("abcda"[:size]) for size, _ in sizes]
    whole = world.record(tasks, (0,), 0.0, "discard")
    begun = whole.cut(kept)
    shorter = world.record([task[:size] for task, size in zip(tasks, kept, strict=True)], (0,), 0.0, "discard")
    np.testing.assert_array_equal(begun.stored["steps"], shorter.stored["steps"])
    np.testing.assert_array_equal(begun.actions, shorter.actions)
    assert begun.lengths.tolist() == kept.tolist()


@settings(max_examples=20, deadline=None)
@given(rows=st.integers(30, 60), columns=st.integers(1, 8), outputs=st.integers(1, 3), seed=st.integers(0, 1000))
def test_without_noise_ridge_is_least_squares(rows, columns, outputs, seed):
    rng = np.random.default_rng(seed)
    x, weights = rng.normal(size=(rows, columns)), rng.normal(size=(columns, outputs))
    expected, *_ = np.linalg.lstsq(x, x @ weights, rcond=None)
    np.testing.assert_allclose(ridge(x, x @ weights), expected, atol=1e-6)


def test_ridge_is_as_strong_as_does_best_on_rows_left_out():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(24, 12))
    y = x[:, :1] + 2 * rng.normal(size=(24, 2))

    def solve(x, y, strength):
        return np.linalg.solve(x.T @ x + strength * np.eye(12), x.T @ y)

    def error(strength):
        others = [np.delete(np.arange(24), i) for i in range(24)]
        return sum(np.sum((y[i] - x[i] @ solve(x[rest], y[rest], strength)) ** 2) for i, rest in enumerate(others))

    strengths = RIDGES * (x**2).sum()
    best = min(strengths, key=error)
    assert strengths[0] < best < strengths[-1]
    np.testing.assert_allclose(ridge(x, y), solve(x, y, best), atol=1e-8)


def test_the_error_is_of_rows_that_were_not_fitted_to():
    rng = np.random.default_rng(0)
    plans, weights = rng.normal(size=(1000, 6)), rng.normal(size=(6, 2))
    noise = rng.normal(size=(1000, 2)) * [0.1, 0.5]
    assert fit(plans, plans @ weights + noise, ("a", "b")).error == pytest.approx([0.1, 0.5], rel=0.15)
    noise[:800] = 0
    exact = fit(plans, plans @ weights + noise, ("a", "b"))
    np.testing.assert_allclose(exact.weights, weights, atol=1e-5)
    np.testing.assert_allclose(exact.error, np.sqrt((noise[800:] ** 2).mean(axis=0)), rtol=1e-4)


def test_a_linear_agent_is_read_exactly(agent):
    one, other = plan_of(agent, a=2, c=1), plan_of(agent, c=1, d=3)
    assert agent.read(one).counts == pytest.approx({"a": 2, "b": 0, "c": 1, "d": 0}, abs=1e-3)
    assert agent.read(one).error < 1e-4
    assert agent.read(one + other).rounded() == Counter(a=2, c=2, d=3)
    assert agent.read(one - other).rounded() == {"a": 2, "d": -3}
    assert agent.read(one / 2).counts["c"] == pytest.approx(0.5, abs=1e-3)
    assert agent.read(one - one).rounded() == Counter() and str(agent.read(one - one)) == "nothing (±0.0)"


def test_what_people_see():
    reading = Reading({"ChopTree": 1.96, "BreakRock": 0.4, "MakeBread": -1.06}, {"ChopTree": 0.3, "BreakRock": 0.1})
    assert str(reading) == "2.0 ChopTree, -1.1 MakeBread (±0.2)"
    assert reading.rounded() == {"ChopTree": 2, "MakeBread": -1} and (reading.most, reading.total) == (1.96, 2.36)


def test_progress_along_an_episode(agent):
    plan, first = plan_of(agent, a=2, b=2), seen()
    moments = [seen(), seen(a=1), seen(a=1, c=1), seen(a=2, b=1), seen(a=2, b=2), seen(a=3, b=2, d=5)]
    assert [agent.progress(plan, first, now) for now in moments] == pytest.approx([0, 0.25, 0.25, 0.75, 1, 1], abs=1e-3)
    assert [agent.done(plan, first, now) for now in moments] == [False, False, False, False, True, True]
    left = agent.remaining(plan, first, moments[2])
    assert agent.read(left).rounded() == {"a": 1, "b": 2, "c": -1}
    assert left.isclose(plan - plan_of(agent, a=1, c=1))


@pytest.mark.parametrize(
    ("plan", "left", "expected"),
    [
        ((0, 0), (0, 0), 1),  # nothing to do has been done
        ((0, 0), (3, 0), 1),
        ((-2, 0), (-2, 0), 1),
        ((2, -1), (-3, -1), 1),
        ((2, 2), (1, -9), 0.75),  # more of one does not make up for another
        ((2, 2), (5, 5), 0),  # further away than at first
    ],
)
def test_edges_of_progress(plan, left, expected):
    assert float(progress(jnp.float32(plan), jnp.float32(left))) == expected


def test_what_cannot_be_read(agent):
    bare = replace(agent, probe=None)
    with pytest.raises(InputError, match="planvec probe RUN"):
        bare.read(plan_of(bare, a=1))
    with pytest.raises(InputError, match="one plan at a time; these are 3"):
        agent.read(agent.wrap(jnp.zeros((3, 16))))
    with pytest.raises(InputError, match="made by agent"):
        agent.read(pv.Plan(vector=jnp.zeros(16), agent="another"))
    world = make("tabletop")
    naive = build("naive", world.space, key=jax.random.key(0))
    nothing = (jnp.zeros(world.space.size), jnp.zeros(world.space.size))
    for ask in (naive.read, lambda plan: naive.remaining(plan, *nothing)):
        with pytest.raises(InputError, match="without plan vectors"):
            ask(naive.plan(nothing))
    with pytest.raises(InputError, match="without plan vectors"):
        fit_probe(naive, Counting())
    with pytest.raises(InputError, match="at least 10"):
        fit_probe(agent, Counting(), demos=9)


def test_a_probe_is_no_part_of_what_an_agent_is(agent):
    bare = replace(agent, probe=None)
    assert bare.fingerprint == agent.fingerprint
    assert agent.read(plan_of(bare, b=1)).rounded() == {"b": 1}
    fresh = build("cpv-full", make("tabletop").space, 8, key=jax.random.key(0))
    assert fresh.probe is None  # so that nothing of it is trained or saved with the weights


def test_agents_with_and_without_a_probe_are_scored_together(agent):
    class Idle(Difference):
        can_stop = False

        def choose(self, first, now, plans, key, greedy=False):
            return Choice(jnp.zeros(len(plans), int), jnp.zeros(len(plans), bool))

    world = Counting()
    agents = [Idle(policy=None, encoder=agent.encoder, probe=probe) for probe in (None, agent.probe)]
    one, other = evaluate(agents, world, make_trial(world, [[("a",), ("b",)]], 0))
    assert one == other and one.success == 0.5


def test_a_probe_on_disk(agent, tmp_path):
    assert load_probe(tmp_path, "agent") is None
    save_probe(tmp_path, agent.probe, "agent")
    loaded = load_probe(tmp_path, "agent")
    assert isinstance(loaded, Probe) and loaded.skills == agent.probe.skills
    np.testing.assert_array_equal(loaded.weights, agent.probe.weights)
    np.testing.assert_array_equal(loaded.error, agent.probe.error)
    assert load_probe(tmp_path, "the same after more training") is None
    (tmp_path / PROBE).write_bytes(b"damaged")
    with pytest.raises(InputError, match="is not a probe"):
        load_probe(tmp_path, "agent")


def test_lengths_that_a_world_offers():
    assert [longest(make(name)) for name in ("crafting", "tabletop")] == [8, 2]


def test_the_shipped_agent_reads_sums():
    agent, world = pv.load("crafting"), make("crafting")
    demos = {skill: world.demonstrate(skill, seed=seed) for seed, skill in enumerate(world.skills)}
    plans = {skill: agent.plan(demo) for skill, demo in demos.items()}
    pairs = list(product(plans, repeat=2))
    right = [agent.read(plans[one] + plans[other]).rounded() == Counter([one, other]) for one, other in pairs]
    assert np.mean(right) > 0.8
    plan, demo = plans["ChopTree"], demos["ChopTree"]
    assert agent.done(plan, demo.first, demo.last) and not agent.done(plan, demo.first, demo.first)
