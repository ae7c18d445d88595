"""Practice, one round of it: many episodes a stretch further, then a step of the policy towards what went well.

Proximal policy optimisation (Schulman et al. 2017). The encoder stays as it is; the policy learns, and beside it an
estimate of what is still to be gained. What is learned from are plans and observations. Labels, which skills an action
did, come out of a round as well, for whoever wants to count them; they go into nothing here.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from planvec.agents.agent import Difference
from planvec.agents.encoders import Linear
from planvec.agents.metric import Metric
from planvec.agents.policies import Ending, Stopping
from planvec.worlds.protocol import PureWorld, World, take

PyTree = Any


class Rules(NamedTuple):
    """What is worth how much, and how carefully to learn. Constants of the program."""

    rollout: int  # actions of each episode in a round
    minibatch: int
    discount: float = 0.995  # γ
    trace: float = 0.95  # λ
    clip: float = 0.2  # how far a chance may move in a round, as a share
    entropy: float = 0.003  # its weight
    estimate: float = 0.5  # the weight of the estimate's error
    step_cost: float = 0.005
    most: float = 2.0  # that one action can gain or lose, in skills
    end_reward: float = 0.5
    end_cost: float = 0.2  # for each skill that is left at a stop …
    end_most: float = 5.0  # … up to so many


class Pool(NamedTuple):
    """What episodes begin with. Nothing here says which skills are asked for."""

    scenes: PyTree  # [episode, …]
    plans: Array | np.ndarray  # float32 [episode, embedding]
    horizons: Array | np.ndarray  # int32 [episode]


class Learner(eqx.Module):
    """What practice changes: an agent's policy, and an estimate of what is still to be gained."""

    agent: Difference
    value: Linear

    @property
    def head(self) -> Stopping:
        head = self.agent.policy.head
        assert isinstance(head, Stopping), "an agent that practises can stop"
        return head

    def look(self, now: PyTree, left: Array) -> tuple[Ending, Array]:
        """The head's outputs, and the estimate: (N,)"""
        hidden = self.agent.policy.hidden((now,), left)
        return self.head(hidden, now), self.value(hidden, out=jnp.float32)[:, 0]

    def cast(self, dtype: Any) -> "Learner":
        return Learner(self.agent.cast(dtype), jax.tree.map(lambda leaf: leaf.astype(dtype), self.value))


class Underway(NamedTuple):
    """Episodes under way."""

    which: Array  # int32 [env], of the pool
    states: PyTree  # [env, …]
    left: Array  # float32 [env, embedding], of the plan
    time: Array  # int32 [env], actions done


class Experience(NamedTuple):
    """What was seen and done in a round. [step, env, …]"""

    states: PyTree  # of a pure world; of a hosted one, what was seen of them
    left: Array
    action: Array
    stop: Array  # bool, whether the agent stopped in place of an action
    log_chance: Array  # of what it did
    value: Array  # what it estimated
    before: Array  # how much of the plan was left, in skills
    after: Array
    over: Array  # bool, whether the episode ended
    counts: Array | None = None  # bool, whether this was a moment of an episode at all; where there is none, all were


class Labels(NamedTuple):
    """For counting, and for nothing else. [step, env]"""

    which: Array  # int32, of the pool
    skill: Array  # int32, what the action did
    stop: Array
    over: Array


def begin(pool: Pool, world: PureWorld, key: Array, envs: int) -> Underway:
    """Episodes drawn from the pool."""
    which = jax.random.randint(key, (envs,), 0, len(pool.horizons))
    scenes = jax.tree.map(lambda leaf: leaf[which], pool.scenes)
    return Underway(which, scenes, pool.plans[which], jnp.zeros(envs, jnp.int32))


