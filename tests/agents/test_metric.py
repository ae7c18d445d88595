"""How much is in a plan: lengths in a metric, and what agents tell by them."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles.counting import SKILLS, WIDTH, Mixture

from planvec.agents.agent import Difference
from planvec.agents.metric import METRIC, Metric, load_metric, save_metric
from planvec.agents.probe import Probe
from planvec.errors import InputError

FACTOR = jnp.array([[3.0, 0.0], [0.0, 4.0]])


def seen(a=0, b=0, c=0):
    """An observation: so many of each skill done."""
    return jnp.zeros(WIDTH).at[:3].set(jnp.array([a, b, c]))


@pytest.fixture(scope="module")
def agent():
    """One whose plans are mixed counts; its metric measures by the square root of their squares' sum."""
    bare = Difference(policy=None, encoder=Mixture((1.0, 0.0, 0.0)))
    mixing = jax.random.normal(jax.random.key(0), (WIDTH, 16))[:SKILLS]
    return replace(bare, metric=Metric(jnp.linalg.pinv(mixing), jnp.float32(0)))


def test_a_metric_weighs_directions():
    metric = Metric(FACTOR, jnp.float32(0))
    np.testing.assert_allclose(metric(jnp.eye(2)), [3, 4])
    np.testing.assert_allclose(metric(jnp.array([[[1.0, -1.0]], [[0.0, 0.0]]])), [[5], [0]])


def test_by_its_metric_an_agent_tells_how_much_is_done_and_when_nothing_is_left(agent):
    plan, first = agent.plan((seen(), seen(a=2))), seen()
    moments = [seen(), seen(a=1), seen(a=2), seen(a=2, b=1), seen(b=9)]
    assert [agent.progress(plan, first, now) for now in moments] == pytest.approx([0, 0.5, 1, 0.5, 0], abs=1e-3)
    done = [agent.done(plan, first, now) for now in moments]
    assert done == [False, False, True, False, False]
    firsts, plans = jnp.stack([first] * 5), jnp.stack([plan.vector] * 5)
    assert agent.finished(firsts, jnp.stack(moments), plans).tolist() == done


def test_the_metric_goes_before_the_probe(agent):
    both = replace(agent, probe=Probe(weights=jnp.zeros((16, 1)), error=jnp.zeros(1), skills=("a",)))
    assert not both.done(both.plan((seen(), seen(a=2))), seen(), seen())  # though the probe reads nothing in it


def test_a_metric_is_no_part_of_what_an_agent_is(agent):
    bare = replace(agent, metric=None)
    assert bare.fingerprint == agent.fingerprint and agent.bare.metric is None
    with pytest.raises(InputError, match="planvec probe RUN"):
        bare.done(bare.plan((seen(), seen(a=2))), seen(), seen())


def test_a_metric_on_disk(tmp_path):
    assert load_metric(tmp_path, "agent") is None
    save_metric(tmp_path, Metric(FACTOR, jnp.float32(0.25)), "agent")
    loaded = load_metric(tmp_path, "agent")
    np.testing.assert_array_equal(loaded.factor, FACTOR)
    assert loaded.noise == 0.25
    assert load_metric(tmp_path, "the same after more training") is None
    (tmp_path / METRIC).write_bytes(b"damaged")
    with pytest.raises(InputError, match="is not a metric"):
        load_metric(tmp_path, "agent")
