"""Policies: networks from observations and a plan to an action head's outputs; and the heads.

A head owns its last layers, its loss, its choices and its score, so that one trainer serves all kinds of actions.
"""

from abc import abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from planvec.agents.encoders import Encoder, Linear, Observation
from planvec.errors import InputError


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

    def explore(self, outputs: Any, key: Array) -> Array:
        """An action with the chances that `log_density` gives: what practice tries. Some heads act with more care."""
        return self.sample(outputs, key)

    def log_density(self, outputs: Any, action: Array) -> Array:
        """log π(a | …) of exploring, where the head has one: (…). Practice takes it."""
        raise InputError(f"{type(self).__name__} gives its actions no chances: such an agent cannot practise")

    def entropy(self, outputs: Any) -> Array:
        """Of the actions: (…)."""
        return jnp.zeros(())

    def stops(self, outputs: Any) -> Array:
        """Whether the agent says that nothing is left to do, and so does nothing more: bool (N,). Most heads cannot."""
        return jnp.zeros(len(jax.tree.leaves(outputs)[0]), bool)

    @property
    def can_stop(self) -> bool:
        return False


class Ending(NamedTuple):
    """The outputs of Stopping."""

    action: Any  # of the head that chooses the action
    stop: Array  # (…), the logit of "nothing is left to do"


class Stopping(Head):
    """Another head, and beside it one more output that ends the episode."""

    head: Head
    end: Linear

    def __init__(self, head: Head, inputs: int, *, key: Array):
        self.head = head
        self.end = Linear(inputs, 1, fan=-2, key=key)

    def __call__(self, hidden: Array, now: Observation) -> Ending:
        return Ending(self.head(hidden, now), self.end(hidden, out=jnp.float32)[..., 0])

    def loss(self, outputs: Ending, action: Array) -> Array:
        return self.head.loss(outputs.action, action)

    def accuracy(self, outputs: Ending, action: Array) -> Array:
        return self.head.accuracy(outputs.action, action)

    def sample(self, outputs: Ending, key: Array) -> Array:
        return self.head.sample(outputs.action, key)

    def greedy(self, outputs: Ending) -> Array:
        return self.head.greedy(outputs.action)

    def explore(self, outputs: Ending, key: Array) -> Array:
        return self.head.explore(outputs.action, key)

    def log_chance(self, outputs: Ending, action: Array, stop: Array) -> Array:
        """log π of stopping; or of going on, and with this action: (…)"""
        goes_on = jax.nn.log_sigmoid(-outputs.stop) + self.head.log_density(outputs.action, action)
        return jnp.where(stop, jax.nn.log_sigmoid(outputs.stop), goes_on)

    def stops(self, outputs: Ending) -> Array:
        """Where that is likelier than not: an episode has many moments, and a stop cannot be taken back."""
        return outputs.stop > 0

    @property
    def can_stop(self) -> bool:
        return True


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

    def log_density(self, outputs: Array, action: Array) -> Array:
        return -self.loss(outputs, action)

    def entropy(self, outputs: Array) -> Array:
        return _entropy(outputs)

    def sample(self, outputs: Array, key: Array) -> Array:
        return jax.random.categorical(key, outputs, axis=-1)

    def greedy(self, outputs: Array) -> Array:
        return jnp.argmax(outputs, axis=-1)


class Choices(NamedTuple):
    """The outputs of PickAndPlace: which object to take, and where to put each of them."""

    logits: Array  # (…, objects)
    objects: Array  # (…, objects, 3), where they are, in metres
    places: Array  # (…, objects, 2), in metres


METRES = 0.1  # the unit of places, and of how far off they are


class ObjectHead(Head):
    """Attends to an object, grasps there, and says where to put it. To sample is to choose: nothing is random."""

    CLOSE = 0.02  # metres from the demonstrated point that count as right, half a cube

    def accuracy(self, outputs: Any, action: Array) -> Array:
        off = (self.greedy(outputs) - action).reshape(*action.shape[:-1], 2, 2)
        return jnp.all(jnp.linalg.norm(off, axis=-1) < self.CLOSE, axis=-1).astype(jnp.float32)

    def sample(self, outputs: Any, key: Array) -> Array:
        return self.greedy(outputs)


