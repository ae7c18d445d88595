import functools
from dataclasses import replace
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from planvec.agents import Agent, build
from planvec.agents.policies import Stopping
from planvec.agents.probe import Probe
from planvec.data.tiles import Atlas, Tiled
from planvec.plans import Plan, ReferencePlan
from planvec.worlds.spaces import Images

SHAPE = (33, 30, 3)
EMBEDDING = 16
ONE_OF_EACH = ["naive", "tecnet", "te-plain", "cpv-plain"]


encode = eqx.filter_jit(lambda agent, first, last: agent.encode(first, last))
outputs = eqx.filter_jit(lambda agent, first, now, plans, done=None: agent.outputs(first, now, plans, done))

act_on = eqx.filter_jit(lambda agent, observations, plan=None: agent.policy(observations, observations[0], plan))


@functools.cache
def agent(name: str, seed: int = 0) -> Agent:
    return build(name, Images(SHAPE, 6), EMBEDDING, key=jax.random.key(seed))


def images(count: int, n: int = 1, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, n, *SHAPE), np.uint8)


def demonstration(seed: int) -> SimpleNamespace:
    first, last = images(2, seed=seed)
    return SimpleNamespace(first=first[0], last=last[0])


def test_plan_is_the_encoding_of_the_two_ends():
    model, demo = agent("cpv-plain"), demonstration(1)
    plan = model.plan(demo)
    assert isinstance(plan, Plan)
    assert plan.vector.shape == (EMBEDDING,)
    np.testing.assert_allclose(plan.vector, encode(model, demo.first[None], demo.last[None])[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_act_agrees_with_outputs(name):
    model, demo = agent(name), demonstration(1)
    first, now = images(2, seed=2)
    plan = model.plan(demo) + model.plan(demonstration(3))
    values = jax.tree.map(lambda leaf: leaf[None], model.values(plan))
    logits = outputs(model, first, now, values)
    key = jax.random.key(4)
    greedy = model.act(first[0], now[0], plan, key, greedy=True)
    assert greedy.action.shape == greedy.stop.shape == ()
    assert greedy.action == np.argmax(logits[0]) and not greedy.stop and not model.can_stop
    assert model.act(first[0], now[0], plan, key).action == model.policy.head.sample(logits, key)[0]


def test_a_stop_is_said_beside_the_action():
    """Where its logit is above zero, whichever the action and however it is chosen."""
    model = agent("cpv-plain")
    model = eqx.tree_at(lambda model: model.policy.head, model, Stopping(model.policy.head, 64, key=jax.random.key(5)))
    weight = model.policy.head.head.linear.weight / 100  # so that the best action is not the only one that is drawn
    model = eqx.tree_at(lambda model: model.policy.head.head.linear.weight, model, weight)
    first, now = images(2, n=8)
    plans, key = encode(model, *images(2, n=8, seed=1)), jax.random.key(6)
    ending = outputs(model, first, now, plans)
    model = eqx.tree_at(lambda model: model.policy.head.end.bias, model, -jnp.median(ending.stop)[None])
    for greedy in (True, False):
        action, stop = model.choose(first, now, plans, key, greedy)
        assert 0 < stop.sum() < 8 and model.can_stop
        np.testing.assert_array_equal(stop, ending.stop > jnp.median(ending.stop))
        head = model.policy.head.head
        np.testing.assert_array_equal(action, head.greedy(ending.action) if greedy else head.sample(ending.action, key))
    assert np.any(action != head.greedy(ending.action))
    for i in range(8):
        one = model.act(first[i], now[i], model.wrap(plans[i]), key, greedy=True)
        assert one.stop == stop[i] and one.action == head.greedy(ending.action)[i]


def test_a_batch_is_finished_where_each_is_done():
    model = agent("cpv-plain")
    weights = jax.random.normal(jax.random.key(0), (EMBEDDING, 2))
    model = replace(model, probe=Probe(weights=weights, error=jnp.zeros(2), skills=("a", "b")))
    first, now = images(2, n=8)
    plans = encode(model, first, now) + jax.random.normal(jax.random.key(1), (8, EMBEDDING)) / 4
    finished = model.finished(first, now, plans)
    done = [model.done(model.wrap(plan), *ends) for plan, *ends in zip(plans, first, now, strict=True)]
    assert finished.tolist() == done and 0 < sum(done) < 8


def test_jit_changes_nothing():
    model = agent("cpv-plain")
    first, now, ref_first, ref_last = images(4)

    jitted = outputs(model, first, now, encode(model, ref_first, ref_last))
    eager = model.outputs(first, now, model.encode(ref_first, ref_last))
    np.testing.assert_allclose(jitted, eager, rtol=1e-4, atol=1e-4)


def test_plans_of_another_agent_are_refused():
    one, other = agent("cpv-plain", seed=0), agent("cpv-plain", seed=1)
    first, now = images(2)
    with pytest.raises(ValueError, match="make the plan with the agent"):
        one.act(first[0], now[0], other.plan(demonstration(1)), jax.random.key(0))
    with pytest.raises(ValueError, match="different agents"):
        one.plan(demonstration(1)) + other.plan(demonstration(1))
    with pytest.raises(ValueError, match="make the plan with the agent"):
        agent("naive").values(one.plan(demonstration(1)))


def test_fingerprints_name_the_weights():
    assert agent("cpv-plain").fingerprint == agent("cpv-full").fingerprint
    assert agent("cpv-plain").fingerprint != agent("cpv-plain", seed=1).fingerprint
    trained = jax.tree.map(lambda leaf: leaf + 0.1, agent("cpv-plain"))
    assert trained.fingerprint != agent("cpv-plain").fingerprint
    assert len({agent(name).fingerprint for name in ("naive", "te-plain", "cpv-plain")}) == 3


def test_cpv_reads_what_is_left_of_the_plan():
    model = agent("cpv-plain")
    first, now = images(2)
    nothing_left = outputs(model, first, now, encode(model, first, now))
    np.testing.assert_allclose(nothing_left, act_on(model, (now,), jnp.zeros((1, EMBEDDING))), rtol=1e-4, atol=1e-4)


def test_cpv_takes_what_is_done_from_a_caller_who_knows_it():
    model = agent("cpv-plain")
    first, now, ref_first, ref_last = images(4)
    plans, done = encode(model, ref_first, ref_last), encode(model, first, now)
    expected = outputs(model, first, now, plans)
    np.testing.assert_allclose(outputs(model, first, now, plans, done=done), expected, rtol=1e-4, atol=1e-4)


def test_cpv_sees_the_first_observation_through_g_alone():
    model = agent("cpv-plain")
    first, now, other = images(3)
    plans = jnp.ones((1, EMBEDDING))
    moved = plans + encode(model, other, now) - encode(model, first, now)
    assert not np.allclose(outputs(model, other, now, plans), outputs(model, first, now, plans), atol=1e-3)
    np.testing.assert_allclose(
        outputs(model, other, now, moved), outputs(model, first, now, plans), rtol=1e-3, atol=1e-3
    )


@pytest.mark.parametrize("name", ["te-plain", "naive"])
def test_static_and_concatenate_see_every_pixel_of_the_first_observation(name):
    model = agent(name)
    first, now, ref_first, ref_last = images(4)
    plans = encode(model, ref_first, ref_last)
    slope = jax.jit(jax.grad(lambda x: jnp.sum(model.outputs(x, now, plans) ** 2)))(jnp.float32(first))
    assert (slope != 0).mean() > 0.99


@pytest.mark.parametrize("name", ["te-plain", "tecnet"])
def test_static_gives_the_plan_whole_whatever_is_done(name):
    model = agent(name)
    first, now = images(2)
    plans = encode(model, *images(2, seed=1))
    expected = outputs(model, first, now, plans)
    np.testing.assert_array_equal(outputs(model, first, now, plans, done=jnp.ones_like(plans)), expected)


def test_tecnet_normalises_on_reading_only():
    tecnet, te = agent("tecnet"), agent("te-plain")
    one, other = tecnet.plan(demonstration(1)), tecnet.plan(demonstration(2))
    np.testing.assert_allclose(one.vector, te.plan(demonstration(1)).vector)
    np.testing.assert_allclose((one + other).vector, one.vector + other.vector)
    assert abs(one.norm() - 1) > 0.01

    first, now = images(2)
    raw = tecnet.values(one + other)[None]
    expected = outputs(te, first, now, raw / jnp.linalg.norm(raw))
    np.testing.assert_allclose(outputs(tecnet, first, now, raw), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(outputs(tecnet, first, now, 7 * raw), expected, rtol=1e-4, atol=1e-5)
    assert not np.allclose(outputs(te, first, now, raw), expected, atol=1e-3)


def test_naive_reads_the_mean_of_its_references():
    model, one, other = agent("naive"), demonstration(1), demonstration(2)
    plan = model.plan(one) + model.plan(other)
    assert isinstance(plan, ReferencePlan)
    mean = [(np.float32(getattr(one, end)) + getattr(other, end))[None] / 2 for end in ("first", "last")]
    for value, expected in zip(model.values(plan), mean, strict=True):
        np.testing.assert_array_equal(value, expected[0])
    first, now = images(2)
    key = jax.random.key(0)
    expected = outputs(model, first, now, tuple(mean))
    assert model.act(first[0], now[0], plan, key, greedy=True).action == jnp.argmax(expected)


ATLAS = Atlas(np.full((3, 3, 3, 3), [[[[10]]], [[[30]]], [[[80]]]], np.uint8))  # tiles of one grey each


def tiled(number: int, n: int = 1) -> Tiled:
    """A batch of pictures of one tile."""
    return Tiled(jnp.full((n, 11, 10), number, ATLAS.numbers), ATLAS)


def test_naive_reads_the_mean_of_pictures_and_not_of_the_numbers_of_their_tiles():
    """(10 + 80) / 2 = 45 and (30 + 80) / 2 = 55; tile 1, between 0 and 2, has the grey 30."""
    model = agent("naive")
    ends = [(tiled(0), tiled(1)), (tiled(2), tiled(2))]
    in_batches = model.add(ends)
    one, other = (model.plan(jax.tree.map(lambda leaf: leaf[0], pair)) for pair in ends)
    one_by_one = model.values(one + other)
    wrapped = model.values(model.wrap(model.encode(*ends[0])) + model.wrap(model.encode(*ends[1])))
    for first, last in (in_batches, one_by_one, wrapped):
        np.testing.assert_array_equal(first, np.broadcast_to(np.float32(45), first.shape))
        np.testing.assert_array_equal(last, np.broadcast_to(np.float32(55), last.shape))
        assert first.shape[-3:] == last.shape[-3:] == SHAPE


def test_naive_acts_on_tiles_as_on_the_pictures_they_are():
    model, key = agent("naive"), jax.random.key(0)
    first, now, last = (jax.tree.map(lambda leaf: leaf[0], tiled(number)) for number in range(3))
    of_tiles = model.act(first, now, model.plan((first, last)), key).action
    drawn = model.plan((np.asarray(first), np.asarray(last)))
    assert of_tiles == model.act(np.asarray(first), np.asarray(now), drawn, key).action


@pytest.mark.parametrize("name", ["naive", "cpv-plain"])
def test_a_pair_of_observations_has_a_plan_as_a_demonstration_has(name):
    model, demo = agent(name), demonstration(1)
    assert model.plan((demo.first, demo.last)) == model.plan(demo)
    assert model.plan((demo.last, demo.first)) != model.plan(demo)


def test_naive_sees_four_images_in_order():
    model = agent("naive")
    first, now, ref_first, ref_last = images(4)
    expected = act_on(model, (first, now, ref_first, ref_last))
    np.testing.assert_array_equal(outputs(model, first, now, (ref_first, ref_last)), expected)


@pytest.mark.parametrize("name", ["naive", "cpv-plain"])
def test_batches_of_plans_add_whatever_the_agent(name):
    model = agent(name)
    ends = images(4, n=2)
    plans = model.wrap(encode(model, *ends[:2])) + model.wrap(encode(model, *ends[2:]))
    one = model.plan(SimpleNamespace(first=ends[0][1], last=ends[1][1]))
    other = model.plan(SimpleNamespace(first=ends[2][1], last=ends[3][1]))
    batched = jax.tree.map(lambda leaf: leaf[1], model.values(plans))
    for value, expected in zip(jax.tree.leaves(batched), jax.tree.leaves(model.values(one + other)), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-4)


def test_cast_computes_in_another_dtype_and_answers_in_float32():
    model = agent("cpv-plain").cast(jnp.bfloat16)
    assert {leaf.dtype for leaf in jax.tree.leaves(model)} == {jnp.dtype(jnp.bfloat16)}
    first, now = images(2)
    assert encode(model, first, now).dtype == jnp.float32
    assert outputs(model, first, now, jnp.zeros((1, EMBEDDING))).dtype == jnp.float32
