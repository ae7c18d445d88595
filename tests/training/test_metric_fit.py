"""A metric that is fitted to pairs alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles.counting import Counting, Mixture

from planvec.agents.agent import Difference
from planvec.data.pairs import PairSet
from planvec.training.metric import FLOOR, fit_metric

COUNT = 512


@pytest.fixture(scope="module")
def pairs():
    return PairSet.fresh(Counting(), 64, (0,))


@pytest.fixture(scope="module")
def agent():
    """Plans hold what was done, and as much of the scene, in which pairs differ."""
    return Difference(policy=None, encoder=Mixture((1.0, 0.0, 1.0)))


@pytest.fixture(scope="module")
def fitted(agent, pairs):
    batch = pairs.sample(jax.random.key(0), COUNT)
    whole, reference = agent.encode(batch.first, batch.last), agent.encode(batch.ref_first, batch.ref_last)
    return fit_metric(agent, pairs, jax.random.key(0), COUNT), np.float64(whole), np.float64(reference)


def test_a_demonstration_is_on_average_as_long_as_its_task(fitted, pairs):
    """Tasks of 2 to 4 skills: 3."""
    metric, _, reference = fitted
    assert float(metric(jnp.float32(reference)).mean()) == pytest.approx(sum(pairs.world.sizes) / 2, rel=1e-3)


def test_the_noise_is_how_far_pairs_are_apart(fitted):
    metric, whole, reference = fitted
    assert float(metric.noise) == pytest.approx(float(metric(jnp.float32(whole - reference)).mean()), rel=1e-3)


def test_it_is_the_inverse_covariance_of_what_differs_within_pairs(fitted):
    metric, whole, reference = fitted
    apart = whole - reference
    covariance = apart.T @ apart / COUNT
    inverse = np.linalg.inv(covariance + FLOOR * np.trace(covariance) / 16 * np.eye(16))
    lengths = np.sqrt(np.einsum("ni,ij,nj->n", whole, inverse, whole))
    expected = 3 / np.sqrt(np.einsum("ni,ij,nj->n", reference, inverse, reference)).mean() * lengths
    np.testing.assert_allclose(metric(jnp.float32(whole)), expected, rtol=2e-3)


def test_where_pairs_agree_to_the_last_bit_it_is_a_metric_still(pairs):
    metric = fit_metric(Difference(policy=None, encoder=Mixture((1.0, 0.0, 0.0))), pairs, jax.random.key(0), COUNT)
    assert np.isfinite(metric.factor).all() and metric.noise < 1e-2
