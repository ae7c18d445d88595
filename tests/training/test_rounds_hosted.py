"""A round of practice with simulators, against plain Python: what is seen, what of it counts, what is learned."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.coins import ENVS, PRACTICE, WORLD, novice
from own_world import CLOSE, HOMES, move

from planvec.agents.encoders import Linear
from planvec.agents.metric import Metric
from planvec.training import ppo, rounds_hosted
from planvec.training.ppo import Experience, Learner, Lesson, Rules
from planvec.training.practice import make_pool
from planvec.training.rounds import of_plan
from planvec.worlds.protocol import take


class Fragile(type(WORLD)):
    """A table on which some actions break the simulator: those that put a coin far to the right. It remembers what was
    asked of it."""

    def start(self, scenes):
        self.session = super().start(scenes)
        self.asked = []
        plain = self.session.step

        def step(actions, going):
            before = self.session.observe()
            plain(actions, going)
            broken = going & (actions[:, 2] > 0.1595)
            self.session._steps = np.where(broken[:, None], before, self.session._steps)
            self.asked.append((actions, going, broken))
            return ~broken

        self.session.step = step
        return self.session


METRIC = Metric(factor=jax.random.normal(jax.random.key(9), (8, 8)), noise=jnp.float32(0))


@pytest.fixture(scope="module")
def acted():
    """A round: its world, its episodes, the learner, what was noted, the share of exact ones, what was asked for."""
    world = Fragile()
    learner = Learner(novice(), Linear(256, 1, fan=-2, key=jax.random.key(4)))
    pool, asked = make_pool(novice(), world, PRACTICE)
    which = np.arange(0, 32, 2)
    episodes = take(pool, which)
    acting = rounds_hosted.make_acting(jnp.float32, False)
    notes, exact = rounds_hosted.act(acting, learner, episodes, METRIC, world, asked[which], 6, jax.random.key(3))
    return world, episodes, learner, notes, exact, asked[which]


@pytest.mark.parametrize("env", range(0, ENVS, 3))
def test_a_round_is_its_episodes_stepped_by_hand(acted, env):
    world, episodes, learner, (looks, over, counts), _, _ = acted
    encode = jax.jit(lambda first, now: learner.agent.encode(first, now))
    first = state = episodes.scenes[env]
    steps = int(counts.any(axis=1).sum())
    going = True
    for time in range(steps + 1):
        row = jax.tree.map(lambda leaf, time=time: np.asarray(leaf[time, env]), looks)
        np.testing.assert_array_equal(row.now, state)
        left = episodes.plans[env] - np.asarray(encode(first[None], state[None]))[0]
        np.testing.assert_allclose(row.left, left, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(row.length, np.linalg.norm(left @ np.asarray(METRIC.factor)), rtol=1e-3, atol=1e-3)
        if time == steps:
            break
        acts, broken = going and not row.stop, False
        if time < len(world.asked):  # nobody is asked where all have stopped
            actions, acting, breaks = world.asked[time]
            assert acting[env] == acts
            broken = breaks[env]
        if acts and not broken:
            np.testing.assert_array_equal(actions[env], row.action)
            state = move(state, row.action)
        assert counts[time, env] == (going and not broken)
        ends = row.stop or time + 1 == episodes.horizons[env]
        assert over[time, env] == (counts[time, env] and ends)
        going = counts[time, env] and not ends
    assert not going
    np.testing.assert_array_equal(world.session.observe()[env], state)


def test_all_that_can_happen_happens_in_that_round(acted):
    world, _, _, (looks, over, counts), exact, asked = acted
    broken = np.any([broken for *_, broken in world.asked], axis=0)
    stop = np.asarray(looks.stop[:-1])
    assert broken.any() and (over & stop).any() and (over & ~stop).any() and not counts.all()
    assert not (over.any(axis=0) & broken).any() and (over.any(axis=0) | broken).all()
    home = np.linalg.norm(world.session.observe().reshape(-1, 3, 3)[..., :2] - HOMES, axis=-1) < CLOSE
    right = np.all(home == asked, axis=1) & np.any(over & stop, axis=0)
    assert exact == pytest.approx(right.sum() / over.any(axis=0).sum())


def test_what_was_tried_had_the_chance_that_is_noted(acted):
    _, _, learner, (looks, _, counts), _, _ = acted
    rows = jax.tree.map(lambda leaf: leaf[:-1][counts], looks)
    outputs, value = jax.jit(Learner.look)(learner, rows.now, rows.left)
    stop = 1 / (1 + np.exp(-np.asarray(outputs.stop, np.float64)))
    density = np.exp(np.asarray(learner.head.head.log_density(outputs.action, rows.action), np.float64))
    np.testing.assert_allclose(np.exp(rows.log_chance), np.where(rows.stop, stop, (1 - stop) * density), rtol=1e-2)
    np.testing.assert_allclose(rows.value, value, rtol=1e-3, atol=1e-4)


def test_simulators_begin_with_all_the_digits_they_have():
    class Exact(type(WORLD)):
        def scenes(self, tasks, seed):
            return super().scenes(tasks, seed) + np.float64(1e-12)

    pool, asked = make_pool(novice(), Exact(), PRACTICE)
    assert pool.scenes.dtype == np.float64 and (pool.scenes != np.float32(pool.scenes)).any()
    assert len(pool.scenes) == len(pool.plans) == len(asked) == 32 and pool.horizons.tolist() == [3] * 16 + [6] * 16


def test_the_step_size_rises_soon_and_falls_to_zero():
    rates = [float(rounds_hosted._rate(jnp.int32(step), 100, 2.0)) for step in range(100)]
    assert rates.index(max(rates)) == 9 and rates[0] == pytest.approx(0.2) and rates[-1] == pytest.approx(0.02)
    assert float(rounds_hosted._rate(jnp.int32(0), 3, 2.0)) == 2.0
    assert float(rounds_hosted._rate(jnp.int32(rounds_hosted.WARMUP - 1), 10**6, 2.0)) == pytest.approx(2.0, rel=1e-3)


# What counts of it.

RULES = Rules(rollout=1, minibatch=4)


def numbers(count):
    return st.lists(st.floats(-3, 3, width=32), min_size=count, max_size=count)


@jax.jit
def advantages(reward, value, over, last, counts):
    return ppo.advantages(reward, value, over, last, RULES, counts)


def slow_advantages(reward, value, ended, following):
    """Of one episode, Σ_k (γλ)^k δ_{t+k}; what comes after it is estimated where it has not ended by itself."""
    result = []
    for t in range(len(reward)):
        total = 0.0
        for k in range(t, len(reward)):
            last = k + 1 == len(reward)
            coming = (0.0 if ended else following) if last else value[k + 1]
            total += (RULES.discount * RULES.trace) ** (k - t) * (reward[k] + RULES.discount * coming - value[k])
        result.append(total)
    return result


@given(numbers(12), numbers(12), st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=2))
@settings(max_examples=60, deadline=None)
def test_advantages_are_those_of_each_episode_alone(reward, value, episodes):
    """Two episodes of so many moments, which end or lose their simulator. What stands behind is no matter."""
    reward, value = np.reshape(reward, (6, 2)), np.reshape(value, (6, 2))
    counts, over = np.zeros((2, 6, 2), bool)
    for env, (length, ended) in enumerate(episodes):
        counts[:length, env] = True
        over[length - 1 : length, env] = ended
    found = np.asarray(advantages(reward, value, over, value[-1], counts))
    for env, (length, ended) in enumerate(episodes):
        expected = slow_advantages(reward[:length, env], value[:length, env], ended, value[min(length, 5), env])
        np.testing.assert_allclose(found[:length, env], expected, rtol=1e-4, atol=1e-4)
        assert not found[length:, env].any()


def experience(counts, **given):
    nothing = jnp.zeros(counts.shape)
    fields = {name: nothing for name in Experience._fields} | {"stop": counts & False, "over": counts & False}
    return Experience(**fields | given | {"counts": counts})


def test_figures_and_lessons_are_of_what_counts():
    counts = jnp.array([[True, True, True], [True, False, True], [False, False, True]])
    junk = jnp.where(counts, 0.0, 1e9)
    seen = experience(
        counts,
        before=jnp.array([[2.0, 0.2, 1.0], [1.0, 0, 1.0], [0, 0, 1.0]]) + junk,
        after=jnp.array([[1.0, 0.2, 1.0], [0.5, 0, 1.0], [0, 0, 1.0]]) - junk,
        over=jnp.array([[False, True, False], [True, False, False], [False, False, False]]),
        stop=jnp.array([[False, True, False], [True, False, False], [False, False, False]]),
        value=jnp.arange(9.0).reshape(3, 3) + junk,
    )
    reward, figures = of_plan(seen, RULES)
    cost = RULES.step_cost
    gained = [1 - cost, 0.5 - 0.2 * 0.2 - cost, -cost, 0.5 + 0.5 - 0.2 - cost, -cost, -cost]
    np.testing.assert_allclose(np.asarray(reward)[np.asarray(counts)], gained, rtol=1e-5)
    assert {name: float(figure) for name, figure in figures.items()} == pytest.approx(
        {"reward": sum(gained) / 6, "return": sum(gained) / 2, "exact_by_plan": 0.5, "episodes": 2, "actions": 6}
    )
    lessons = ppo.lessons(seen, reward, jnp.ones(3), RULES)
    scaled = np.asarray(lessons.advantage)[np.asarray(counts).ravel()]
    assert scaled.mean() == pytest.approx(0, abs=1e-5) and scaled.std() == pytest.approx(1, abs=1e-3)


def a_lesson(counts):
    """Of rows with numbers; a coin is taken in each."""
    many = len(counts)
    scenes = jnp.asarray(WORLD.scenes([("Gold",)] * many, (6,)))
    left = jax.random.normal(jax.random.key(6), (many, 8))
    action = jnp.concatenate([scenes[:, :2], jnp.tile(jnp.asarray(HOMES[0], jnp.float32), (many, 1))], axis=1)
    number = jnp.arange(float(many))
    return Lesson(scenes, left, action, jnp.arange(many) % 3 == 1, number / 10, number - 2, number / 5, counts)


def test_the_loss_is_of_what_counts():
    learner = Learner(novice(), Linear(256, 1, fan=-2, key=jax.random.key(4)))
    counts = jnp.array([True, False, True, True, False, True])
    lesson = a_lesson(counts)
    among = take(lesson, np.flatnonzero(counts))._replace(counts=None)
    junk = lesson._replace(
        advantage=jnp.where(counts, lesson.advantage, 1e6), target=jnp.where(counts, lesson.target, -1e6)
    )
    gradient = jax.jit(
        jax.value_and_grad(lambda one, lesson: ppo.loss(one, lesson, WORLD, RULES, jnp.float32), has_aux=True)
    )
    (value, figures), slope = gradient(learner, junk)
    (expected, known), right = gradient(learner, among)
    assert float(value) == pytest.approx(float(expected), rel=1e-3)
    assert {name: float(figure) for name, figure in figures.items()} == pytest.approx(
        {name: float(figure) for name, figure in known.items()}, rel=1e-3
    )
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-2, atol=1e-3), slope, right)


@pytest.mark.parametrize(("many", "hands"), [(0, 0), (1, 1), (4, 1), (5, 2), (9, 3), (12, 3)])
def test_every_lesson_that_counts_is_learned_from_once(many, hands):
    """In as few minibatches as hold them, all about as large."""
    counts = np.zeros(12, bool)
    counts[np.random.default_rng(0).permutation(12)[:many]] = True

    def step(sizes, lesson):
        seen, sizes, hand = sizes
        seen = seen.at[lesson.action].add(lesson.counts.astype(jnp.int32))
        return (seen, sizes.at[hand].set(jnp.sum(lesson.counts)), hand + 1), {"mean": jnp.float32(3)}

    lessons = Lesson(*[jnp.arange(12)] * 7, counts=jnp.asarray(counts))
    nothing = (jnp.zeros(12, jnp.int32), jnp.zeros(12, jnp.int32), jnp.int32(0))
    deal = jax.jit(lambda lessons, key: ppo._each_that_counts(step, nothing, lessons, 4, key))
    (seen, sizes, dealt), figures = deal(lessons, jax.random.key(many))
    np.testing.assert_array_equal(seen, counts)
    assert int(dealt) == hands and float(figures["mean"]) == (3 if hands else 0)
    assert sum(sizes) == many and max(sizes[:hands], default=0) - min(sizes[:hands], default=0) <= 1


def test_nothing_is_learned_where_nothing_counts():
    learner = Learner(novice(), Linear(256, 1, fan=-2, key=jax.random.key(4)))
    optimizer = optax.sgd(1.0)
    memory = optimizer.init(eqx.filter(learner, ppo.trainable(learner)))
    learn = jax.jit(
        lambda one, lesson: ppo.learn(one, memory, lesson, WORLD, RULES, optimizer, jnp.float32, jax.random.key(0))
    )
    same, _, _ = learn(learner, a_lesson(jnp.zeros(6, bool)))
    jax.tree.map(np.testing.assert_array_equal, same, learner)
    other, _, _ = learn(learner, a_lesson(jnp.arange(6) == 2))
    assert (other.agent.policy.layers[0].weight != learner.agent.policy.layers[0].weight).any()
    jax.tree.map(np.testing.assert_array_equal, other.agent.encoder, learner.agent.encoder)
