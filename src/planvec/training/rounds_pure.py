"""Rounds of practice in pure worlds: episodes run on the accelerator with the policy inside, and go on from round to
round."""

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from planvec.agents.metric import Metric
from planvec.training import compilation, ppo
from planvec.training.ppo import Experience, Labels, Learner, Pool, Rules, Underway
from planvec.training.practice_config import PracticeConfig, given
from planvec.training.rounds import Figures, Practising, Programs, keys_of, make_optimizer, of_plan
from planvec.worlds.protocol import PureWorld


@cache
def programs(world: PureWorld, practice: PracticeConfig, dtype: Any, deterministic: bool) -> Programs:
    """One round, compiled."""
    rules = practice.rules
    jit = partial(jax.jit, compiler_options=compilation.options(deterministic))
    passes = given(practice.passes)
    updates = practice.rounds * practice.round * passes // rules.minibatch
    optimizer = make_optimizer(optax.linear_schedule(given(practice.learning_rate), 0.0, updates))

    @jit
    def act(learner: Learner, pool: Pool, metric: Metric, underway: Underway, key: Array) -> Any:
        return ppo.act(learner.cast(dtype), pool, metric, world, rules, underway, key)

    @jit
    def learn(learner: Learner, memory: Any, seen: Experience, reward: Array, last: Array, key: Array) -> Any:
        lessons = ppo.lessons(seen, reward, last, rules)
        return ppo.learn(learner, memory, lessons, world, rules, optimizer, dtype, key)

    gains = jit(partial(of_plan, rules=rules))
    count = jit(partial(tally, rules=rules))

    @jit
    def begin(pool: Pool, asked: Array, key: Array) -> tuple[Underway, Array]:
        envs = given(practice.envs)
        return ppo.begin(pool, world, key, envs), jnp.zeros((envs, asked.shape[1]), jnp.int32)

    def round(
        state: Practising, pool: Pool, metric: Metric, asked: Array, act_key: Array, learn_key: Array
    ) -> tuple[Practising, Figures]:
        underway, seen, last, labels = act(state.learner, pool, metric, state.underway, act_key)
        reward, figures = gains(seen)
        done, of_labels, exact = count(state.done, labels, asked)
        if practice.reward == "labels":
            reward = of_labels
        learner, memory, learned = state.learner, state.optimizer, {}
        for key in keys_of(learn_key, passes):
            learner, memory, learned = learn(learner, memory, seen, reward, last, key)
        figures = figures | learned | {"exact_by_labels": exact}
        return Practising(learner, memory, underway, done, state.step + 1), figures

    return Programs(optimizer, begin, round)


def tally(done: Array, labels: Labels, asked: Array, rules: Rules) -> tuple[Array, Array, Array]:
    """Skills counted: what has been done in the episodes under way; what that is worth, if labels are the reward; and
    the share of episodes that ended by a stop with exactly what was asked for done."""
    skills = jnp.arange(done.shape[1])

    def step(done: Array, row: Labels) -> tuple[Array, tuple[Array, Array]]:
        wanted = asked[row.which]
        hit = (row.skill[:, None] == skills) & ~row.stop[:, None]
        good = jnp.any(hit & (done < wanted), axis=1)
        bad = jnp.any(hit & (done >= wanted), axis=1)
        done = done + hit
        rest = jnp.sum(jnp.maximum(wanted - done, 0), axis=1)
        exact = row.stop & jnp.all(done == wanted, axis=1)
        ending = jnp.where(exact, 2 * rules.end_reward, -rules.end_cost * jnp.minimum(rest, rules.end_most))
        worth = 1.0 * good - 1.0 * bad - rules.step_cost + jnp.where(row.stop, ending, 0)
        return jnp.where(row.over[:, None], 0, done), (worth, exact)

    done, (worth, exact) = jax.lax.scan(step, done, labels)
    return done, worth, jnp.sum(exact) / jnp.maximum(jnp.sum(labels.over), 1)
