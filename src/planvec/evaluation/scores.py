"""Evaluation: thousands of episodes at once, judged against what happened in their references.

A condition names what the plan is made of: "4" is one reference of four skills, "2+2" the sum of two references
of two skills each. Success: all that came about in the references has come about, at some moment within the horizon.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from planvec.agents import Agent
from planvec.agents.agent import EmbeddingAgent
from planvec.errors import InputError
from planvec.tasks import FRESH, Task, parse_condition
from planvec.worlds.protocol import HostedWorld, PureWorld, World, is_hosted


class Score(NamedTuple):
    """One cell of a results table; fractions of episodes."""

    success: float
    exact: float  # … and nothing else was done up to that moment
    stops: float  # … nor after it, to the horizon
    diverged: float  # their simulator broke down; they count as failures
    episodes: int
    horizon: int

    @property
    def ci95(self) -> tuple[float, float]:
        """The 95% interval of `success` (Wilson's)."""
        z, n, share = 1.96, self.episodes, self.success
        middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
        return max(0.0, middle - half), min(1.0, middle + half)

    def as_dict(self) -> dict[str, Any]:
        return self._asdict() | {"ci95": list(self.ci95)}


class OneTask(InputError):
    """There can be no control where all episodes are of the same task."""


class Trial(NamedTuple):
    """What a set of episodes begins with, and what is asked of it."""

    shown: tuple[tuple[Any, Any], ...]  # for each part of the sum, the references' (first, last) [episode, …]
    scenes: Any  # world states [episode]
    wanted: np.ndarray  # int32 [episode, …], what came about in the references: how often each skill was done, say
    horizon: int
    tasks: Sequence[Task]  # of all parts together


@lru_cache(maxsize=16)
def random_trial(world: World, condition: str, episodes: int, seed: int, extras: str) -> Trial:
    """Random tasks under a condition."""
    if episodes < 1:
        raise InputError(f"evaluate at least one episode; got {episodes}")
    return make_trial(world, world.sample_parts((seed, FRESH + 2), episodes, parse_condition(condition)), seed, extras)


def make_trial(world: World, parts: Sequence[Sequence[Task]], seed: int, extras: str = "discard") -> Trial:
    """Fresh references by the expert, without noise: for each part of the sum, a task for each episode."""
    if not parts[0]:
        raise InputError("evaluate at least one episode")
    shown, wanted = [], 0
    for i, tasks in enumerate(parts):
        first, last, done = world.ends(world.record(tasks, (seed, FRESH + 3, i), 0.0, extras))
        shown.append((first, last))
        wanted = wanted + done
    whole = [sum(tasks, ()) for tasks in zip(*parts, strict=True)]
    horizon = world.horizon([max(map(len, tasks)) for tasks in parts])
    return Trial(tuple(shown), world.scenes(whole, (seed, FRESH + 4)), wanted, horizon, whole)


def evaluate(
    agents: Sequence[Agent],
    world: World,
    trial: Trial,
    seed: int = 0,
    greedy: bool = False,
    control: bool = False,
    centred: bool = False,
) -> list[Score]:
    """Score agents of one kind together, on the same episodes.

    `control`: shown the references of another task. `centred`: the plan of doing nothing is once in a sum of plans, as
    it is in a single one, and not with every part.
    """
    if centred and not isinstance(agents[0], EmbeddingAgent):
        raise InputError("a model without plan vectors (naive) has no plan of nothing to take away")
    others = np.array(strangers(trial.tasks)) if control else slice(None)
    shown = jax.tree.map(lambda leaf: leaf[others], trial.shown)
    bare = [replace(agent, probe=None) for agent in agents]  # not all of them may have one
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *bare)
    judge = _judge_hosted if is_hosted(world) else _judge_pure
    results = judge(stacked, world, sum_plans(stacked, shown, centred), trial, jax.random.key(seed), greedy)
    shares = [np.asarray(part).mean(axis=1) for part in results]
    return [Score(*map(float, cell), len(trial.wanted), trial.horizon) for cell in zip(*shares, strict=True)]


def strangers(tasks: Sequence[Task]) -> list[int]:
    """For each task where the next one of other skills is."""
    skills = list(map(sorted, tasks))
    if skills.count(skills[0]) == len(skills):
        raise OneTask("all episodes are of one task: there is no other to show in its place")
    places = list(range(len(skills)))
    return [next(i for i in (*places[here:], *places) if skills[i] != own) for here, own in enumerate(skills)]


