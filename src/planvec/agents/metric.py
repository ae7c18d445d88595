"""How much there is in a plan: its length in a metric that is made from pairs alone, or play (training/metric.py).

Two demonstrations of one task should have one plan; where theirs differ, lengths count little. In play it is what one
stretch does and the next undoes that counts little: it comes and goes. A metric belongs to the
weights of one agent, and lies beside them.
"""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from planvec.io.checkpoints import load_described, save_described
from planvec.plans import length

METRIC = "metric.safetensors"  # its file, beside the weights
FORMAT = "planvec metric"
VERSION = "1"


class Metric(eqx.Module):
    """d(v) = ‖v·F‖, where F·Fᵀ is the inverse covariance of g(demonstration) − g(reference), or of what comes and goes,
    in units of a skill"""

    factor: Array  # F, float32 [embedding, embedding]
    noise: (
        Array  # float32 [], how far apart two demonstrations of one task are in it, or how long what comes and goes is
    )

    def __call__(self, plans: Array) -> Array:
        """[…, embedding] to […]"""
        return length(jnp.matmul(plans, self.factor, precision=jax.lax.Precision.HIGHEST))


def save_metric(folder: Path, metric: Metric, agent: str) -> None:
    """Write a metric beside the weights of the agent with this fingerprint."""
    save_described(folder / METRIC, {"factor": metric.factor, "noise": metric.noise}, FORMAT, VERSION, agent=agent)


def load_metric(folder: Path, agent: str) -> Metric | None:
    """The metric beside an agent's weights; None where there is none, or one of other weights."""
    path = folder / METRIC
    if not path.exists():
        return None
    described, arrays = load_described(path, "a metric", FORMAT, VERSION)
    if described["agent"] != agent:
        return None
    return Metric(jnp.asarray(arrays["factor"]), jnp.asarray(arrays["noise"]))
