"""Practice, one round of it: many episodes a stretch further, then a step of the policy towards what went well.

Proximal policy optimisation (Schulman et al. 2017). The encoder stays as it is; the policy learns, and beside it an
estimate of what is still to be gained. What is learned from are plans and observations. Labels, which skills an action
did, come out of a round as well, for whoever wants to count them; they go into nothing here.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from planvec.agents.agent import Difference
from planvec.agents.encoders import Linear
from planvec.agents.metric import Metric
from planvec.agents.policies import Ending, Stopping
from planvec.worlds.protocol import PureWorld

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
    plans: Array  # float32 [episode, embedding]
    horizons: Array  # int32 [episode]


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

    states: PyTree
    left: Array
    action: Array
    stop: Array  # bool, whether the agent stopped in place of an action
    log_chance: Array  # of what it did
    value: Array  # what it estimated
    before: Array  # how much of the plan was left, in skills
    after: Array
    over: Array  # bool, whether the episode ended


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
        outputs, value = learner.look(see(underway.states), underway.left)
        head = learner.head
        action = head.sample(outputs, action_key)
        stop = jax.random.bernoulli(stop_key, jax.nn.sigmoid(outputs.stop))
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
            log_chance=head.log_chance(outputs, action, stop),
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


def plan_reward(experience: Experience, rules: Rules) -> Array:
    """How much of the plan has gone away, less a little for the time; at a stop, how little is left. [step, env]"""
    gained = jnp.clip(experience.before - experience.after, -rules.most, rules.most)
    ending = rules.end_reward - rules.end_cost * jnp.minimum(experience.before, rules.end_most)
    return gained - rules.step_cost + jnp.where(experience.stop, ending, 0)


def advantages(reward: Array, value: Array, over: Array, last: Array, rules: Rules) -> Array:
    """How much more came of each action than was estimated (Schulman et al. 2016). [step, env]"""

    def back(carried: tuple[Array, Array], row: tuple[Array, Array, Array]) -> tuple[tuple[Array, Array], Array]:
        advantage, next_value = carried
        reward, value, over = row
        goes_on = rules.discount * (1.0 - over)
        surprise = reward + goes_on * next_value - value
        advantage = surprise + goes_on * rules.trace * advantage
        return (advantage, value), advantage

    _, result = jax.lax.scan(back, (jnp.zeros_like(last), last), (reward, value, over), reverse=True)
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


def loss(learner: Learner, lesson: Lesson, world: PureWorld, rules: Rules, dtype: Any) -> tuple[Array, dict]:
    """−min(ρ·A, clip(ρ)·A), ρ being how much likelier the action has become; the estimate's error; less the entropy"""
    head = learner.head
    outputs, value = learner.cast(dtype).look(jax.vmap(world.decode)(lesson.states), lesson.left)
    log_ratio = head.log_chance(outputs, lesson.action, lesson.stop) - lesson.log_chance
    ratio = jnp.exp(log_ratio)
    clipped = jnp.clip(ratio, 1 - rules.clip, 1 + rules.clip)
    policy = -jnp.mean(jnp.minimum(ratio * lesson.advantage, clipped * lesson.advantage))
    error = jnp.mean(jnp.square(value - lesson.target))
    entropy = jnp.mean(head.head.entropy(outputs.action))
    kl = jnp.mean(ratio - 1 - log_ratio)
    figures = {"policy_loss": policy, "value_loss": error, "entropy": entropy, "kl": kl}
    return policy + rules.estimate * error - rules.entropy * entropy, figures


def learn(
    learner: Learner,
    memory: Any,
    lessons: Lesson,
    world: PureWorld,
    rules: Rules,
    optimizer: optax.GradientTransformation,
    dtype: Any,
    key: Array,
) -> tuple[Learner, Any, dict]:
    """A step of the optimizer for each minibatch, every lesson once."""
    changing, fixed = eqx.partition(learner, trainable(learner))
    order = jax.random.permutation(key, len(lessons.stop)).reshape(-1, rules.minibatch)

    def step(carried: tuple[Any, Any], rows: Array) -> tuple[tuple[Any, Any], dict]:
        changing, memory = carried
        lesson = jax.tree.map(lambda leaf: leaf[rows], lessons)
        gradient = jax.grad(
            lambda changing: loss(eqx.combine(changing, fixed), lesson, world, rules, dtype), has_aux=True
        )
        gradients, figures = gradient(changing)
        changes, memory = optimizer.update(gradients, memory, changing)
        return (eqx.apply_updates(changing, changes), memory), figures

    (changing, memory), figures = jax.lax.scan(step, (changing, memory), order)
    return eqx.combine(changing, fixed), memory, jax.tree.map(jnp.mean, figures)


def trainable(learner: Learner) -> Any:
    """Which leaves practice changes: all but the encoder's."""
    spec = jax.tree.map(eqx.is_inexact_array, learner)
    frozen = jax.tree.map(lambda _: False, learner.agent.encoder)
    return eqx.tree_at(lambda learner: learner.agent.encoder, spec, frozen)


def lessons(experience: Experience, reward: Array, last: Array, rules: Rules) -> Lesson:
    """What a round teaches, its advantages made comparable."""
    advantage = advantages(reward, experience.value, experience.over, last, rules)
    scaled = (advantage - jnp.mean(advantage)) / (jnp.std(advantage) + 1e-6)
    rows = Lesson(
        states=experience.states,
        left=experience.left,
        action=experience.action,
        stop=experience.stop,
        log_chance=experience.log_chance,
        advantage=scaled,
        target=advantage + experience.value,
    )
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), rows)


def _pick(which: Array, new: PyTree, old: PyTree) -> PyTree:
    """For each env one or the other."""

    def pick(new: Array, old: Array) -> Array:
        return jnp.where(which.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    return jax.tree.map(pick, new, old)
