"""The policy for boards against XLA's own convolutions, layer by layer."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles.convolutions import native

from planvec.agents.agent import Difference
from planvec.agents.encoders import GREY
from planvec.agents.policies import Categorical
from planvec.agents.residual import ResidualPolicy
from planvec.data.tiles import Atlas, Tiled

SIDE, PLAN = 3, 4
ATLAS = Atlas(np.random.default_rng(0).integers(0, 256, (5, SIDE, SIDE, 3), np.uint8))
SEEN = Tiled(jnp.asarray(np.random.default_rng(1).integers(0, 5, (2, 4, 3)), ATLAS.numbers), ATLAS)


@pytest.fixture(scope="module")
def policy():
    """One whose biases count too."""
    head = Categorical(ResidualPolicy.FEATURES, 6, key=jax.random.key(1))
    policy = ResidualPolicy(SIDE, 3, PLAN, head, width=8, depth=2, key=jax.random.key(0))
    keys = iter(jax.random.split(jax.random.key(2), 64))
    return jax.tree.map(lambda leaf: leaf + 0.1 * jax.random.normal(next(keys), leaf.shape), policy)


def expected(policy, plan):
    """The last hidden layer, slowly."""
    relu = jax.nn.relu
    x = native(np.float32(SEEN) / GREY, policy.tiles.weight, SIDE, 0) + policy.tiles.bias
    read = jnp.tanh(plan @ policy.reader.linear.weight + policy.reader.linear.bias)
    for block in policy.blocks:
        told = read @ block.read.weight + block.read.bias
        inner = native(relu(x + told[:, None, None]), block.inner, 1, 1)
        x = x + native(relu(inner), block.outer, 1, 1)
    places = relu(x).reshape(len(x), -1, x.shape[-1])
    chances = jnp.exp(places @ policy.queries.weight + policy.queries.bias)
    chances = chances / chances.sum(axis=1, keepdims=True)  # over places
    x = jnp.stack([(chances[:, :, q, None] * places).sum(axis=1) for q in range(chances.shape[2])], axis=1)
    x = x.reshape(len(x), -1)
    for layer in policy.layers:
        x = relu(x @ layer.weight + layer.bias)
    return x


@pytest.mark.parametrize("seen", [SEEN, np.asarray(SEEN)], ids=["tiles", "pixels"])
def test_the_policy_for_boards_is_what_it_says(policy, seen):
    plan = jax.random.normal(jax.random.key(3), (2, PLAN))
    found = eqx.filter_jit(lambda seen, plan: policy.hidden((seen,), plan))(seen, plan)
    assert found.shape == (2, policy.features) and np.any(found)
    np.testing.assert_allclose(found, expected(policy, plan), rtol=1e-3, atol=1e-4)


def test_large_plans_are_read_as_a_limit_and_in_float32(policy):
    plan = jax.random.normal(jax.random.key(3), (2, PLAN))
    np.testing.assert_allclose(policy.reader(1e4 * plan), policy.reader(1e5 * plan), atol=1e-6)
    cast = Difference(policy=policy, encoder=None).cast(jnp.bfloat16).policy
    assert cast.tiles.weight.dtype == jnp.bfloat16 and cast.reader.linear.weight.dtype == jnp.float32
    np.testing.assert_array_equal(cast.reader(plan), policy.reader(plan))


def test_tiles_and_their_pixels_teach_the_same(policy):
    plan = jax.random.normal(jax.random.key(3), (2, PLAN))
    slope = jax.jit(jax.grad(lambda policy, seen: jnp.sum(jnp.square(policy.hidden((seen,), plan)))))
    for one, other in zip(*(jax.tree.leaves(slope(policy, seen)) for seen in (SEEN, SEEN.draw())), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4 * max(float(np.abs(other).max()), 1))


def test_blocks_begin_as_small_corrections():
    head = Categorical(ResidualPolicy.FEATURES, 6, key=jax.random.key(1))
    deep = ResidualPolicy(SIDE, 3, PLAN, head, width=64, key=jax.random.key(4))
    assert len(deep.blocks) == 6
    for block in deep.blocks:
        fan_out = 9 * 64
        assert np.std(block.outer) == pytest.approx(0.3 * np.sqrt(2 / fan_out), rel=0.05)
        assert np.std(block.inner) == pytest.approx(np.sqrt(2 / fan_out), rel=0.05)
