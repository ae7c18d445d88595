"""Policies: networks from observations and a plan to an action head's outputs; and the heads.

A head owns its last layers, its loss, its choices and its score, so that one trainer serves all kinds of actions.
"""

from abc import abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from planvec.agents.encoders import METRES, Encoder, Linear, Observation


class Head(eqx.Module):
    """What becomes of a policy's last hidden layer: outputs for each sample, and what they are worth."""

    @abstractmethod
    def __call__(self, hidden: Array, now: Observation) -> Any:
        """The outputs (…), from activations (…, hidden) and what is observed at this moment."""

    @abstractmethod
    def loss(self, outputs: Any, action: Array) -> Array:
        """How far the outputs are from the demonstrated action: (…)."""

    @abstractmethod
    def accuracy(self, outputs: Any, action: Array) -> Array:
        """1 where the best choice is as good as the demonstrated action, else 0: (…)."""

    @abstractmethod
    def sample(self, outputs: Any, key: Array) -> Array:
        """An action, drawn at random where the policy is random."""

    @abstractmethod
    def greedy(self, outputs: Any) -> Array:
        """The best action."""


class Categorical(Head):
    """Discrete actions; the outputs are logits (…, actions)."""

    linear: Linear

    def __init__(self, inputs: int, actions: int, *, key: Array):
        self.linear = Linear(inputs, actions, key=key)

    def __call__(self, hidden: Array, now: Observation) -> Array:
        return self.linear(hidden, out=jnp.float32)

    def loss(self, outputs: Array, action: Array) -> Array:
        """−log π(a | …)"""
        chosen = jnp.take_along_axis(outputs, action[..., None].astype(jnp.int32), axis=-1)[..., 0]
        return jax.nn.logsumexp(outputs, axis=-1) - chosen

    def accuracy(self, outputs: Array, action: Array) -> Array:
        return (self.greedy(outputs) == action).astype(jnp.float32)

    def sample(self, outputs: Array, key: Array) -> Array:
        return jax.random.categorical(key, outputs, axis=-1)

    def greedy(self, outputs: Array) -> Array:
        return jnp.argmax(outputs, axis=-1)


class Points(NamedTuple):
    """The outputs of PickAndPlace, in metres."""

    attention: Array  # (…, objects), softmaxed
    objects: Array  # (…, objects, 2), where they are
    place: Array  # (…, 2)


class PickAndPlace(Head):
    """The object-centric head (appendix A.2): attend to an object, grasp there, then say where to put it.

    In training the grasp is the attention-weighted mean of the objects' places, so that it has a gradient; when acting
    it is the place of the most attended object. Nothing is random: sampling is choosing.
    """

    attention: Linear
    place: Linear

    CLOSE = 0.02  # metres from the demonstrated point that count as right, half a cube

    def __init__(self, inputs: int, objects: int, *, key: Array):
        attention_key, place_key = jax.random.split(key)
        self.attention = Linear(inputs, objects, fan=-2, key=attention_key)  # by fan-out, two outputs would begin wild
        self.place = Linear(inputs + objects, 2, fan=-2, key=place_key)

    def __call__(self, hidden: Array, now: Observation) -> Points:
        attention = jax.nn.softmax(self.attention(hidden, out=jnp.float32))
        place = METRES * self.place(jnp.concatenate([hidden, attention], axis=-1), out=jnp.float32)
        return Points(attention, now.reshape(*now.shape[:-1], -1, 3)[..., :2], place)

    def loss(self, outputs: Points, action: Array) -> Array:
        """‖grasp − (x₀, y₀)‖² + ‖place − (x₁, y₁)‖², in units of METRES"""
        grasp = jnp.einsum("...o,...ox->...x", outputs.attention, outputs.objects)
        points = jnp.concatenate([grasp, outputs.place], axis=-1)
        return jnp.sum(jnp.square((points - action) / METRES), axis=-1)

    def accuracy(self, outputs: Points, action: Array) -> Array:
        off = (self.greedy(outputs) - action).reshape(*action.shape[:-1], 2, 2)
        return jnp.all(jnp.linalg.norm(off, axis=-1) < self.CLOSE, axis=-1).astype(jnp.float32)

    def sample(self, outputs: Points, key: Array) -> Array:
        return self.greedy(outputs)

    def greedy(self, outputs: Points) -> Array:
        best = jnp.argmax(outputs.attention, axis=-1)[..., None, None]
        grasp = jnp.take_along_axis(outputs.objects, best, axis=-2)[..., 0, :]
        return jnp.concatenate([grasp, outputs.place], axis=-1)


class Policy(eqx.Module):
    """π: what is seen → features, beside the plan → hidden layers → the head."""

    network: Encoder
    layers: tuple[Linear, ...]
    head: Head

    def __init__(self, network: Encoder, sizes: tuple[int, ...], head: Head, *, key: Array):
        """`sizes`: features of the network plus numbers of the plan, then of each hidden layer."""
        keys = jax.random.split(key, len(sizes) - 1)
        self.network = network
        self.layers = tuple(Linear(a, b, key=k) for a, b, k in zip(sizes[:-1], sizes[1:], keys, strict=True))
        self.head = head

    def __call__(self, observations: tuple[Observation, ...], now: Observation, plan: Array | None = None) -> Any:
        x = self.network(observations)
        if plan is not None:
            x = jnp.concatenate([x, plan], axis=-1)
        for layer in self.layers:
            x = jax.nn.relu(layer(x))
        return self.head(x, now)
