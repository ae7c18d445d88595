"""Fresh demonstrations by the expert, and their plans, many at once: what agents are measured and probed on."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import Array

from planvec.agents import Agent
from planvec.agents.agent import EmbeddingAgent
from planvec.errors import InputError
from planvec.tasks import Task
from planvec.worlds.protocol import World, take

BATCH = 512  # plans made at once


def check_vectors(agent: Agent) -> EmbeddingAgent:
    """The agent, if its plans are vectors; complains about any other."""
    if not isinstance(agent, EmbeddingAgent):
        raise InputError(
            "a model without plan vectors (naive) has nothing to measure; choose a te, cpv or tecnet agent"
        )
    return agent


class Corpus:
    """Demonstrations of tasks, each in a scene of its own."""

    def __init__(
        self, world: World, tasks: Sequence[Task], seed: Sequence[int], progress: Callable[[int], None]
    ) -> None:
        recording = world.record(tasks, seed, 0.0, "discard", progress)
        self._world = world
        self._recording = recording
        self._first, self._last, counts = world.ends(recording)
        self.lengths = recording.lengths
        self.counts = counts.reshape(len(tasks), -1)  # int32 [demonstration, what may be asked for]

    @cached_property
    def _steps(self) -> Any:
        """All that was seen on the way; in a simulator that takes long to rebuild, and not everyone asks."""
        return self._world.replay(self._recording)

    def plans(self, agent: EmbeddingAgent) -> np.ndarray:
        """g(first, last) of all. float64 [demonstration, embedding]"""
        plans = encode(agent, self._first, self._last)
        if not np.isfinite(plans).all():
            raise InputError("this agent's plans are not finite numbers: its training must have gone astray")
        return plans

    def nothing(self, agent: EmbeddingAgent) -> np.ndarray:
        """g(first, first) of all. float64 [demonstration, embedding]"""
        return encode(agent, self._first, self._first)

    def parts(self, agent: EmbeddingAgent, which: np.ndarray, times: np.ndarray) -> np.ndarray:
        """g(first, now) + g(now, last) of some, each at its time. float64 [demonstration, embedding]"""
        steps = take(self._steps, self._recording.first_steps[which] + times)
        first = take(self._first, which)
        now = _decode(self._world, steps)
        last = take(self._last, which)
        return encode(agent, first, now) + encode(agent, now, last)

    def done(self, agent: EmbeddingAgent) -> tuple[np.ndarray, np.ndarray]:
        """g(first, now) at every moment of all, and the number of the demonstration it is of."""
        which = np.repeat(np.arange(len(self.lengths)), self.lengths + 1)
        plans = [
            np.asarray(encode_batch(agent, take(self._first, demos), _decode(self._world, steps)))
            for demos, steps in _batches((which, self._steps))
        ]
        return np.concatenate(plans).astype(np.float64)[: len(which)], which

    def order(self, demo: int) -> tuple[str, ...]:
        """The skills that were done, in order."""
        steps = take(self._steps, self._recording.steps_of(demo))
        events = self._world.events(steps, self._recording.actions_of(demo))
        return tuple(event for event in events if event)


def count_names(skills: Sequence[str], count: int) -> list[str]:
    """What the counts that a world asks for are called: its skills, then what has no name (the tabletop's lid)."""
    named = list(skills) if count >= len(skills) else []
    return named + [f"count {number}" for number in range(len(named), count)]


def encode(agent: EmbeddingAgent, first: Any, last: Any) -> np.ndarray:
    """Many plans, a batch of the same size at a time so that one program serves all."""
    parts = [np.asarray(encode_batch(agent, begin, end)) for begin, end in _batches((first, last))]
    return np.concatenate(parts).astype(np.float64)[: len(jax.tree.leaves(first)[0])]


def _batches(tree: Any) -> Iterator[Any]:
    """Rows by the batch, the last one filled up with its last row."""
    count = len(jax.tree.leaves(tree)[0])
    for begin in range(0, count, BATCH):
        yield take(tree, np.minimum(np.arange(begin, begin + BATCH), count - 1))


@eqx.filter_jit
def _decode(world: World, steps: Any) -> Any:
    return jax.vmap(world.decode)(steps)


@eqx.filter_jit
def encode_batch(agent: EmbeddingAgent, first: Any, last: Any) -> Array:
    """g of a batch: a program for each size of batch."""
    return agent.encode(first, last)
