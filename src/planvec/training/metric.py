"""How much there is in a plan: its length in a metric that is made from pairs alone.

Two demonstrations of one task should have one plan; where theirs differ, lengths count little.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from planvec.agents.agent import EmbeddingAgent
from planvec.data.pairs import PairSet
from planvec.plans import length

PAIRS = 8192  # that it is made from
FLOOR = 0.1  # added to all variances, as a share of their mean, so that no direction counts without bounds
TYPICAL = 3.0  # the length of a demonstration's plan, on average: its unit is about a skill


class Metric(eqx.Module):
    """d(v) = ‖v·F‖, where F·Fᵀ is the inverse covariance of g(demonstration) − g(reference)"""

    factor: Array  # F, float32 [embedding, embedding]
    noise: Array  # [], how far apart two demonstrations of one task are in it, on average

    def __call__(self, plans: Array) -> Array:
        return length(jnp.matmul(plans, self.factor, precision=jax.lax.Precision.HIGHEST))


@eqx.filter_jit
def fit_metric(agent: EmbeddingAgent, pairs: PairSet, key: Array, count: int = PAIRS) -> Metric:
    """The metric of an agent's plans."""
    batch = pairs.sample(key, count)
    reference = agent.encode(batch.ref_first, batch.ref_last)
    apart = agent.encode(batch.first, batch.last) - reference
    covariance = apart.T @ apart / count
    size = len(covariance)
    tiny = 1e-6 * jnp.mean(jnp.square(reference))  # where pairs agree to the last bit, all directions are alike
    floor = FLOOR * jnp.trace(covariance) / size + tiny
    factor = jnp.linalg.cholesky(jnp.linalg.inv(covariance + floor * jnp.eye(size)))
    metric = Metric(factor, jnp.float32(0))
    scale = TYPICAL / jnp.mean(metric(reference))
    return Metric(scale * factor, scale * jnp.mean(metric(apart)))
