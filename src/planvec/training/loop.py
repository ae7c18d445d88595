"""Training: a plain loop around the jitted updates that logs, saves and resumes.

Several seeds, and models that differ in the weights of their losses alone, train together in one program. All that
is random about an update follows from (seed, step): how the steps are cut into chunks, or what trains beside it, is no
matter.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from planvec.agents import Agent
from planvec.data.play import PlaySet
from planvec.data.samples import Samples
from planvec.errors import Failure, InputError
from planvec.training.config import Config
from planvec.training.runs import Run, open_run, resume
from planvec.training.update import programs, start

SCORED = 10  # intervals between two looks at how an agent does in its world
PIECE = 2.0  # seconds of updates in one call, about: so soon it can be watched, and stopped


class Diverged(Failure):
    """A loss is no longer a number."""


def train(
    configs: Sequence[Config],
    folders: Sequence[Path],
    samples: Samples,
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
    configs = [config.resolved() for config in configs]
    seeds, kinds = grid(configs)
    if any(config.plays != isinstance(samples, PlaySet) for config in configs):
        raise InputError("segments are random where the data are play, and there alone")
    training, validation = samples.split()
    for config, folder in zip(configs, folders, strict=True):
        open_run(config, folder, data)
    states = resume(folders, [start(config) for config in configs])
    chunk, validate = programs(kinds, deterministic)
    updates = configs[0].updates
    interval = configs[0].interval
    step = int(states.step[0])
    runs = [Run(folder, step) for folder in folders]
    try:
        while step < updates:
            tick(step)
            began = time.perf_counter()
            before = step
            until = min(step - step % interval + interval, updates)
            size = 1
            sums: dict[str, Array] = {}
            while step < until:
                called = time.perf_counter()
                states, means = jax.block_until_ready(chunk(states, training, seeds, size))
                pace = size / (time.perf_counter() - called)
                sums = {name: sums.get(name, 0) + size * mean for name, mean in means.items()}
                step += size
                tick(step)
                size = _next_size(size, pace, until - step)
            metrics = {name: total / (until - before) for name, total in sums.items()}
            metrics |= {f"valid_{name}": value for name, value in validate(states.agent, validation).items()}
            rows = [{name: float(value) for name, value in row.items()} for row in _unstack(jax.device_get(metrics))]
            rate = (until - before) * configs[0].batch * len(configs) / (time.perf_counter() - began)
            rows = [row | {"samples_per_second": rate} for row in rows]
            _check_finite(rows, folders, before)
            each = _unstack(jax.device_get(states))
            if score and (before // interval) % SCORED == SCORED - 1:
                for row, scores in zip(rows, score([state.agent for state in each]), strict=True):
                    row.update(scores)
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


def grid(configs: Sequence[Config]) -> tuple[Array, tuple[Config, ...]]:
    """The seeds of a training, and the kinds of agents trained with each: configs come seed by seed."""
    seeds = list(dict.fromkeys(config.seed for config in configs))
    kinds = tuple(dict.fromkeys(replace(config, seed=0, interval=1) for config in configs))
    if len({(config.program, config.interval) for config in configs}) != 1:
        raise InputError("agents that train together may differ in their seed and the weights of their losses alone")
    if [replace(config, interval=1) for config in configs] != [replace(kind, seed=s) for s in seeds for kind in kinds]:
        raise InputError("agents that train together must come seed by seed, each seed with the same kinds of agents")
    return jnp.array(seeds, jnp.uint32), kinds


def _next_size(size: int, pace: float, left: int) -> int:
    """How many updates to do in the next call, at so many in a second: as many as take PIECE seconds."""
    return max(1, min(int(PIECE * pace), 8 * size, left))


def _unstack(tree: Any) -> list[Any]:
    """The trees of which this one is the stack."""
    count = len(jax.tree.leaves(tree)[0])
    return [jax.tree.map(lambda leaf, i=i: leaf[i], tree) for i in range(count)]


def _check_finite(rows: list[dict[str, float]], folders: Sequence[Path], step: int) -> None:
    for row, folder in zip(rows, folders, strict=True):
        if not all(map(math.isfinite, row.values())):
            raise Diverged(f"a loss is not a number after step {step}; {folder} keeps the weights from before")
