"""The metric of plans: fitted to pairs alone, in units of a skill; kept beside the weights that it is of."""

from dataclasses import replace
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles.lamps import Lamps, untrained

from planvec.agents.agent import Difference
from planvec.agents.metric import METRIC, Metric, load_metric, save_metric
from planvec.agents.zoo import build
from planvec.cli.learning import make_metric
from planvec.data.pairs import Batch, PairSet
from planvec.errors import InputError
from planvec.evaluation.episodes import may_stop, stack
from planvec.io.checkpoints import save_json, save_tree
from planvec.training import metric as fitting
from planvec.training.loading import load_with_config
from planvec.training.runs import CONFIG, WEIGHTS

SKILLS, SIZE = 3, 6  # kinds of skills, one number of a plan each; the others mean nothing
NOISY, QUIET = 3, 4  # a number that differs within pairs, and one that hardly does


class Subtracting(Difference):
    """g(a, b) = b − a, of observations that are vectors."""

    def encode(self, first, last):
        return last - first


AGENT = Subtracting(policy=None, encoder=jnp.zeros(1))


class Twins(eqx.Module):
    """Pairs whose plans are known: what was done, in a world that tells how many skills that is and nothing else."""

    noise: jax.Array
    world: type = eqx.field(static=True)

    def sample(self, key, count):
        task_key, *keys = jax.random.split(key, 3)
        kinds = jax.random.randint(task_key, (count, 2), 0, SKILLS)
        two = jax.random.bernoulli(task_key, shape=(count, 1))
        task = jax.nn.one_hot(kinds[:, 0], SIZE) + two * jax.nn.one_hot(kinds[:, 1], SIZE)
        demo, reference = (task + self.noise * jax.random.normal(key, (count, SIZE)) for key in keys)
        nothing = jnp.zeros((count, SIZE))
        return Batch(nothing, nothing, demo, None, nothing, reference, None, nothing)


class Sized:
    sizes = (1, 2)


def twins(**noise):
    scale = np.full(SIZE, 0.01, np.float32)
    scale[NOISY] = 5.0
    return Twins(jnp.asarray(scale) * noise.get("times", 1.0), Sized)


@pytest.fixture(scope="module")
def metric():
    return fitting.fit_metric(AGENT, twins(), jax.random.key(0))


def unit(i, size=1.0):
    return size * np.eye(SIZE, dtype=np.float32)[i]


def test_nothing_is_nothing(metric):
    assert float(metric(jnp.zeros(SIZE))) == 0 and not metric(jnp.zeros((2, 3, SIZE))).any()
    slope = jax.grad(lambda plan: metric(plan))(jnp.zeros(SIZE))
    assert not np.asarray(slope).any()  # and no NaN


def test_a_skill_is_about_one(metric):
    """And a demonstration's plan is on average as long as its task has skills."""
    for skill in range(SKILLS):
        assert 0.7 < float(metric(unit(skill))) < 1.5
    batch = twins().sample(jax.random.key(0), fitting.PAIRS)
    assert float(jnp.mean(metric(batch.ref_last))) == pytest.approx(1.5, rel=1e-3)
    np.testing.assert_allclose(metric(3 * unit(0)), 3 * metric(unit(0)), rtol=1e-5)


def test_what_differs_within_pairs_counts_little(metric):
    assert float(metric(unit(NOISY))) < 0.2 * float(metric(unit(QUIET)))
    batch = twins().sample(jax.random.key(0), fitting.PAIRS)
    apart = float(jnp.mean(metric(batch.last - batch.ref_last)))
    assert float(metric.noise) == pytest.approx(apart, rel=1e-3) and apart > 0


def test_no_direction_counts_without_bounds():
    """Where pairs agree to the last bit, all directions are alike: a metric of lengths."""
    same = fitting.fit_metric(AGENT, twins(times=0.0), jax.random.key(0))
    lengths = [float(same(unit(i))) for i in range(SIZE)]
    assert np.isfinite(lengths).all() and np.ptp(lengths) < 1e-3 * max(lengths) and float(same.noise) == 0


