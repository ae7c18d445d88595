"""Policies: networks from observations and a plan to an action head's outputs; and the heads."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from planvec.agents.encoders import Encoder, Linear, Observation

HIDDEN = (64, 64, 64, 64)


class Categorical(eqx.Module):
    """The head for discrete actions, on logits (…, actions). A head owns its loss, its choices, its score."""

    actions: int = eqx.field(static=True)

    @property
    def size(self) -> int:
        """How many numbers the policy must put out."""
        return self.actions

    def loss(self, outputs: Array, action: Array) -> Array:
        """−log π(a | …) of each sample: (…, actions), (…) → (…)."""
        chosen = jnp.take_along_axis(outputs, action[..., None].astype(jnp.int32), axis=-1)[..., 0]
        return jax.nn.logsumexp(outputs, axis=-1) - chosen

    def accuracy(self, outputs: Array, action: Array) -> Array:
        """1 where the likeliest action is the demonstrated one, else 0."""
        return (self.greedy(outputs) == action).astype(jnp.float32)

    def sample(self, outputs: Array, key: Array) -> Array:
        return jax.random.categorical(key, outputs, axis=-1)

    def greedy(self, outputs: Array) -> Array:
        return jnp.argmax(outputs, axis=-1)


class Policy(eqx.Module):
    """π: what is seen → features, beside the plan → MLP → the head's outputs."""

    network: Encoder
    layers: tuple[Linear, ...]
    head: Categorical

    def __init__(self, network: Encoder, inputs: int, head: Categorical, *, key: Array):
        """`inputs`: features of the network plus numbers of the plan."""
        sizes = (inputs, *HIDDEN, head.size)
        keys = jax.random.split(key, len(sizes) - 1)
        self.network = network
        self.layers = tuple(Linear(a, b, key=k) for a, b, k in zip(sizes[:-1], sizes[1:], keys, strict=True))
        self.head = head

    def __call__(self, observations: tuple[Observation, ...], plan: Array | None = None) -> Array:
        x = self.network(observations)
        if plan is not None:
            x = jnp.concatenate([x, plan], axis=-1)
        *hidden, last = self.layers
        for layer in hidden:
            x = jax.nn.relu(layer(x))
        return last(x, out=jnp.float32)
