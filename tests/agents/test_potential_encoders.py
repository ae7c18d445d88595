"""g(a, b) = Φ(b) − Φ(a): plans that add along a trajectory whatever the weights are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from planvec.agents.agent import Difference
from planvec.agents.encoders import GREY
from planvec.agents.potentials import RelationPotential, TilePotential
from planvec.agents.relations import relations
from planvec.data.tiles import Atlas, Tiled
from planvec.worlds.spaces import Objects

SIDE, CHANNELS, FEATURES = 3, 3, 8
ATLAS = Atlas(np.random.default_rng(0).integers(0, 256, (5, SIDE, SIDE, CHANNELS), np.uint8))
SPACE = Objects(3)


def boards(count: int, seed: int = 0) -> Tiled:
    """Pictures of 4 × 2 tiles, in which some tiles lie more than once."""
    numbers = np.random.default_rng(seed).integers(0, len(ATLAS), (count, 4, 2))
    return Tiled(jnp.asarray(numbers, ATLAS.numbers), ATLAS)


def places(count: int, seed: int = 0) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).uniform(-0.05, 0.05, (count, SPACE.size)), jnp.float32)


TILES = TilePotential(SIDE, CHANNELS, FEATURES, hidden=16, key=jax.random.key(0))
RELATIONS = RelationPotential(SPACE, FEATURES, key=jax.random.key(0))
KINDS = pytest.mark.parametrize(("g", "seen"), [(TILES, boards), (RELATIONS, places)], ids=["tiles", "relations"])


@KINDS
def test_plans_add_along_a_trajectory_and_nothing_is_no_plan(g, seen):
    a, b, c = (seen(6, seed) for seed in range(3))
    assert np.abs(g((a, b))).max() > 1e-3
    np.testing.assert_allclose(g((a, b)) + g((b, c)), g((a, c)), atol=1e-4)
    assert not np.any(g((a, a)))
    np.testing.assert_array_equal(g((a, b)), -g((b, a)))


@KINDS
def test_potentials_stay_in_float32_whatever_an_agent_is_cast_to(g, seen):
    cast = Difference(policy=None, encoder=g).cast(jnp.bfloat16)
    assert {leaf.dtype for leaf in jax.tree.leaves(cast)} == {jnp.dtype("float32")}
    np.testing.assert_array_equal(cast.encode(seen(2), seen(2, 1)), g((seen(2), seen(2, 1))))


def test_every_tile_counts_as_often_as_it_lies_there():
    """By NumPy, from the pixels; and the same from tiles as from the picture that they make."""
    tiled = boards(6)
    x = np.float64(ATLAS.flat) / GREY
    for layer in TILES.layers[:2]:
        x = np.maximum(x @ np.float64(layer.weight) + layer.bias, 0)
    table = x @ np.float64(TILES.layers[2].weight) + TILES.layers[2].bias
    expected = table[np.asarray(tiled.tiles)].sum(axis=(1, 2))
    np.testing.assert_allclose(TILES.potential(tiled), expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(TILES.potential(np.asarray(tiled)), expected, rtol=1e-3, atol=1e-4)


def test_it_does_not_matter_where_a_tile_lies():
    tiled = boards(6)
    turned = Tiled(tiled.tiles[:, ::-1, ::-1], ATLAS)
    np.testing.assert_allclose(TILES.potential(turned), TILES.potential(tiled), atol=1e-4)


def test_a_potential_of_objects_is_linear_in_their_relations():
    seen = places(6)
    expected = np.float64(relations(seen, SPACE)) @ np.float64(RELATIONS.linear.weight)
    np.testing.assert_allclose(RELATIONS.potential(seen), expected, rtol=1e-4, atol=1e-5)
