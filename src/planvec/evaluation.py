"""Evaluation: thousands of episodes at once, judged against what happened in their references.

A condition names what the plan is made of: "4" is one reference of four skills, "2+2" the sum of two references
of two skills each. Success: every skill done in the references is done at least as often within the horizon.
"""

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from planvec.agents import Agent
from planvec.errors import InputError
from planvec.tasks import Task
from planvec.worlds.crafting.world import Crafting

CONDITIONS = ("4", "8", "16", "1+1", "2+2", "4+4")


class References(NamedTuple):
    """Demonstrations that say what to do in each episode."""

    first: list[Any]  # for each part of the sum, first observations [episode, …]
    last: list[Any]
    wanted: np.ndarray  # int32 [episode, skill], how often each skill was done in them
    tasks: list[Task]  # what the scene must offer


class Score(NamedTuple):
    """One cell of a results table; fractions of episodes."""

    success: float
    exact: float  # … and nothing else was done up to that moment
    stops: float  # … nor after it, to the horizon
    episodes: int
    horizon: int

    @property
    def ci95(self) -> float:
        """Half the width of the 95% interval of `success` (Agresti–Coull)."""
        episodes = self.episodes + 4
        share = (self.success * self.episodes + 2) / episodes
        return 2 * math.sqrt(share * (1 - share) / episodes)


def parse_condition(text: str) -> tuple[int, ...]:
    """Read "2+2" as (2, 2)."""
    if not re.fullmatch(r"[1-9]\d*(\+[1-9]\d*)*", text.strip()):
        raise InputError(f"'{text}' is not a condition; write a number of skills like 4, or a sum like 2+2")
    return tuple(map(int, text.strip().split("+")))


def references(world: Crafting, condition: str, episodes: int, seed: int, extras: str = "discard") -> References:
    """Fresh demonstrations by the expert, without noise, of random tasks."""
    parts = parse_condition(condition)
    tasks = [world.sample_tasks((seed, 2, part), episodes, size, size) for part, size in enumerate(parts)]
    return references_of(world, tasks, seed, extras)


def references_of(world: Crafting, tasks: Sequence[Sequence[Task]], seed: int, extras: str = "discard") -> References:
    """Fresh demonstrations of given tasks: for each part of the sum, one for each episode."""
    first, last, wanted = [], [], 0
    for part, part_tasks in enumerate(tasks):
        recording = world.record(part_tasks, (seed, 3, part), 0.0, extras)
        begins, ends, done = world.ends(recording)
        first.append(begins)
        last.append(ends)
        wanted = wanted + done
    return References(first, last, wanted, [sum(whole, ()) for whole in zip(*tasks, strict=True)])


def evaluate(
    agent: Agent,
    world: Crafting,
    condition: str,
    episodes: int = 100,
    seed: int = 0,
    extras: str = "discard",
    greedy: bool = False,
    control: bool = False,
) -> Score:
    """How well an agent does under a condition. `control`: its plans are those of the next episode's references."""
    [score] = evaluate_many(_stacked([agent]), world, condition, episodes, seed, extras, greedy, control)
    return score


def evaluate_many(
    agents: Agent,
    world: Crafting,
    condition: str,
    episodes: int = 100,
    seed: int = 0,
    extras: str = "discard",
    greedy: bool = False,
    control: bool = False,
) -> list[Score]:
    """The same for several agents of one kind, stacked, on the same references and scenes."""
    asked = references(world, condition, episodes, seed, extras)
    scenes = world.scenes(asked.tasks, (seed, 4))
    horizon = world.horizon(sum(parse_condition(condition)))
    shown = jax.tree.map(lambda leaf: np.roll(leaf, 1, axis=0), asked) if control else asked
    results = _episodes(
        agents, world, (shown.first, shown.last), scenes, asked.wanted, jax.random.key(seed), horizon, greedy
    )
    return [Score(*(float(np.mean(part[i])) for part in results), episodes, horizon) for i in range(len(results[0]))]


@eqx.filter_jit
def _episodes(
    agents: Agent, world: Crafting, shown: tuple, scenes: Any, wanted: Array, key: Array, horizon: int, greedy: bool
) -> tuple[Array, Array, Array]:
    """Whether each agent in each episode succeeds, exactly, and stops. bool [agent, episode] each"""
    return jax.vmap(lambda agent: _rollout(agent, world, shown, scenes, wanted, key, horizon, greedy))(agents)


def _rollout(
    agent: Agent, world: Crafting, shown: tuple, scenes: Any, wanted: Array, key: Array, horizon: int, greedy: bool
) -> tuple[Array, Array, Array]:
    plans = agent.add([agent.encode(first, last) for first, last in zip(*shown, strict=True)])
    beginning = jax.vmap(world.observe)(scenes)
    head, none = agent.policy.head, jnp.zeros(len(wanted), bool)

    def step(carry: tuple, time: Array) -> tuple[tuple, None]:
        states, done, success, exact = carry
        outputs = agent.outputs(beginning, jax.vmap(world.observe)(states), plans)
        actions = head.greedy(outputs) if greedy else head.sample(outputs, jax.random.fold_in(key, time))
        states, skills = jax.vmap(world.step)(states, actions)
        done = done + (skills[:, None] == jnp.arange(wanted.shape[1]))
        now = jnp.all(done >= wanted, axis=1)
        exact = jnp.where(now & ~success, jnp.all(done == wanted, axis=1), exact)
        return (states, done, success | now, exact), None

    start = (scenes, jnp.zeros_like(wanted), none, none)
    (_, done, success, exact), _ = jax.lax.scan(step, start, jnp.arange(horizon))
    return success, exact, exact & jnp.all(done == wanted, axis=1)


def _stacked(agents: Sequence[Agent]) -> Agent:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *agents)