def act(
    learner: Learner, pool: Pool, metric: Metric, world: PureWorld, rules: Rules, underway: Underway, key: Array
) -> tuple[Underway, Experience, Array, Labels]:
    """A stretch of all episodes; those that end make room for others. And what is estimated at its end."""
    see = jax.vmap(world.decode)

    def step(underway: Underway, key: Array) -> tuple[Underway, tuple[Experience, Labels]]:
        action_key, stop_key, next_key = jax.random.split(key, 3)
        action, stop, log_chance, value = decide(learner, see(underway.states), underway.left, action_key, stop_key)
        moved, skill = jax.vmap(world.step)(underway.states, action)
        states = _pick(stop, underway.states, moved)
        scenes = jax.tree.map(lambda leaf: leaf[underway.which], pool.scenes)
        left = pool.plans[underway.which] - learner.agent.encode(see(scenes), see(states))
        time = underway.time + 1
        over = stop | (time >= pool.horizons[underway.which])
        seen = Experience(
            states=underway.states,
            left=underway.left,
            action=action,
            stop=stop,
            log_chance=log_chance,
            value=value,
            before=metric(underway.left),
            after=metric(left),
            over=over,
        )
        labels = Labels(underway.which, skill.astype(jnp.int32), stop, over)
        fresh = begin(pool, world, next_key, len(over))
        return _pick(over, fresh, Underway(underway.which, states, left, time)), (seen, labels)

    underway, (experience, labels) = jax.lax.scan(step, underway, jax.random.split(key, rules.rollout))
    _, value = learner.look(see(underway.states), underway.left)
    return underway, experience, value, labels


def decide(
    learner: Learner, now: PyTree, left: Array, action_key: Array, stop_key: Array
) -> tuple[Array, Array, Array, Array]:
    """What is tried: an action, whether to stop in its place, the logarithm of the chance of that; and the estimate."""
    outputs, value = learner.look(now, left)
    action = learner.head.explore(outputs, action_key)
    stop = jax.random.bernoulli(stop_key, jax.nn.sigmoid(outputs.stop))
    return action, stop, learner.head.log_chance(outputs, action, stop), value


def plan_reward(experience: Experience, rules: Rules) -> Array:
    """How much of the plan has gone away, less a little for the time; at a stop, how little is left. [step, env]"""
    gained = jnp.clip(experience.before - experience.after, -rules.most, rules.most)
    ending = rules.end_reward - rules.end_cost * jnp.minimum(experience.before, rules.end_most)
    return gained - rules.step_cost + jnp.where(experience.stop, ending, 0)


def advantages(
    reward: Array, value: Array, over: Array, last: Array, rules: Rules, counts: Array | None = None
) -> Array:
    """How much more came of each action than was estimated (Schulman et al. 2016); of a moment that does not count,
    nothing, but for the estimate there. [step, env]"""

    def back(carried: tuple[Array, Array], row: tuple[Array, Array, Array, Any]) -> tuple[tuple[Array, Array], Array]:
        advantage, next_value = carried
        reward, value, over, counts = row
        goes_on = rules.discount * (1.0 - over)
        surprise = reward + goes_on * next_value - value
        advantage = surprise + goes_on * rules.trace * advantage
        if counts is not None:
            advantage = jnp.where(counts, advantage, 0)
        return (advantage, value), advantage

    _, result = jax.lax.scan(back, (jnp.zeros_like(last), last), (reward, value, over, counts), reverse=True)
    return result


class Lesson(NamedTuple):
    """What one action teaches. [step · env, …]"""

    states: PyTree
    left: Array
    action: Array
    stop: Array
    log_chance: Array
    advantage: Array
    target: Array  # what the estimate should have been
    counts: Array | None = None  # bool, as in Experience


def loss(learner: Learner, lesson: Lesson, world: World, rules: Rules, dtype: Any) -> tuple[Array, dict]:
    """−min(ρ·A, clip(ρ)·A), ρ being how much likelier the action has become; the estimate's error; less the entropy"""
    head = learner.head
    seen = jax.vmap(world.decode)(lesson.states) if isinstance(world, PureWorld) else lesson.states
    outputs, value = learner.cast(dtype).look(seen, lesson.left)
    log_ratio = head.log_chance(outputs, lesson.action, lesson.stop) - lesson.log_chance
    ratio = jnp.exp(log_ratio)
    clipped = jnp.clip(ratio, 1 - rules.clip, 1 + rules.clip)
    mean = partial(jnp.mean, where=lesson.counts)
    policy = -mean(jnp.minimum(ratio * lesson.advantage, clipped * lesson.advantage))
    error = mean(jnp.square(value - lesson.target))
    entropy = mean(head.head.entropy(outputs.action))
    kl = mean(ratio - 1 - log_ratio)
    figures = {"policy_loss": policy, "value_loss": error, "entropy": entropy, "kl": kl}
    return policy + rules.estimate * error - rules.entropy * entropy, figures


