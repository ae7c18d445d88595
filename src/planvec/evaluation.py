"""Evaluation: thousands of episodes at once, judged against what happened in their references.

A condition names what the plan is made of: "4" is one reference of four skills, "2+2" the sum of two references
of two skills each. Success: every skill done in the references is done at least as often within the horizon.
"""

import math
import re
from collections.abc import Sequence
from functools import lru_cache
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


class Score(NamedTuple):
    """One cell of a results table; fractions of episodes."""

    success: float
    exact: float  # … and nothing else was done up to that moment
    stops: float  # … nor after it, to the horizon
    episodes: int
    horizon: int

    @property
    def ci95(self) -> float:
        """Half the width of the 95% interval of `success` (Agresti and Coull's)."""
        episodes = self.episodes + 4
        share = (self.success * self.episodes + 2) / episodes
        return 2 * math.sqrt(share * (1 - share) / episodes)

    def as_dict(self) -> dict[str, float]:
        return self._asdict() | {"ci95": self.ci95}


class Trial(NamedTuple):
    """What a set of episodes begins with, and what is asked of it."""

    shown: tuple[tuple[Any, Any], ...]  # for each part of the sum, the references' (first, last) [episode, …]
    scenes: Any  # world states [episode]
    wanted: np.ndarray  # int32 [episode, skill], how often each skill was done in the references
    horizon: int


def parse_condition(text: str) -> tuple[int, ...]:
    """Read "2+2" as (2, 2)."""
    if not re.fullmatch(r"[1-9]\d*(\+[1-9]\d*)*", text.strip()):
        raise InputError(f"'{text}' is not a condition; write a number of skills like 4, or a sum like 2+2")
    return tuple(map(int, text.strip().split("+")))


@lru_cache(maxsize=16)
def random_trial(world: Crafting, condition: str, episodes: int, seed: int, extras: str) -> Trial:
    """Random tasks under a condition."""
    if episodes < 1:
        raise InputError(f"evaluate at least one episode; got {episodes}")
    sizes = parse_condition(condition)
    return make_trial(
        world, [world.sample_tasks((seed, 2, i), episodes, n, n) for i, n in enumerate(sizes)], seed, extras
    )


def make_trial(world: Crafting, parts: Sequence[Sequence[Task]], seed: int, extras: str = "discard") -> Trial:
    """Fresh references by the expert, without noise: for each part of the sum, a task for each episode."""
    shown, wanted = [], 0
    for i, tasks in enumerate(parts):
        first, last, done = world.ends(world.record(tasks, (seed, 3, i), 0.0, extras))
        shown.append((first, last))
        wanted = wanted + done
    whole = [sum(tasks, ()) for tasks in zip(*parts, strict=True)]
    return Trial(tuple(shown), world.scenes(whole, (seed, 4)), wanted, world.horizon(max(map(len, whole))))


def evaluate(
    agents: Sequence[Agent],
    world: Crafting,
    trial: Trial,
    seed: int = 0,
    greedy: bool = False,
    control: bool = False,
) -> list[Score]:
    """Score agents of one kind together, on the same episodes. `control`: each is shown another one's references."""
    shown = jax.tree.map(lambda leaf: np.roll(leaf, 1, axis=0), trial.shown) if control else trial.shown
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *agents)
    plans = _plans(stacked, shown)
    horizon = jnp.int32(trial.horizon)  # traced, so that one program serves all conditions
    results = _judge(stacked, world, plans, trial.scenes, trial.wanted, jax.random.key(seed), horizon, greedy)
    shares = [np.asarray(part).mean(axis=1) for part in results]
    return [Score(*map(float, cell), len(trial.wanted), trial.horizon) for cell in zip(*shares, strict=True)]


@eqx.filter_jit
def _plans(agents: Agent, shown: tuple[tuple[Any, Any], ...]) -> Any:
    """Each agent's sum of the references' plans. [agent, episode, …]"""
    return jax.vmap(lambda agent: agent.add([agent.encode(first, last) for first, last in shown]))(agents)


@eqx.filter_jit
def _judge(
    agents: Agent, world: Crafting, plans: Any, scenes: Any, wanted: Array, key: Array, horizon: Array, greedy: bool
) -> tuple[Array, Array, Array]:
    """Whether each agent in each episode succeeds, exactly, and stops. bool [agent, episode] each"""

    def judge(agent: Agent, plans: Any) -> tuple[Array, Array, Array]:
        return _rollout(agent, world, plans, scenes, wanted, key, horizon, greedy)

    return jax.vmap(judge)(agents, plans)


def _rollout(
    agent: Agent, world: Crafting, plans: Any, scenes: Any, wanted: Array, key: Array, horizon: Array, greedy: bool
) -> tuple[Array, Array, Array]:
    """One agent in all episodes, to the horizon."""
    beginning = jax.vmap(world.observe)(scenes)
    head, never = agent.policy.head, jnp.zeros(len(wanted), bool)

    def step(time: Array, carry: tuple) -> tuple:
        states, done, success, exact = carry
        outputs = agent.outputs(beginning, jax.vmap(world.observe)(states), plans)
        actions = head.greedy(outputs) if greedy else head.sample(outputs, jax.random.fold_in(key, time))
        states, skills = jax.vmap(world.step)(states, actions)
        done = done + (skills[:, None] == jnp.arange(wanted.shape[1]))
        now = jnp.all(done >= wanted, axis=1)
        exact = jnp.where(now & ~success, jnp.all(done == wanted, axis=1), exact)
        return states, done, success | now, exact

    _, done, success, exact = jax.lax.fori_loop(0, horizon, step, (scenes, jnp.zeros_like(wanted), never, never))
    return success, exact, exact & jnp.all(done == wanted, axis=1)
