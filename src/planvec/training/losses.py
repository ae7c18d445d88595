"""The losses, the paper's and those past it: short functions of embeddings (N, embedding), a number for each sample.

Everywhere j stands for another pair of the batch: the next one, and the first for the last. In play, where a stretch of
a recording is its own reference, o₀ and o_T are the stretch's ends, and the reference nearly the same stretch.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from planvec.agents.agent import Agent, EmbeddingAgent
from planvec.agents.policies import Head
from planvec.agents.zoo import Weights
from planvec.data.samples import Batch
from planvec.errors import InputError
from planvec.plans import length, unit


def imitation(head: Head, outputs: Any, action: Any) -> Array:
    """IL = −log π(aₜ | …), or as the policy's head counts it"""
    return head.loss(outputs, action)


def triplet(anchor: Array, positive: Array, negative: Array, margin: float = 1.0) -> Array:
    """tri(a, p, n) = max(‖a − p‖₂ − ‖a − n‖₂ + margin, 0)"""
    return jax.nn.relu(length(anchor - positive) - length(anchor - negative) + margin)


def homomorphism(done: Array, left: Array, whole: Array) -> Array:
    """Hom = tri(g(o₀, oₜ) + g(oₜ, o_T), g(o₀, o_T), g(oʲ₀, oʲ_T))"""
    return triplet(done + left, whole, another(whole))


def pair(whole: Array, reference: Array) -> Array:
    """Pair = tri(g(o₀, o_T), g(oʳ₀, oʳ_T), g(oʳʲ₀, oʳʲ_T))"""
    return triplet(whole, reference, another(reference))


def contrastive(whole: Array, reference: Array, margin: float = 0.1) -> Array:
    """max(0, margin − s·s⁺ + s·s⁻), with unit s = g(o₀, o_T), s⁺ = g(oʳ₀, oʳ_T) and s⁻ = g(oʳʲ₀, oʳʲ_T)"""
    s = unit(whole)
    positive = unit(reference)
    return jax.nn.relu(margin - jnp.sum(s * positive, axis=-1) + jnp.sum(s * another(positive), axis=-1))


def alike(whole: Array, reference: Array) -> Array:
    """Alike = ‖g(o₀, o_T) − g(oʳ₀, oʳ_T)‖² / E‖g(oʳ₀, oʳ_T) − g(oʳʲ₀, oʳʲ_T)‖²: what differs within a pair goes to 0"""
    apart = jnp.square(length(reference - another(reference)))
    return jnp.square(length(whole - reference)) / jnp.maximum(jnp.mean(apart), TINY)


def sparse(step: Array, whole: Array) -> Array:
    """Sparse = ‖g(oₜ, oₜ₊₁)‖ / √E‖g(o₀, o_T) − g(oʲ₀, oʲ_T)‖²: most actions change nothing in a plan. What it is
    divided by is taken as given, so that plans do not gain by growing apart"""
    apart = jnp.mean(jnp.square(length(whole - another(whole))))
    return length(step) / jnp.sqrt(jnp.maximum(jax.lax.stop_gradient(apart), TINY))


def stop(logit: Array, over: Array) -> Array:
    """−log σ(stop) at the last moment, −log(1 − σ(stop)) at all others; each kind counts as much"""
    ends = jnp.maximum(jnp.sum(over), 1)
    others = jnp.maximum(jnp.sum(~over), 1)
    return len(over) * jnp.where(over, jax.nn.softplus(-logit) / ends, jax.nn.softplus(logit) / others)


def cancelling(whole: Array, reference: Array, share: float | Array) -> Array:
    """g(oʳʲ₀, oʳʲ_T) − g(oʲ₀, oʲ_T), to be added to the plan of a share of the samples: another pair's task, done and
    undone, so that it must mean nothing to a policy. A sum of plans is full of that."""
    some = jnp.arange(len(whole)) < share * len(whole)
    return jnp.where(some[:, None], another(reference - whole), 0)


def another(x: Array) -> Array:
    """For each element of a batch, the next one."""
    return jnp.roll(x, -1, axis=0)


TINY = 1e-12  # where all plans are the same, nothing is divided by nothing
_NO_VECTORS = "{} needs plan vectors, and this agent (naive) makes none: weigh it 0"

