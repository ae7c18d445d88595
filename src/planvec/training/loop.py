"""Training: one jitted function that does many updates, and a plain loop around it that logs, saves and resumes.

Several seeds, and models that differ in the weights of their losses alone, train together in one program (their
networks become batched matrix products). Everything random about an update follows from (seed, step): how the steps are
cut into chunks, or what trains beside, is no matter.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from planvec.agents import Agent, Weights, family
from planvec.data.pairs import Batch, PairSet
from planvec.errors import Failure, InputError
from planvec.training import compilation, losses, optimizers
from planvec.training.config import Config
from planvec.training.runs import Run, State, open_run, resume
from planvec.worlds import make

VALIDATION = 16  # looks at the validation pairs, each as large as four batches; their mean is logged
SCORED = 10  # intervals between two looks at how an agent does in its world
PIECE = 2.0  # seconds of updates in one call, about: so soon it can be watched, and stopped


class Diverged(Failure):
    """A loss is no longer a number."""


def train(
    configs: Sequence[Config],
    folders: Sequence[Path],
    pairs: PairSet,
    data: dict[str, Any],
    watch: Callable[[int, list[dict[str, float]]], None] = lambda step, metrics: None,
    score: Callable[[list[Agent]], list[dict[str, float]]] | None = None,
    tick: Callable[[int], None] = lambda step: None,
    deterministic: bool = False,
) -> list[Agent]:
    """Train agents together, each into a run folder of its own; goes on from their last common checkpoint.

    The configs may differ in their seed, and in the weights of their losses (see `grid`). `watch` is told after each
    interval, `tick` every few seconds; what they raise stops the training, and Ctrl-C loses nothing. `score` adds
    figures of its own to the log, every SCORED intervals. `deterministic`: the same bits every time on a GPU too.
    """
    seeds, kinds = grid(configs)
    config, (training, validation) = configs[0], pairs.split()
    for own, folder in zip(configs, folders, strict=True):
        open_run(own, folder, data)
    states = resume(folders, list(map(start, configs)))
    chunk, validate = programs(kinds, deterministic)
    step = int(states.step[0])
    runs = [Run(folder, step) for folder in folders]
    try:
        while step < config.updates:
            tick(step)
            before, began = step, time.perf_counter()
            until = min(step - step % config.interval + config.interval, config.updates)
            for states, metrics in _pieces(chunk, states, training, seeds, until - step):  # noqa: B007, B020
                step = int(states.step[0])
                tick(step)
            metrics |= {f"valid_{name}": value for name, value in validate(states.agent, validation).items()}
            rows = [{name: float(value) for name, value in row.items()} for row in _unstack(jax.device_get(metrics))]
            rate = (step - before) * config.batch * len(configs) / (time.perf_counter() - began)
            rows = [row | {"samples_per_second": rate} for row in rows]
            _check_finite(rows, folders, before)
            each = _unstack(jax.device_get(states))
            if score and (before // config.interval) % SCORED == SCORED - 1:
                for row, scores in zip(rows, score([state.agent for state in each]), strict=True):
                    row |= scores
            for run, state, row in zip(runs, each, rows, strict=True):
                run.save(state, row)
            watch(step, rows)
    except KeyboardInterrupt:
        for run, state in zip(runs, _unstack(jax.device_get(states)), strict=True):
            run.keep(state)
        raise
    finally:
        for run in runs:
            run.close()
    return _unstack(states.agent)


def _pieces(
    chunk: Callable, states: State, pairs: PairSet, seeds: Array, updates: int
) -> Iterator[tuple[State, dict[str, Array]]]:
    """So many updates, some at a time: after each piece the states, and the means of the metrics so far."""
    done, size, sums = 0, 1, {}
    while done < updates:
        began = time.perf_counter()
        states, means = jax.block_until_ready(chunk(states, pairs, seeds, size))
        sums = {name: sums.get(name, 0) + size * mean for name, mean in means.items()}
        done += size
        yield states, {name: total / done for name, total in sums.items()}
        pace = size * PIECE / (time.perf_counter() - began)
        size = max(1, min(int(pace), 8 * size, updates - done))


def grid(configs: Sequence[Config]) -> tuple[Array, tuple[Config, ...]]:
    """The seeds of a training, and the kinds of agents trained with each: configs come seed by seed."""
    seeds = list(dict.fromkeys(config.seed for config in configs))
    kinds = tuple(dict.fromkeys(replace(config, seed=0, interval=1) for config in configs))
    if len({(config.program, config.interval) for config in configs}) != 1:
        raise InputError("agents that train together may differ in their seed and the weights of their losses alone")
    if [replace(config, interval=1) for config in configs] != [replace(kind, seed=s) for s in seeds for kind in kinds]:
        raise InputError("agents that train together must come seed by seed, each seed with the same kinds of agents")
    return jnp.array(seeds, jnp.uint32), kinds


def _unstack(tree: Any) -> list[Any]:
    """The trees of which this one is the stack."""
    count = len(jax.tree.leaves(tree)[0])
    return [jax.tree.map(lambda leaf, i=i: leaf[i], tree) for i in range(count)]


def _check_finite(rows: list[dict[str, float]], folders: Sequence[Path], step: int) -> None:
    for row, folder in zip(rows, folders, strict=True):
        if not all(map(math.isfinite, row.values())):
            raise Diverged(f"a loss is not a number after step {step}; {folder} keeps the weights from before")


@cache
def programs(kinds: tuple[Config, ...], deterministic: bool = False) -> tuple[Callable, Callable]:
    """The two jitted functions of a training: so many updates, and a look at the validation pairs.

    They take the states or agents of a grid, flat: for each seed, those of all kinds.
    """
    config = kinds[0]
    optimizer, dtype = make_optimizer(config), precision(config)
    jit = partial(jax.jit, compiler_options=compilation.options(deterministic))

    def weights(kind: Array) -> Weights:
        """Of the losses, for one kind. Those that are the same for all are constants of the program."""
        every = [one.weights for one in kinds]
        return jax.tree.map(lambda *each: each[0] if len(set(each)) == 1 else jnp.array(each)[kind], *every)

    def update(state: State, batch: Batch, kind: Array) -> tuple[State, dict[str, Array]]:
        def loss(agent: Agent) -> tuple[Array, dict[str, Array]]:
            return losses.total(agent, batch, weights(kind), dtype)

        (_, metrics), gradients = eqx.filter_value_and_grad(loss, has_aux=True)(state.agent)
        changes, memory = optimizer.update(gradients, state.optimizer, state.agent)
        return State(eqx.apply_updates(state.agent, changes), memory, state.step + 1), metrics

    def update_kinds(states: State, pairs: PairSet, seed: Array) -> tuple[State, dict[str, Array]]:
        """All kinds with one seed: they see the same samples, so these are drawn once."""
        batch = pairs.sample(_key(seed, 1, states.step[0]), config.batch)
        return _vmap(update, (0, None, 0), len(kinds))(states, batch, jnp.arange(len(kinds)))

    @jit
    def chunk(states: State, pairs: PairSet, seeds: Array, updates: int) -> tuple[State, dict[str, Array]]:
        """`updates` is no constant of the program, so that the last and shorter chunk need not be compiled anew."""
        together = _vmap(update_kinds, (0, None, 0), len(seeds))

        def body(_: int, carry: tuple[State, dict[str, Array]]) -> tuple[State, dict[str, Array]]:
            states, metrics = together(carry[0], pairs, seeds)
            return states, jax.tree.map(jnp.add, carry[1], metrics)

        states = jax.tree.map(lambda leaf: leaf.reshape(len(seeds), len(kinds), *leaf.shape[1:]), states)
        _, shapes = jax.eval_shape(together, states, pairs, seeds)
        zeros = jax.tree.map(lambda shape: jnp.zeros(shape.shape, shape.dtype), shapes)
        states, sums = jax.lax.fori_loop(0, updates, body, (states, zeros))
        means = jax.tree.map(lambda total: total / updates, sums)
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), (states, means))

    @jit
    def validate(agents: Agent, pairs: PairSet) -> dict[str, Array]:
        count = len(jax.tree.leaves(agents)[0])

        def look(key: Array) -> dict[str, Array]:
            batch = pairs.sample(key, 4 * config.batch)
            each = jax.vmap(lambda agent, kind: losses.total(agent, batch, weights(kind), dtype)[1])
            return each(agents, jnp.arange(count) % len(kinds))

        figures = jax.lax.map(look, jax.random.split(jax.random.key(0), VALIDATION))
        return jax.tree.map(lambda figure: figure.mean(axis=0), figures)

    return chunk, validate


def _vmap(function: Callable, in_axes: tuple[int | None, ...], count: int) -> Callable:
    """jax.vmap; but one of a kind is computed as one, which is faster than as a batch of one."""
    if count != 1:
        return jax.vmap(function, in_axes)

    def alone(*arguments: Any) -> Any:
        mapped = zip(arguments, in_axes, strict=True)
        one = [jax.tree.map(lambda leaf: leaf[0], tree) if axis == 0 else tree for tree, axis in mapped]
        return jax.tree.map(lambda leaf: leaf[None], function(*one))

    return alone


def make_optimizer(config: Config) -> optax.GradientTransformation:
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
    agent = config.build(_key(jnp.uint32(config.seed), 0, 0))
    return State(agent, make_optimizer(config).init(agent), jnp.int32(0))


def _key(seed: Array, purpose: int, step: int | Array) -> Array:
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), purpose), step)