class PickAndPlace(ObjectHead):
    """An object-centric head that chooses.

    Two skills may be begun with either. So there is a place for each object, learned from the demonstrations that took
    it; one place for all, as in the paper, would lie in the middle of what each of them asks for. When acting it takes
    the most attended object.
    """

    attention: Linear
    place: Linear

    STEEP = 0.25  # metres beside the grasp that outweigh one above it: of a pile, the top is taken
    SPREAD = 0.005  # metres: how far around a place practice tries, a quarter of what still counts as there
    SAME = 1e-4  # metres: a hand so near to two middles may mean either object, as the lid in the middle of its box

    def __init__(self, inputs: int, objects: int, *, key: Array):
        attention_key, place_key = jax.random.split(key)
        self.attention = Linear(inputs, objects, fan=-2, key=attention_key)  # by fan-out, few outputs would begin wild
        self.place = Linear(inputs, 2 * objects, fan=-2, key=place_key)

    def __call__(self, hidden: Array, now: Observation) -> Choices:
        objects = now.reshape(*now.shape[:-1], -1, 3)
        places = METRES * self.place(hidden, out=jnp.float32).reshape(*objects.shape[:-1], 2)
        return Choices(self.attention(hidden, out=jnp.float32), objects, places)

    def loss(self, outputs: Choices, action: Array) -> Array:
        """−log π(object) + ‖its place − (x₁, y₁)‖² in units of METRES, for the object grasped at (x₀, y₀)"""
        grasped = self.grasped(outputs.objects, action[..., :2])
        surprise = -_pick(jax.nn.log_softmax(outputs.logits), grasped)
        off = (_pick(outputs.places, grasped) - action[..., 2:]) / METRES
        return surprise + jnp.sum(jnp.square(off), axis=-1)

    def grasped(self, objects: Array, point: Array) -> Array:
        """Which object a grasp at (x, y) takes: the nearest, and of a pile the top one."""
        beside = jnp.linalg.norm(objects[..., :2] - point[..., None, :], axis=-1)
        return jnp.argmin(beside - self.STEEP * objects[..., 2], axis=-1)

    def greedy(self, outputs: Choices) -> Array:
        best = jnp.argmax(outputs.logits, axis=-1)
        return jnp.concatenate([_pick(outputs.objects, best)[..., :2], _pick(outputs.places, best)], axis=-1)

    def explore(self, outputs: Choices, key: Array) -> Array:
        """An object by its chance, and somewhere around its place."""
        object_key, place_key = jax.random.split(key)
        taken = jax.random.categorical(object_key, outputs.logits)
        place = _pick(outputs.places, taken)
        place = place + self.SPREAD * jax.random.normal(place_key, place.shape)
        return jnp.concatenate([_pick(outputs.objects, taken)[..., :2], place], axis=-1)

    def log_density(self, outputs: Choices, action: Array) -> Array:
        """log Σ π(object) · N((x₁, y₁); its place, SPREAD²), over the objects in the middle of which is (x₀, y₀)"""
        beside = jnp.sum(jnp.square(outputs.objects[..., :2] - action[..., None, :2]), axis=-1)
        meant = jnp.sqrt(beside) <= jnp.sqrt(jnp.min(beside, axis=-1, keepdims=True)) + self.SAME
        off = (action[..., None, 2:] - outputs.places) / self.SPREAD
        around = -jnp.sum(jnp.square(off), axis=-1) / 2 - jnp.log(2 * jnp.pi * self.SPREAD**2)
        each = jax.nn.log_softmax(outputs.logits) + around
        return jax.nn.logsumexp(jnp.where(meant, each, -jnp.inf), axis=-1)

    def entropy(self, outputs: Choices) -> Array:
        """Of which object is taken; that of the place is always the same."""
        return _entropy(outputs.logits)


