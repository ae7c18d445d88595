"""The policy for boards, against the same layer by layer in plain NumPy; and what it does to large plans."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles.convolutions import native

from planvec.agents.agent import Difference
from planvec.agents.policies import Categorical
from planvec.agents.residual import ResidualPolicy
from planvec.data.tiles import Atlas, Tiled

ROWS, COLUMNS, SIDE, WIDTH, PLAN = 4, 5, 3, 8, 6
ATLAS = Atlas(np.random.default_rng(0).integers(0, 256, (9, SIDE, SIDE, 3), np.uint8))
HEAD = Categorical(ResidualPolicy.FEATURES, 3, key=jax.random.key(1))
POLICY = ResidualPolicy(SIDE, 3, PLAN, HEAD, width=WIDTH, depth=2, key=jax.random.key(0))

hidden = jax.jit(lambda policy, seen, plan: policy.hidden((seen,), plan))


def board(seed=0, n=4):
    numbers = np.random.default_rng(seed).integers(0, len(ATLAS), (n, ROWS, COLUMNS))
    return Tiled(jnp.asarray(numbers, ATLAS.numbers), ATLAS)


def plans(seed=0, n=4):
    return np.random.default_rng(seed).normal(size=(n, PLAN)).astype(np.float32)


def relu(x):
    return np.maximum(x, 0)


def slow(policy, images, plan):
    """Its equations, one after the other."""
    x = np.asarray(native(images.astype(np.float32) / 32, policy.tiles.weight, SIDE, 0)) + policy.tiles.bias
    read = np.tanh(plan @ policy.reader.linear.weight + policy.reader.linear.bias)
    for block in policy.blocks:
        inner = np.asarray(native(relu(x), block.inner.weight, 1, 1)) + block.inner.bias
        heard = read @ block.read.weight + block.read.bias
        x = x + np.asarray(native(relu(inner + heard[:, None, None]), block.outer.weight, 1, 1)) + block.outer.bias
    places = relu(x).reshape(len(x), -1, WIDTH)
    scores = np.exp(places @ policy.queries.weight + policy.queries.bias)
    attention = scores / scores.sum(axis=1, keepdims=True)
    x = np.stack([(share.T @ one).ravel() for share, one in zip(attention, places, strict=True)])
    for layer in policy.layers:
        x = relu(x @ layer.weight + layer.bias)
    return x


def with_biases(policy):
    """The same with biases that are not zero."""
    keys = iter(jax.random.split(jax.random.key(3), 99))

    def shake(leaf):
        return leaf + 0.1 * jax.random.normal(next(keys), leaf.shape) if leaf.ndim == 1 else leaf

    return jax.tree.map(shake, policy)


def test_layer_by_layer():
    policy, seen, plan = with_biases(POLICY), board(), plans()
    expected = slow(jax.tree.map(np.asarray, policy), np.asarray(seen), plan)
    assert expected.shape == (4, policy.features) and (expected > 0).mean() > 0.2
    np.testing.assert_allclose(hidden(policy, seen.draw(), plan), expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(hidden(policy, seen, plan), expected, rtol=1e-3, atol=1e-3)


def test_tiles_and_their_pixels_teach_the_same():
    seen, plan = board(), plans()
    slope = jax.jit(jax.grad(lambda policy, seen: jnp.sum(jnp.square(policy.hidden((seen,), plan)))))
    tiled, drawn = (slope(POLICY, one) for one in (seen, seen.draw()))
    for one, other in zip(jax.tree.leaves(tiled), jax.tree.leaves(drawn), strict=True):
        size = float(np.abs(other).max())
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4 * max(size, 1))


def test_every_block_reads_the_plan_and_every_place_is_seen():
    both = jax.jit(jax.grad(lambda policy, image: jnp.sum(jnp.square(hidden(policy, image, plans()))), argnums=(0, 1)))
    of_policy, of_image = both(POLICY, jnp.float32(board().draw()))
    assert all((np.asarray(block.read.weight) != 0).any() for block in of_policy.blocks)
    assert (np.asarray(of_image) != 0).mean() > 0.9


def test_a_large_plan_looks_as_a_small_one():
    """Beyond some length only its direction is read, entry by entry."""
    seen, plan = board(), plans()
    far, farther, opposite = (hidden(POLICY, seen, factor * plan) for factor in (1e4, 1e6, -1e4))
    np.testing.assert_allclose(far, farther, rtol=1e-3, atol=1e-3)
    assert not np.allclose(far, opposite, atol=0.1)
    assert np.isfinite(hidden(POLICY, seen, 1e30 * plan)).all()


def test_blocks_begin_as_small_corrections():
    deep = ResidualPolicy(SIDE, 3, PLAN, HEAD, width=64, key=jax.random.key(4))
    assert len(deep.blocks) == 6
    for block in deep.blocks:
        fan_out = 9 * 64
        assert np.std(block.outer.weight) == pytest.approx(0.3 * np.sqrt(2 / fan_out), rel=0.05)
        assert np.std(block.inner.weight) == pytest.approx(np.sqrt(2 / fan_out), rel=0.05)


def test_the_plan_is_read_in_full_precision_whatever_the_rest_computes_in():
    cast = Difference(policy=POLICY, encoder=None).cast(jnp.bfloat16).policy
    assert {leaf.dtype for leaf in jax.tree.leaves(cast.reader)} == {jnp.dtype(jnp.float32)}
    near = plans() * (1 + 2.0**-12)  # bfloat16 would not tell it apart
    np.testing.assert_array_equal(cast.reader(plans()), POLICY.reader(plans()))
    assert (cast.reader(plans()) != cast.reader(near)).any()
    out = hidden(cast, board(), plans())
    assert out.dtype == jnp.bfloat16
    off = np.abs(np.float32(out) - np.asarray(hidden(POLICY, board(), plans())))
    assert off.max() < 0.1 * np.abs(np.float32(out)).max()
