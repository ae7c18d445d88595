"""A round of practice, against slow and obvious versions of each of its parts."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import lamps
from oracles.lamps import Lamps, untrained

from planvec.agents.agent import Difference
from planvec.agents.encoders import Linear
from planvec.agents.metric import Metric
from planvec.training import ppo
from planvec.training.ppo import Experience, Learner, Lesson, Pool, Rules
from planvec.worlds.protocol import take

WORLD = Lamps()
STEPS, ENVS = 24, 4
RULES = Rules(rollout=STEPS, minibatch=8)
METRIC = Metric(factor=jax.random.normal(jax.random.key(9), (8, 8)), noise=jnp.float32(0))


@cache
def learner():
    return Learner(untrained(), Linear(128, 1, fan=-2, key=jax.random.key(4)))


@jax.jit
def look(one, states, left):
    return one.look(jax.vmap(WORLD.observe)(states), left)


def pool():
    """Four episodes with horizons of their own."""
    scenes = WORLD.scenes([("A",), ("B", "C"), ("E",), ("D",)], (3,))
    plans = jax.random.normal(jax.random.key(5), (4, 8))
    return Pool(jax.tree.map(jnp.asarray, scenes), plans, jnp.array([3, 5, 7, 4]))


def numbers(count, low=-3.0, high=3.0):
    return st.lists(st.floats(low, high, width=32), min_size=count, max_size=count)


def bools(count):
    return st.lists(st.booleans(), min_size=count, max_size=count)


def experience(**given):
    """What is given, and nothing else."""
    return Experience(**dict.fromkeys(Experience._fields) | given)


# Acting.


@pytest.fixture(scope="module")
def acted():
    """A stretch of episodes under way, and what was seen of it."""
    one, these = learner(), pool()
    underway = ppo.begin(these, WORLD, jax.random.key(1), ENVS)
    act = jax.jit(lambda one, these, underway, key: ppo.act(one, these, METRIC, WORLD, RULES, underway, key))
    return one, these, underway, act(one, these, underway, jax.random.key(2))


@pytest.mark.parametrize("env", range(ENVS))
def test_acting_is_stepping_the_world_by_hand(acted, env):
    """State by state, for the actions that were chosen: what is left of the plan, and when an episode ends."""
    one, these, underway, (after, seen, _, labels) = acted
    seen, labels, these = jax.tree.map(np.asarray, (seen, labels, these))
    which, time, ends = int(underway.which[env]), 0, []
    state, left = take(these.scenes, which), these.plans[which]
    for step in range(STEPS):
        row = jax.tree.map(lambda leaf, step=step: leaf[step, env], seen)
        assert labels.which[step, env] == which
        jax.tree.map(np.testing.assert_array_equal, row.states, state)
        np.testing.assert_allclose(row.left, left, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(row.before, np.linalg.norm(left @ np.asarray(METRIC.factor)), rtol=1e-3)
        lit, place, skill = tuple(state["lit"].tolist()), int(state["place"]), None
        if not row.stop:
            lit, place, skill = lamps.step(lit, place, int(row.action))
            assert labels.skill[step, env] == (lamps.LAMPS if skill is None else skill)
        state = {"lit": np.array(lit, np.uint8), "place": np.uint8(place)}
        first, now = (np.asarray(WORLD.observe(one))[None] for one in (take(these.scenes, which), state))
        left = these.plans[which] - np.asarray(one.agent.encode(first, now))[0]
        np.testing.assert_allclose(row.after, np.linalg.norm(left @ np.asarray(METRIC.factor)), rtol=1e-3)
        time += 1
        assert row.over == labels.over[step, env] == (row.stop or time == these.horizons[which])
        if row.over:
            ends.append("stop" if row.stop else "horizon")
            which = int(labels.which[step + 1, env] if step + 1 < STEPS else after.which[env])
            state, left, time = take(these.scenes, which), these.plans[which], 0
    jax.tree.map(np.testing.assert_array_equal, take(after.states, env), state)
    np.testing.assert_allclose(after.left[env], left, rtol=1e-4, atol=1e-4)
    assert int(after.time[env]) == time and int(after.which[env]) == which
    assert {"stop", "horizon"} <= set(ends)


def test_a_stop_leaves_the_world_as_it_is(acted):
    """Whatever action was drawn beside it: some would have done a skill."""
    *_, (_, seen, _, labels) = acted
    assert (seen.stop & (labels.skill < lamps.LAMPS)).any() and not seen.stop.all()
    np.testing.assert_array_equal(seen.after[seen.stop], seen.before[seen.stop])
    assert (seen.after != seen.before)[~seen.stop].any()


def test_fresh_episodes_come_from_all_of_the_pool(acted):
    _, these, _, (_, seen, _, labels) = acted
    begun = np.pad(np.asarray(labels.over), ((1, 0), (0, 0)), constant_values=True)[:-1]
    which = np.asarray(labels.which)
    assert set(which[begun]) == set(range(4))
    jax.tree.map(
        lambda state, scene: np.testing.assert_array_equal(state[begun], scene[which[begun]]),
        jax.tree.map(np.asarray, seen.states),
        jax.tree.map(np.asarray, these.scenes),
    )
    np.testing.assert_array_equal(np.asarray(seen.left)[begun], np.asarray(these.plans)[which[begun]])


def test_what_was_done_had_the_chance_that_is_noted(acted):
    one, _, _, (after, seen, last, _) = acted
    rows = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), seen)
    outputs, value = look(one, rows.states, rows.left)
    logits, stop = np.asarray(outputs.action, np.float64), 1 / (1 + np.exp(-np.asarray(outputs.stop, np.float64)))
    actions = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    chance = np.where(rows.stop, stop, (1 - stop) * actions[np.arange(len(stop)), rows.action])
    np.testing.assert_allclose(np.exp(rows.log_chance), chance, rtol=1e-3)
    np.testing.assert_allclose(rows.value, value, rtol=1e-3, atol=1e-4)
    _, at_the_end = look(one, after.states, after.left)
    np.testing.assert_allclose(last, at_the_end, rtol=1e-3, atol=1e-4)


# What it is worth.


@given(numbers(6, 0, 9), numbers(6, 0, 9), bools(6))
@settings(max_examples=50, deadline=None)
def test_the_reward_is_what_goes_away_of_the_plan(before, after, stop):
    rules = Rules(rollout=1, minibatch=1, step_cost=0.01, most=1.5, end_reward=0.7, end_cost=0.2, end_most=4.0)
    reward = ppo.plan_reward(experience(before=jnp.array(before), after=jnp.array(after), stop=jnp.array(stop)), rules)
    for one, had, has, ends in zip(reward, before, after, stop, strict=True):
        expected = max(-1.5, min(1.5, had - has)) - 0.01
        if ends:
            expected += 0.7 - 0.2 * min(had, 4.0)
        assert float(one) == pytest.approx(expected, abs=1e-5)


@jax.jit
def advantages(reward, value, over, last):
    return ppo.advantages(reward, value, over, last, RULES)


def slow_advantages(reward, value, over, last):
    """Σ_k (γλ)^k δ_{t+k}, up to the end of the episode or of the stretch; δ_t = r_t + γ·V_{t+1} − V_t, and nothing
    comes after an end."""
    result = []
    for t in range(len(reward)):
        total, weight = 0.0, 1.0
        for k in range(t, len(reward)):
            following = value[k + 1] if k + 1 < len(value) else last
            total += weight * (reward[k] + (0 if over[k] else RULES.discount * following) - value[k])
            weight *= RULES.discount * RULES.trace
            if over[k]:
                break
        result.append(total)
    return result


@given(numbers(14), numbers(14), bools(14), numbers(2))
@settings(max_examples=50, deadline=None)
def test_advantages_agree_with_a_slow_sum(reward, value, over, last):
    rows = [np.reshape(part, (7, 2)) for part in (reward, value, over)]
    found = advantages(*map(jnp.asarray, rows), jnp.array(last))
    for env in range(2):
        expected = slow_advantages(*(row[:, env].tolist() for row in rows), last[env])
        np.testing.assert_allclose(found[:, env], expected, rtol=1e-4, atol=1e-4)


def test_lessons_are_made_comparable_and_aim_at_what_was_gained(acted):
    *_, (_, seen, last, _) = acted
    reward = ppo.plan_reward(seen, RULES)
    lessons = ppo.lessons(seen, reward, last, RULES)
    advantage = advantages(reward, seen.value, seen.over, last)
    assert float(jnp.mean(lessons.advantage)) == pytest.approx(0, abs=1e-5)
    assert float(jnp.std(lessons.advantage)) == pytest.approx(1, abs=1e-3)
    slope, offset = np.polyfit(np.ravel(advantage), lessons.advantage, 1)
    np.testing.assert_allclose(slope * np.ravel(advantage) + offset, lessons.advantage, atol=1e-4)
    assert slope > 0
    np.testing.assert_allclose(lessons.target, np.ravel(advantage + seen.value), rtol=1e-5)
    for name in ("left", "action", "stop", "log_chance"):
        np.testing.assert_array_equal(getattr(lessons, name)[ENVS + 1], getattr(seen, name)[1, 1])
        assert len(getattr(lessons, name)) == STEPS * ENVS


def test_where_nothing_was_better_than_anything_else_nothing_is_learned():
    same = jnp.zeros((2, 2))
    seen = experience(value=same, over=same > 0, stop=same > 0, left=same, action=same, log_chance=same, states=same)
    assert not ppo.lessons(seen, same, same[0], RULES).advantage.any()


# What is learned.

RATIOS = np.array([0.5, 0.95, 1.1, 1.5, 0.5, 1.5, 1.0, 1.05])
ADVANTAGES = np.array([1.0, -2.0, 0.5, 1.5, -1.0, -0.5, 2.0, 0.25])


def a_lesson(one, ratios=RATIOS, advantage=ADVANTAGES):
    """Of actions and stops that have become so many times as likely."""
    count = len(ratios)
    states = jax.tree.map(jnp.asarray, WORLD.scenes([("A",)] * count, (6,)))
    left = jax.random.normal(jax.random.key(6), (count, 8))
    action, stop = jnp.arange(count) % 3, jnp.arange(count) % 4 == 1
    outputs, value = look(one, states, left)
    chance = one.head.log_chance(outputs, action, stop)
    target = value + jnp.linspace(-1, 2, count)
    return Lesson(states, left, action, stop, chance - jnp.log(ratios), jnp.asarray(advantage), target), outputs


POLICY = RULES._replace(entropy=0.0, estimate=0.0)  # its loss alone


def loss(one, lesson, rules=RULES):
    return ppo.loss(one, lesson, WORLD, rules, jnp.float32)


@jax.jit
def gradient(one, lesson):
    return jax.grad(lambda one: loss(one, lesson, POLICY), has_aux=True)(one)[0]


def learn(one, lesson, optimizer, rules=RULES):
    memory = optimizer.init(eqx.filter(one, ppo.trainable(one)))
    return ppo.learn(one, memory, lesson, WORLD, rules, optimizer, jnp.float32, jax.random.key(0))


def test_the_loss_in_numpy():
    """The clip is active in some of the rows and not in others."""
    one = learner()
    lesson, outputs = a_lesson(one)
    value, figures = jax.jit(loss)(one, lesson)
    clipped = np.clip(RATIOS, 0.8, 1.2)
    policy = -np.mean(np.minimum(RATIOS * ADVANTAGES, clipped * ADVANTAGES))
    assert 0 < np.sum(clipped * ADVANTAGES < RATIOS * ADVANTAGES) < np.sum(clipped != RATIOS) < len(RATIOS)
    error = np.mean(np.linspace(-1, 2, 8) ** 2)
    logits = np.asarray(outputs.action, np.float64)
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    entropy = -np.mean(np.sum(shares * np.log(shares), axis=1))
    kl = np.mean(RATIOS - 1 - np.log(RATIOS))
    expected = {"policy_loss": policy, "value_loss": error, "entropy": entropy, "kl": kl}
    assert {name: float(figure) for name, figure in figures.items()} == pytest.approx(expected, rel=1e-3)
    assert float(value) == pytest.approx(policy + 0.5 * error - 0.003 * entropy, rel=1e-3)


@pytest.mark.parametrize(
    ("ratio", "advantage", "learns"), [(1.5, 1.0, False), (0.5, -1.0, False), (1.5, -1.0, True), (0.5, 1.0, True)]
)
def test_what_has_moved_far_enough_moves_no_further(ratio, advantage, learns):
    one = learner()
    lesson, _ = a_lesson(one, np.full(8, ratio), np.full(8, advantage))
    assert any((np.asarray(leaf) != 0).any() for leaf in jax.tree.leaves(gradient(one, lesson))) == learns


def test_practice_changes_the_policy_and_the_estimate_and_nothing_of_the_encoder():
    one = learner()
    spec = ppo.trainable(one)
    assert not any(jax.tree.leaves(spec.agent.encoder)) and all(jax.tree.leaves((spec.agent.policy, spec.value)))
    lesson, _ = a_lesson(one)
    optimizer = optax.adam(1e-2)
    memory = optimizer.init(eqx.filter(one, spec))
    assert len(jax.tree.leaves(memory)) == 1 + 2 * sum(jax.tree.leaves(spec))  # of the encoder it keeps nothing
    learned, _, _ = learn(one, lesson, optimizer)
    jax.tree.map(np.testing.assert_array_equal, one.agent.encoder, learned.agent.encoder)
    for before, after in zip(*(jax.tree.leaves((x.agent.policy, x.value)) for x in (one, learned)), strict=True):
        assert (np.asarray(before) != np.asarray(after)).any()


def test_every_lesson_counts_once():
    """With steps of no size, the figures of all minibatches together are those of all lessons."""
    one = learner()
    lesson, _ = a_lesson(one)
    same, _, figures = learn(one, lesson, optax.sgd(0.0), RULES._replace(minibatch=2))
    jax.tree.map(np.testing.assert_array_equal, same, one)
    _, expected = loss(one, lesson)
    assert {name: float(figure) for name, figure in figures.items()} == pytest.approx(
        {name: float(figure) for name, figure in expected.items()}, rel=1e-3
    )


def test_steps_go_towards_what_was_better_than_estimated():
    one = learner()
    lesson, _ = a_lesson(one, np.ones(8), np.array([1.0, -1, 1, -1, 1, -1, 1, -1]))
    learned, _, _ = learn(one, lesson, optax.sgd(1e-4), POLICY)
    outputs, _ = look(learned, lesson.states, lesson.left)
    likelier = learned.head.log_chance(outputs, lesson.action, lesson.stop) - lesson.log_chance
    assert float(jnp.sum(likelier * lesson.advantage)) > 0


def test_a_learner_in_another_precision_keeps_what_must_be_exact():
    """A potential, what reads plans, and the estimate's outcome stay in float32."""
    one = learner().cast(jnp.bfloat16)
    exact = (one.agent.encoder, one.agent.policy.reader)
    assert {leaf.dtype for leaf in jax.tree.leaves(exact)} == {jnp.dtype(jnp.float32)}
    assert {leaf.dtype for leaf in jax.tree.leaves((one.agent.policy.blocks, one.value))} == {jnp.dtype(jnp.bfloat16)}
    lesson, _ = a_lesson(learner())
    outputs, value = look(one, lesson.states, lesson.left)
    assert value.dtype == outputs.stop.dtype == outputs.action.dtype == jnp.float32
    assert isinstance(one.agent, Difference)