@eqx.filter_jit
def sum_plans(agents: Agent, shown: tuple[tuple[Any, Any], ...], centred: bool) -> Any:
    """Each agent's sum of the references' plans. [agent, episode, …]"""

    def plans(agent: Agent) -> Any:
        total = agent.add([agent.encode(first, last) for first, last in shown])
        nothing = [agent.encode(first, first).mean(axis=0) for first, _ in shown[1:] if centred]
        return total - sum(nothing) if nothing else total

    return jax.vmap(plans)(agents)


Judged = tuple[Any, Any, Any, Any]  # whether agents succeed, exactly, and stop; diverged. bool [agent, episode] each


def _judge_pure(agents: Agent, world: PureWorld, plans: Any, trial: Trial, key: Array, greedy: bool) -> Judged:
    """All steps of all episodes in one program."""
    horizon = jnp.int32(trial.horizon)  # traced, so that the program serves all conditions
    judged = _rollouts(agents, world, plans, trial.scenes, trial.wanted, key, horizon, greedy)
    return *judged, np.zeros_like(judged[0])


@eqx.filter_jit
def _rollouts(
    agents: Agent, world: PureWorld, plans: Any, scenes: Any, wanted: Array, key: Array, horizon: Array, greedy: bool
) -> tuple[Array, Array, Array]:
    def rollout(agent: Agent, plans: Any) -> tuple[Array, Array, Array]:
        return _rollout(agent, world, plans, scenes, wanted, key, horizon, greedy)

    return jax.vmap(rollout)(agents, plans)


def _rollout(
    agent: Agent, world: PureWorld, plans: Any, scenes: Any, wanted: Array, key: Array, horizon: Array, greedy: bool
) -> tuple[Array, Array, Array]:
    """One agent in all episodes, to the horizon."""
    beginning, never = jax.vmap(world.observe)(scenes), jnp.zeros(len(wanted), bool)

    def step(time: Array, carry: tuple) -> tuple:
        states, done, success, exact = carry
        now = jax.vmap(world.observe)(states)
        actions = agent.choose(beginning, now, plans, jax.random.fold_in(key, time), greedy)
        states, skills = jax.vmap(world.step)(states, actions)
        done = done + (skills[:, None] == jnp.arange(wanted.shape[1]))
        now_done = jnp.all(done >= wanted, axis=1)
        exact = jnp.where(now_done & ~success, jnp.all(done == wanted, axis=1), exact)
        return states, done, success | now_done, exact

    _, done, success, exact = jax.lax.fori_loop(0, horizon, step, (scenes, jnp.zeros_like(wanted), never, never))
    return success, exact, exact & jnp.all(done == wanted, axis=1)


def _judge_hosted(agents: Agent, world: HostedWorld, plans: Any, trial: Trial, key: Array, greedy: bool) -> Judged:
    """A step of all episodes of all agents at a time: one jitted call for the actions, then the simulators."""
    count = len(jax.tree.leaves(agents)[0])
    shape = (count, len(trial.wanted))
    wanted = np.concatenate([trial.wanted] * count)
    success, exact, sane = np.zeros(len(wanted), bool), np.zeros(len(wanted), bool), np.ones(len(wanted), bool)
    with world.start(jax.tree.map(lambda leaf: np.concatenate([leaf] * count), trial.scenes)) as session:
        beginning = jax.device_put(_divide(session.observe(), shape))
        for time in range(trial.horizon):
            now = _divide(session.observe(), shape)
            actions = _choose_all(agents, beginning, now, plans, jax.random.fold_in(key, time), greedy)
            sane &= session.step(np.asarray(actions).reshape(len(wanted), *actions.shape[2:]))
            done, clean = session.judge(wanted)
            exact |= done & clean & sane & ~success
            success |= done & sane
    judged = success, exact, exact & done & clean & sane, ~sane
    return tuple(part.reshape(shape) for part in judged)


@eqx.filter_jit
def _choose_all(agents: Agent, first: Any, now: Any, plans: Any, key: Array, greedy: bool) -> Array:
    """[agent, episode, …]"""
    return jax.vmap(lambda agent, *seen: agent.choose(*seen, key, greedy))(agents, first, now, plans)


def _divide(tree: Any, shape: tuple[int, int]) -> Any:
    """[agent · episode, …] to [agent, episode, …]"""
    return jax.tree.map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), tree)