class Attended(NamedTuple):
    """The outputs of AttendAndPlace."""

    attention: Array  # (…, objects), adds up to 1
    objects: Array  # (…, objects, 3), where they are, in metres
    place: Array  # (…, 2), in metres


class AttendAndPlace(ObjectHead):
    """The paper's object-centric head (appendix A.2): attention over the objects, and one place to put them.

    In training it grasps at the mean of the objects, weighted by attention; when acting at the most attended one.
    """

    attention: Linear
    place: Linear

    def __init__(self, inputs: int, objects: int, *, key: Array):
        attention_key, place_key = jax.random.split(key)
        self.attention = Linear(inputs, objects, fan=-2, key=attention_key)
        self.place = Linear(inputs + objects, 2, fan=-2, key=place_key)

    def __call__(self, hidden: Array, now: Observation) -> Attended:
        attention = jax.nn.softmax(self.attention(hidden, out=jnp.float32))
        place = self.place(jnp.concatenate([hidden, attention], axis=-1), out=jnp.float32)
        return Attended(attention, now.reshape(*now.shape[:-1], -1, 3), METRES * place)

    def loss(self, outputs: Attended, action: Array) -> Array:
        """‖Σ attention · (x, y) − (x₀, y₀)‖² + ‖place − (x₁, y₁)‖², in units of METRES"""
        grasp = jnp.sum(outputs.attention[..., None] * outputs.objects[..., :2], axis=-2)
        off = (jnp.concatenate([grasp, outputs.place], axis=-1) - action) / METRES
        return jnp.sum(jnp.square(off), axis=-1)

    def greedy(self, outputs: Attended) -> Array:
        best = jnp.argmax(outputs.attention, axis=-1)
        return jnp.concatenate([_pick(outputs.objects, best)[..., :2], outputs.place], axis=-1)


def _entropy(logits: Array) -> Array:
    """−Σ π log π: (…, choices) to (…)"""
    logs = jax.nn.log_softmax(logits)
    return -jnp.sum(jnp.exp(logs) * logs, axis=-1)


def _pick(of_objects: Array, which: Array) -> Array:
    """The entries of one object each: (…, objects, …) and (…) to (…, …)."""
    further = of_objects.ndim - which.ndim
    index = which.reshape(which.shape + (1,) * further)
    return jnp.take_along_axis(of_objects, index, axis=which.ndim).squeeze(which.ndim)


class Policy(eqx.Module):
    """π: what is seen, and the plan, become a hidden layer; the head makes of that what to do."""

    head: eqx.AbstractVar[Head]
    layers: eqx.AbstractVar[tuple[Linear, ...]]

    @property
    def features(self) -> int:
        """How wide the last hidden layer is."""
        return self.layers[-1].weight.shape[-1]

    @abstractmethod
    def hidden(self, observations: tuple[Observation, ...], plan: Array | None = None) -> Array:
        """The last hidden layer: (N, hidden)."""

    def __call__(self, observations: tuple[Observation, ...], now: Observation, plan: Array | None = None) -> Any:
        return self.head(self.hidden(observations, plan), now)


class LayeredPolicy(Policy):
    """What is seen → features, beside the plan → hidden layers."""

    network: Encoder
    layers: tuple[Linear, ...]
    head: Head

    def __init__(self, network: Encoder, sizes: tuple[int, ...], head: Head, *, key: Array):
        """`sizes`: features of the network plus numbers of the plan, then of each hidden layer."""
        keys = jax.random.split(key, len(sizes) - 1)
        self.network = network
        self.layers = tuple(Linear(a, b, key=k) for a, b, k in zip(sizes[:-1], sizes[1:], keys, strict=True))
        self.head = head

    def hidden(self, observations: tuple[Observation, ...], plan: Array | None = None) -> Array:
        x = self.network(observations)
        if plan is not None:
            x = jnp.concatenate([x, plan], axis=-1)
        for layer in self.layers:
            x = jax.nn.relu(layer(x))
        return x