def test_it_is_made_from_pairs_alone(monkeypatch):
    """Whatever the world calls its skills, and although it cannot tell what was done."""

    class Nameless(Lamps):
        skills = tuple("VWXYZ")

        def events(self, steps, actions):
            raise AssertionError("nobody asks")

        asked = ends = count_skills = None

    agent = untrained()
    pairs = PairSet.fresh(Lamps(), 16, (0,))
    one, same = (
        fitting.fit_metric(agent, replace(pairs, world=world), jax.random.key(0)) for world in (Lamps(), Nameless())
    )
    np.testing.assert_array_equal(one.factor, same.factor)
    other = fitting.fit_metric(agent, PairSet.fresh(Lamps(), 16, (1,)), jax.random.key(0))
    assert not np.array_equal(one.factor, other.factor)


def test_a_metric_on_disk(metric, tmp_path):
    assert load_metric(tmp_path, "agent") is None
    save_metric(tmp_path, metric, "agent")
    loaded = load_metric(tmp_path, "agent")
    assert isinstance(loaded, Metric)
    jax.tree.map(np.testing.assert_array_equal, loaded, metric)
    assert load_metric(tmp_path, "the same after more training") is None
    (tmp_path / METRIC).write_bytes(b"damaged")
    with pytest.raises(InputError, match="is not a metric"):
        load_metric(tmp_path, "agent")


def test_an_agent_is_loaded_with_its_metric_and_with_no_other(tmp_path):
    world = "oracles.lamps:Lamps"
    agent = build("cpv-full", Lamps.space, 8, "paper-policy", key=jax.random.key(0))
    save_json(tmp_path / CONFIG, {"config": {"world": world, "embedding": 8, "networks": "paper-policy"}})
    save_tree(tmp_path / WEIGHTS, agent)
    make_metric(agent, PairSet.fresh(Lamps(), 16, (0,)), tmp_path)
    loaded, _ = load_with_config(tmp_path)
    assert isinstance(loaded.metric, Metric) and loaded.fingerprint == agent.fingerprint and loaded.bare.metric is None
    save_tree(tmp_path / WEIGHTS, jax.tree.map(lambda leaf: leaf + 1, agent))
    assert load_with_config(tmp_path)[0].metric is None


def test_where_g_is_no_potential_none_is_written(tmp_path):
    make_metric(AGENT, SimpleNamespace(), tmp_path)
    assert not any(tmp_path.iterdir())


def test_how_much_is_done_is_read_by_the_metric(metric):
    """Without a probe: 1 − d(left) / d(plan); and done is less than half a skill."""
    agent = replace(AGENT, metric=metric)
    plan = agent.wrap(jnp.asarray(2 * unit(0) + unit(1)))
    first = np.zeros(SIZE, np.float32)
    whole = float(metric(plan.vector))
    for now in (
        first,
        unit(0),
        2 * unit(0),
        2 * unit(0) + unit(1),
        2 * unit(0) + unit(1, 0.8),
        2 * unit(0) + unit(1, 0.4),
    ):
        left = float(metric(plan.vector - now))
        assert agent.progress(plan, first, now) == pytest.approx(min(max(1 - left / whole, 0), 1), abs=1e-3)
        assert agent.done(plan, first, now) == (left < 0.5)
    moments = np.stack([first, 2 * unit(0) + unit(1), 2 * unit(0) + unit(1, 0.8), unit(0)])
    finished = agent.finished(np.zeros_like(moments), moments, jnp.stack([plan.vector] * 4))
    assert finished.tolist() == [False, True, True, False]
    assert agent.progress(agent.wrap(jnp.zeros(SIZE)), first, first) == 1  # nothing to do has been done


def test_it_may_say_when_to_stop(metric):
    agent = replace(AGENT, metric=metric)
    assert may_stop(agent, "probe") and stack([agent], "probe").metric.factor.shape == (1, SIZE, SIZE)
    assert stack([agent]).metric is None
    with pytest.raises(InputError, match="no probe"):
        may_stop(AGENT, "probe")
