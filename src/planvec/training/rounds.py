"""What rounds of practice are in all worlds: what changes in them, what is gained in them, how weights follow."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from planvec.agents.agent import Agent
from planvec.training import ppo
from planvec.training.ppo import Experience, Learner, Rules, Underway

Figures = dict[str, Any]  # what a round tells of itself, by name

ENDED = 0.5  # less of a plan than this much of a skill is nothing left


class Practising(NamedTuple):
    """All that changes in practice."""

    learner: Learner
    optimizer: optax.OptState
    underway: Underway | None  # none in hosted worlds, where a round is whole episodes
    done: Array | None  # int32 [env, skill], how often each skill was done in the episodes under way: for the log
    step: Array  # int32 [], rounds

    @property
    def agent(self) -> Agent:
        return self.learner.agent


class Programs(NamedTuple):
    """Rounds in one kind of world, compiled."""

    optimizer: optax.GradientTransformation
    begin: Callable[..., tuple[Underway | None, Array | None]]  # pool, what was asked for, key: what is under way
    round: Callable[..., tuple[Practising, Figures]]  # state, pool, metric, what was asked for, two keys


def make_optimizer(rate: float | Array | optax.Schedule) -> optax.GradientTransformation:
    return optax.chain(optax.clip_by_global_norm(0.5), optax.adam(rate, eps=1e-5))


def of_plan(seen: Experience, rules: Rules) -> tuple[Array, Figures]:
    """The reward of a round, [step, env], and what it says of the agent."""
    reward = ppo.plan_reward(seen, rules)
    ended = jnp.maximum(jnp.sum(seen.over), 1)
    exactly = jnp.sum(seen.over & seen.stop & (seen.before < ENDED)) / ended
    return reward, {
        "reward": jnp.mean(reward, where=seen.counts),
        "return": jnp.sum(reward, where=seen.counts) / ended,
        "exact_by_plan": exactly,
        "episodes": jnp.sum(seen.over),
        "actions": reward.size if seen.counts is None else jnp.sum(seen.counts),
    }


def keys_of(key: Array, passes: int) -> Array:
    """A key for each pass over what a round has taught."""
    return key[None] if passes == 1 else jax.random.split(key, passes)
