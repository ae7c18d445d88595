"""Fitting a metric of plans, to pairs alone: no task, no label."""

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from planvec.agents.agent import EmbeddingAgent
from planvec.agents.metric import Metric
from planvec.data.pairs import PairSet

PAIRS = 8192  # that it is made from
FLOOR = 0.1  # added to all variances, as a share of their mean, so that no direction counts without bounds


def fit_metric(agent: EmbeddingAgent, pairs: PairSet, key: Array, count: int = PAIRS) -> Metric:
    """The metric of an agent's plans. A demonstration's plan is on average as long as its task: a skill is about 1."""
    return _fit(agent, pairs, key, count, sum(pairs.world.sizes) / 2)


@eqx.filter_jit
def _fit(agent: EmbeddingAgent, pairs: PairSet, key: Array, count: int, typical: float) -> Metric:
    batch = pairs.sample(key, count)
    reference = agent.encode(batch.ref_first, batch.ref_last)
    apart = agent.encode(batch.first, batch.last) - reference
    covariance = apart.T @ apart / count
    size = len(covariance)
    tiny = 1e-6 * jnp.mean(jnp.square(reference))  # where pairs agree to the last bit, all directions are alike
    floor = FLOOR * jnp.trace(covariance) / size + tiny
    factor = jnp.linalg.cholesky(jnp.linalg.inv(covariance + floor * jnp.eye(size)))
    metric = Metric(factor, jnp.float32(0))
    scale = typical / jnp.mean(metric(reference))
    return Metric(scale * factor, scale * jnp.mean(metric(apart)))
