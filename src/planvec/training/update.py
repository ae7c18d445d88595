"""One update, read from the top: of one agent, of all kinds with one seed, of all seeds; then many of them in a row.

Agents that train together lie stacked: for each seed, those of all kinds. So their networks are batched matrix
products. Kinds differ in the weights of their losses alone; in everything else the first of them speaks for all.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from planvec.agents import Agent, Weights, family
from planvec.data.play import PlaySet
from planvec.data.samples import Batch, Samples
from planvec.training import compilation, losses, optimizers
from planvec.training.config import Config
from planvec.training.runs import State
from planvec.worlds import make

Kinds = tuple[Config, ...]
Metrics = dict[str, Array]

WEIGHTS = 0  # what a random key is for
SAMPLES = 1
VALIDATION = 16  # looks at the validation data, each as large as four batches; their mean is logged


def update(state: State, batch: Batch, weights: Weights, config: Config) -> tuple[State, Metrics]:
    """One agent: losses → gradients → optimizer → a new state."""
    gradient = eqx.filter_grad(losses.total, has_aux=True)
    gradients, metrics = gradient(state.agent, batch, weights, precision(config), asked(config))
    changes, memory = make_optimizer(config).update(gradients, state.optimizer, state.agent)
    agent = eqx.apply_updates(state.agent, changes)
    return State(agent=agent, optimizer=memory, step=state.step + 1), metrics


def update_kinds(states: State, seed: Array, data: Samples, kinds: Kinds) -> tuple[State, Metrics]:
    """All kinds with one seed: they see the same samples, so these are drawn once. [kind, …]"""
    config = kinds[0]
    batch = draw(data, random_key(seed, SAMPLES, states.step[0]), config.batch, config)
    return for_each(
        lambda state, kind: update(state, batch, weights_of(kinds, kind), config), states, jnp.arange(len(kinds))
    )


def update_seeds(states: State, seeds: Array, data: Samples, kinds: Kinds) -> tuple[State, Metrics]:
    """All kinds with all seeds. [seed, kind, …]"""
    return for_each(lambda states, seed: update_kinds(states, seed, data, kinds), states, seeds)


def chunk(states: State, data: Samples, seeds: Array, updates: Array | int, kinds: Kinds) -> tuple[State, Metrics]:
    """So many updates, and the means of their metrics. [seed · kind, …]

    `updates` is no constant of the program, so that the last and shorter chunk need not be compiled anew.
    """

    def step(_: Array, carried: tuple[State, Metrics]) -> tuple[State, Metrics]:
        states, sums = carried
        states, metrics = update_seeds(states, seeds, data, kinds)
        return states, jax.tree.map(jnp.add, sums, metrics)

    states = jax.tree.map(lambda leaf: leaf.reshape(len(seeds), len(kinds), *leaf.shape[1:]), states)
    _, metrics = jax.eval_shape(partial(update_seeds, kinds=kinds), states, seeds, data)
    zeros = jax.tree.map(lambda outline: jnp.zeros(outline.shape, outline.dtype), metrics)
    states, sums = jax.lax.fori_loop(0, updates, step, (states, zeros))
    means = jax.tree.map(lambda total: total / updates, sums)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), (states, means))


def validate(agents: Agent, data: Samples, kinds: Kinds) -> Metrics:
    """The metrics on data that are not trained on, always the same samples of them. [seed · kind]"""
    keys = jax.random.split(jax.random.key(0), VALIDATION)
    looks = jax.lax.map(lambda key: look(agents, draw(data, key, 4 * kinds[0].batch, kinds[0]), kinds), keys)
    return jax.tree.map(lambda figure: figure.mean(axis=0), looks)


def look(agents: Agent, batch: Batch, kinds: Kinds) -> Metrics:
    """The metrics of all agents on one batch. [seed · kind]"""
    count = len(jax.tree.leaves(agents)[0])
    how = precision(kinds[0]), asked(kinds[0])
    each = jax.vmap(lambda agent, kind: losses.total(agent, batch, weights_of(kinds, kind), *how)[1])
    return each(agents, jnp.arange(count) % len(kinds))


def draw(data: Samples, key: Array, count: int, config: Config) -> Batch:
    """So many samples, as a training asks for them."""
    if isinstance(data, PlaySet):
        return data.sample(key, count, config.ended, config.window, config.jitter or 0)
    return data.sample(key, count, config.ended)


def asked(config: Config) -> str:
    """The segment of a sample whose plan is imitated."""
    return "whole" if config.plays else "reference"


@cache
def programs(kinds: Kinds, deterministic: bool = False) -> tuple[Callable, Callable]:
    """`chunk` and `validate` for these kinds, compiled."""
    jit = partial(jax.jit, compiler_options=compilation.options(deterministic))
    return jit(partial(chunk, kinds=kinds)), jit(partial(validate, kinds=kinds))


def for_each(function: Callable, *stacks: Any) -> Any:
    """jax.vmap over stacks; but one that is alone is computed alone, which is faster than as a batch of one."""
    if len(jax.tree.leaves(stacks)[0]) != 1:
        return jax.vmap(function)(*stacks)
    alone = [jax.tree.map(lambda leaf: leaf[0], stack) for stack in stacks]
    return jax.tree.map(lambda leaf: leaf[None], function(*alone))


def weights_of(kinds: Kinds, kind: Array) -> Weights:
    """Of the losses, for one kind. Those that are the same for all kinds are constants of the program."""

    def choose(*each: float) -> float | Array:
        return each[0] if len(set(each)) == 1 else jnp.array(each)[kind]

    weights = [one.weights for one in kinds]
    return jax.tree.map(choose, *weights)


def make_optimizer(config: Config) -> Any:
    """An optax.GradientTransformation, of modules too: optax's own types know arrays and containers alone."""
    assert config.weight_decay is not None, "the weight decay is left to the world: resolve the config first"
    warmup = min(config.warmup, config.updates // 10)
    schedule = optimizers.make_schedule(config.schedule, config.learning_rate, warmup, config.updates)
    return optimizers.make_optimizer(config.optimizer, schedule, config.weight_decay, precision(config))


def precision(config: Config) -> Any:
    """The dtype in which the networks compute."""
    if config.precision == "auto":
        on_cpu = jax.default_backend() == "cpu"
        return jnp.float32 if on_cpu else family(make(config.world).space).precision
    return jnp.dtype(config.precision)


def start(config: Config) -> State:
    """Fresh weights."""
    agent = config.build(random_key(jnp.uint32(config.seed), WEIGHTS, 0))
    return State(agent=agent, optimizer=make_optimizer(config).init(agent), step=jnp.int32(0))


def random_key(seed: Array, purpose: int, step: int | Array) -> Array:
    """Everything random about a training follows from its seed, what it is for, and the step."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), purpose), step)