def learn(
    learner: Learner,
    memory: Any,
    lessons: Lesson,
    world: World,
    rules: Rules,
    optimizer: optax.GradientTransformation,
    dtype: Any,
    key: Array,
) -> tuple[Learner, Any, dict]:
    """A step of the optimizer for each minibatch, every lesson once."""
    changing, fixed = eqx.partition(learner, trainable(learner))

    def step(carried: tuple[Any, Any], lesson: Lesson) -> tuple[tuple[Any, Any], dict]:
        changing, memory = carried
        gradient = jax.grad(
            lambda changing: loss(eqx.combine(changing, fixed), lesson, world, rules, dtype), has_aux=True
        )
        gradients, figures = gradient(changing)
        changes, memory = optimizer.update(gradients, memory, changing)
        return (eqx.apply_updates(changing, changes), memory), figures

    each = _each_of_all if lessons.counts is None else _each_that_counts
    (changing, memory), figures = each(step, (changing, memory), lessons, rules.minibatch, key)
    return eqx.combine(changing, fixed), memory, figures


Step = Callable[[Any, Lesson], tuple[Any, dict]]


def _each_of_all(step: Step, carried: Any, lessons: Lesson, minibatch: int, key: Array) -> tuple[Any, dict]:
    """A step with each minibatch of the lessons; and the means of what the steps tell."""
    order = jax.random.permutation(key, len(lessons.stop)).reshape(-1, minibatch)
    carried, figures = jax.lax.scan(lambda carried, rows: step(carried, take(lessons, rows)), carried, order)
    return carried, jax.tree.map(jnp.mean, figures)


def _each_that_counts(step: Step, carried: Any, lessons: Lesson, minibatch: int, key: Array) -> tuple[Any, dict]:
    """The same with the lessons that count. How many these are is no constant of the program: they are dealt out like
    cards, to as few minibatches as can hold them, and what then lacks in one of them counts for nothing."""
    assert lessons.counts is not None
    shuffled = jax.random.permutation(key, len(lessons.stop))
    order = shuffled[jnp.argsort(~lessons.counts[shuffled])]
    many = jnp.sum(lessons.counts)
    hands = (many + minibatch - 1) // minibatch

    def dealt(hand: Array | int) -> Lesson:
        place = hand + hands * jnp.arange(minibatch)
        return take(lessons, order[jnp.minimum(place, many - 1)])._replace(counts=place < many)

    def further(hand: Array, before: tuple[Any, dict]) -> tuple[Any, dict]:
        carried, sums = before
        carried, figures = step(carried, dealt(hand))
        return carried, jax.tree.map(jnp.add, sums, figures)

    _, outline = jax.eval_shape(step, carried, dealt(0))
    nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), outline)
    carried, sums = jax.lax.fori_loop(0, hands, further, (carried, nothing))
    return carried, jax.tree.map(lambda total: total / jnp.maximum(hands, 1), sums)


def trainable(learner: Learner) -> Any:
    """Which leaves practice changes: all but the encoder's."""
    spec = jax.tree.map(eqx.is_inexact_array, learner)
    frozen = jax.tree.map(lambda _: False, learner.agent.encoder)
    return eqx.tree_at(lambda learner: learner.agent.encoder, spec, frozen)


def lessons(experience: Experience, reward: Array, last: Array, rules: Rules) -> Lesson:
    """What a round teaches, its advantages made comparable."""
    counts = experience.counts
    advantage = advantages(reward, experience.value, experience.over, last, rules, counts)
    scaled = (advantage - jnp.mean(advantage, where=counts)) / (jnp.std(advantage, where=counts) + 1e-6)
    rows = Lesson(
        states=experience.states,
        left=experience.left,
        action=experience.action,
        stop=experience.stop,
        log_chance=experience.log_chance,
        advantage=scaled,
        target=advantage + experience.value,
        counts=counts,
    )
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), rows)


def _pick(which: Array, new: PyTree, old: PyTree) -> PyTree:
    """For each env one or the other."""

    def pick(new: Array, old: Array) -> Array:
        return jnp.where(which.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    return jax.tree.map(pick, new, old)
