"""Fitting a metric of plans, to pairs alone, or to play alone: no task, no label."""

import equinox as eqx
import jax.numpy as jnp
from jax import Array, lax

from planvec.agents.agent import EmbeddingAgent
from planvec.agents.metric import Metric
from planvec.data.play import PlaySet
from planvec.data.samples import Samples

PAIRS = 8192  # that it is made from
FLOOR = 0.1  # added to all variances, as a share of their mean, so that no direction counts without bounds
TINY = 1e-12  # where nothing is ever done, nothing is divided by nothing
APART = 10  # actions in each of two stretches of play, about as many as a skill takes


def fit_metric(agent: EmbeddingAgent, data: Samples, key: Array, count: int = PAIRS) -> Metric:
    """The metric of an agent's plans, in which a skill is about 1."""
    if isinstance(data, PlaySet):
        return _of_play(agent, data, key, count)
    return _of_pairs(agent, data, key, count, sum(data.world.sizes) / 2)


@eqx.filter_jit
def _of_pairs(agent: EmbeddingAgent, pairs: Samples, key: Array, count: int, typical: float) -> Metric:
    """Where two demonstrations of one task differ, lengths count little. A demonstration's plan is on average as long
    as its task."""
    batch = pairs.sample(key, count)
    reference = agent.encode(batch.ref_first, batch.ref_last)
    apart = agent.encode(batch.first, batch.last) - reference
    covariance = _exactly(apart.T, apart) / count
    metric = Metric(_factor(covariance, reference), jnp.float32(0))
    scale = typical / jnp.mean(metric(reference))
    return Metric(scale * metric.factor, scale * jnp.mean(metric(apart)))


@eqx.filter_jit
def _of_play(agent: EmbeddingAgent, play: PlaySet, key: Array, count: int) -> Metric:
    """What a stretch of a recording does and the next one undoes, a tool taken up and put down, counts little.

    Were nothing ever undone, stretches that follow each other would have nothing to do with each other. So what they
    have, −cov(g(a, b), g(b, c)) and its transpose, is the covariance of what comes and goes.

    Single actions tell how long a skill is: most change little, some do something, and √(E d⁴ / E d²) is how long
    those are.
    """
    before, between, after = play.neighbours(key, 2 * count, APART)
    done, next_done = agent.encode(before, between), agent.encode(between, after)
    batch = play.sample(key, count)
    step = agent.encode(batch.now, batch.next)
    across = _exactly((done - jnp.mean(done, axis=0)).T, next_done - jnp.mean(next_done, axis=0)) / len(done)
    undone = _positive(-(across + across.T))
    metric = Metric(_factor(undone, done), jnp.float32(0))
    most = jnp.maximum(jnp.max(metric(step)), jnp.finfo(jnp.float32).tiny)
    size = metric(step) / most  # so that its powers are numbers of a usual size
    scale = jnp.sqrt(jnp.mean(size**2) / jnp.maximum(jnp.mean(size**4), TINY)) / most
    comes_and_goes = jnp.sqrt(jnp.trace(_exactly(metric.factor.T, _exactly(undone, metric.factor))))
    return Metric(scale * metric.factor, scale * comes_and_goes)


def _factor(covariance: Array, plans: Array) -> Array:
    """F, with F·Fᵀ the inverse of a covariance and its floor."""
    size = len(covariance)
    tiny = 1e-6 * jnp.mean(jnp.square(plans))  # where there is no variance at all, all directions are alike
    floor = FLOOR * jnp.trace(covariance) / size + tiny
    return jnp.linalg.cholesky(jnp.linalg.inv(covariance + floor * jnp.eye(size)))


def _positive(matrix: Array) -> Array:
    """The nearest covariance to a symmetric matrix: without the directions in which it is negative."""
    values, vectors = jnp.linalg.eigh(matrix)
    return _exactly(vectors * jnp.maximum(values, 0), vectors.T)


def _exactly(x: Array, y: Array) -> Array:
    """A product in float32 throughout: rounded to ten bits, as a GPU would, it need be no covariance any more."""
    return jnp.matmul(x, y, precision=lax.Precision.HIGHEST)