SEGMENTS = {  # the parts of a sample that the paper encodes, and where they begin and end
    "reference": ("ref_first", "ref_last"),
    "done": ("first", "now"),
    "left": ("now", "last"),
    "whole": ("first", "last"),
}
PARTS = SEGMENTS | {"step": ("now", "next")}  # and all that can be

REGULARISERS = {  # a loss, and the segments whose embeddings it takes
    "hom": (homomorphism, ("done", "left", "whole")),
    "pair": (pair, ("whole", "reference")),
    "contrastive": (contrastive, ("whole", "reference")),
    "alike": (alike, ("whole", "reference")),
    "sparse": (sparse, ("step", "whole")),
}


def total(
    agent: Agent, batch: Batch, weights: Weights, dtype: Any = jnp.float32, asked: str = "reference"
) -> tuple[Array, dict[str, Array]]:
    """The weighted sum of the losses' means over the batch; and each mean by name, with the accuracy.

    The networks compute in `dtype`, whatever the parameters are kept in. A loss of weight 0 is left out. `asked`: the
    segment whose plan is imitated, the reference's; or, where what was done is its own reference, the whole.
    """
    agent = agent.cast(dtype)
    cancels = _counts(weights.cancelling)
    regularisers = _regularisers(agent, weights)
    if cancels and not isinstance(agent, EmbeddingAgent):
        raise InputError(_NO_VECTORS.format("cancelling"))
    plans = _encode(agent, batch, encoded(agent, weights, asked))
    losses: dict[str, Array] = {}
    figures: dict[str, Array] = {}
    if _counts(weights.imitation):
        head = agent.policy.head
        plan = plans[asked]
        if cancels:
            plan = plan + cancelling(plans["whole"], plans["reference"], weights.cancelling)
        outputs = agent.outputs(batch.first, batch.now, plan, done=plans.get("done"))
        acts = 1 - batch.over.astype(jnp.float32)
        losses["imitation"] = _mean(imitation(head, outputs, batch.action), acts)
        figures["accuracy"] = _mean(head.accuracy(outputs, batch.action), acts)
        if weights.stop:
            losses["stop"] = jnp.mean(stop(outputs.stop, batch.over))
            figures["stop_accuracy"] = jnp.mean(head.stops(outputs) == batch.over)
    for name in regularisers:
        regulariser, segments = REGULARISERS[name]
        taken = [plans[segment] for segment in segments]
        losses[name] = jnp.mean(regulariser(*taken))
    loss = sum((getattr(weights, name) * value for name, value in losses.items()), start=jnp.zeros(()))
    return loss, losses | figures | {"loss": loss}


def encoded(agent: Agent, weights: Weights, asked: str = "reference") -> list[str]:
    """The segments of a sample that are encoded: all that the policy and the regularisers take, each once."""
    wanted: set[str] = set()
    if _counts(weights.imitation):
        wanted |= {asked if segment == "reference" else segment for segment in agent.segments}
        wanted |= {"whole", "reference"} if _counts(weights.cancelling) else set()
    for name in _regularisers(agent, weights):
        _, taken = REGULARISERS[name]
        wanted.update(taken)
    return [segment for segment in PARTS if segment in wanted]


def _mean(values: Array, weights: Array) -> Array:
    return jnp.sum(values * weights) / jnp.maximum(jnp.sum(weights), 1)


def _regularisers(agent: Agent, weights: Weights) -> list[str]:
    names = [name for name in REGULARISERS if _counts(getattr(weights, name))]
    if names and not isinstance(agent, EmbeddingAgent):
        raise InputError(_NO_VECTORS.format(", ".join(names)))
    return names


def _counts(weight: float | Array) -> bool:
    return not isinstance(weight, int | float) or weight != 0


def _encode(agent: Agent, batch: Batch, segments: list[str]) -> dict[str, Any]:
    """The plans of several segments of every sample, from one call of the network on all of them."""
    ends = [PARTS[segment] for segment in segments]
    first = _stack([getattr(batch, begin) for begin, _ in ends])
    last = _stack([getattr(batch, end) for _, end in ends])
    plans = agent.encode(first, last)
    return {segment: _part(plans, i, len(segments)) for i, segment in enumerate(segments)}


def _stack(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *trees)


def _part(tree: Any, i: int, parts: int) -> Any:
    return jax.tree.map(lambda leaf: jnp.split(leaf, parts)[i], tree)
