"""Rounds of practice in hosted worlds: whole episodes, begun together. At each step one call of the policy serves them
all, then the simulators of those that go on take a step.

Labels come in at one place, when the session is asked how its episodes ended: for the log alone.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from planvec.agents.metric import Metric
from planvec.training import compilation, ppo
from planvec.training.ppo import Experience, Learner, Lesson, Pool
from planvec.training.practice_config import PracticeConfig, given
from planvec.training.rounds import Figures, Practising, Programs, keys_of, make_optimizer, of_plan
from planvec.worlds.protocol import HostedWorld, Session, take

PyTree = Any

WARMUP = 20  # rounds, at most a tenth of all: an optimizer that does not know its gradients yet would undo much


class Look(NamedTuple):
    """What an agent sees at a moment, and what it tries. [env, …]"""

    now: PyTree
    left: Array  # float32 [env, embedding], of the plan
    length: Array  # of that, in skills
    action: Array
    stop: Array  # bool
    log_chance: Array
    value: Array


class Notes(NamedTuple):
    """A round as it was: what was seen, before each action and at the end; and which of that counts."""

    looks: Look  # [step + 1, env, …]
    over: np.ndarray  # bool [step, env], whether the episode ended
    counts: np.ndarray  # bool [step, env], whether it was still under way, and its simulator survived


class Acting(NamedTuple):
    """What acting takes besides a world."""

    look: Callable[..., Look]  # learner, metric, what was seen at first, plans, what is seen now, key
    blank: Callable[[Look, int], Look]  # room for so many looks like this
    note: Callable[[Look, Look, int], Look]  # the same with a look at its place


@cache
def programs(world: HostedWorld, practice: PracticeConfig, dtype: Any, deterministic: bool) -> Programs:
    """One round; all of it but the simulators compiled."""
    rules = practice.rules
    jit = partial(jax.jit, compiler_options=compilation.options(deterministic))
    acting = make_acting(dtype, deterministic)

    @jit
    def teach(looks: Look, over: Array, counts: Array) -> tuple[Lesson, Figures]:
        seen = experience(looks, over, counts)
        reward, figures = of_plan(seen, rules)
        return ppo.lessons(seen, reward, looks.value[-1], rules), figures

    @jit
    def learn(learner: Learner, memory: Any, lessons: Lesson, step: Array, key: Array) -> Any:
        optimizer = make_optimizer(_rate(step, practice.rounds, given(practice.learning_rate)))
        return ppo.learn(learner, memory, lessons, world, rules, optimizer, dtype, key)

    def round(
        state: Practising, pool: Pool, metric: Metric, asked: np.ndarray, act_key: Array, learn_key: Array
    ) -> tuple[Practising, Figures]:
        draw_key, step_key = jax.random.split(act_key)
        which = np.asarray(jax.random.randint(draw_key, (given(practice.envs),), 0, len(pool.horizons)))
        longest = int(np.max(pool.horizons))
        notes, exact = act(acting, state.learner, take(pool, which), metric, world, asked[which], longest, step_key)
        lessons, figures = teach(*notes)
        learner, memory, learned = state.learner, state.optimizer, {}
        for key in keys_of(learn_key, given(practice.passes)):
            learner, memory, learned = learn(learner, memory, lessons, state.step, key)
        figures = figures | learned | {"exact_by_labels": exact}
        return Practising(learner, memory, None, None, state.step + 1), figures

    return Programs(make_optimizer(given(practice.learning_rate)), lambda pool, asked, key: (None, None), round)


def _rate(step: Array, rounds: int, largest: float) -> Array:
    """The step size in a round: soon the largest, then along a line to zero."""
    warmup = max(1, min(WARMUP, rounds // 10))
    return largest * jnp.minimum(1, (step + 1) / warmup) * (1 - step / rounds)


@cache
def make_acting(dtype: Any, deterministic: bool) -> Acting:
    """Compiled."""
    jit = partial(jax.jit, compiler_options=compilation.options(deterministic))

    @jit
    def look(learner: Learner, metric: Metric, first: PyTree, plans: Array, now: PyTree, key: Array) -> Look:
        learner = learner.cast(dtype)
        left = plans - learner.agent.encode(first, now)
        action, stop, log_chance, value = ppo.decide(learner, now, left, *jax.random.split(key))
        return Look(now, left, metric(left), action, stop, log_chance, value)

    @partial(jit, static_argnums=1)
    def blank(look: Look, many: int) -> Look:
        return jax.tree.map(lambda leaf: jnp.zeros((many, *leaf.shape), leaf.dtype), look)

    @partial(jit, donate_argnums=0)
    def note(looks: Look, look: Look, step: int) -> Look:
        return jax.tree.map(lambda every, one: every.at[step].set(one), looks, look)

    return Acting(look, blank, note)


def act(
    acting: Acting,
    learner: Learner,
    episodes: Pool,
    metric: Metric,
    world: HostedWorld,
    asked: np.ndarray,
    longest: int,
    key: Array,
) -> tuple[Notes, float]:
    """All episodes until each has stopped, come to its horizon, or lost its simulator. And the share of them that ended
    by a stop with exactly what was asked for done."""
    envs = len(episodes.horizons)
    plans = jnp.asarray(episodes.plans)
    over, counts = np.zeros((2, longest, envs), bool)
    going, stopped = np.ones(envs, bool), np.zeros(envs, bool)
    looks: Any = None
    with world.start(episodes.scenes) as session:
        first = now = _seen(session)
        for step in range(longest + 1):
            look = acting.look(learner, metric, first, plans, now, jax.random.fold_in(key, step))
            looks = acting.note(acting.blank(look, longest + 1) if looks is None else looks, look, step)
            if not going.any():
                break
            action, stop = jax.device_get((look.action, look.stop))
            survived = session.step(action, going & ~stop) if (going & ~stop).any() else going
            counts[step] = going & (stop | survived)
            over[step] = counts[step] & (stop | (step + 1 >= episodes.horizons))
            stopped |= going & stop
            going = counts[step] & ~over[step]
            now = _seen(session)
        done, clean = session.judge(asked)
    exact = float(np.sum(stopped & done & clean) / max(np.sum(over), 1))
    return Notes(looks, over, counts), exact


def experience(looks: Look, over: Array, counts: Array) -> Experience:
    """A round as all rounds are: [step, env, …]"""
    before = take(looks, slice(-1))
    return Experience(
        states=before.now,
        left=before.left,
        action=before.action,
        stop=before.stop,
        log_chance=before.log_chance,
        value=before.value,
        before=before.length,
        after=looks.length[1:],
        over=over,
        counts=counts,
    )


def _seen(session: Session) -> PyTree:
    """What is seen, on the accelerator: a copy, whatever the session does with its own."""
    return jax.tree.map(jnp.array, session.observe())
