"""Encoders that are potentials add by construction, whatever they see and whatever else is computed in."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.lamps import untrained

from planvec.agents.potentials import RelationPotential, TilePotential
from planvec.agents.relations import relations
from planvec.data.tiles import Atlas, Tiled
from planvec.worlds.spaces import Objects

ROWS, COLUMNS, SIDE = 4, 5, 3
OBJECTS = Objects(3, landmarks=((0.02, 0.01),))
ATLAS = Atlas(np.random.default_rng(0).integers(0, 256, (7, SIDE, SIDE, 3), np.uint8))
TILES = TilePotential(SIDE, 3, 6, hidden=16, key=jax.random.key(0))
RELATIONS = RelationPotential(OBJECTS, 6, key=jax.random.key(1))

encode = jax.jit(lambda g, first, last: g((first, last)))


def tiled(numbers):
    return Tiled(jnp.asarray(numbers, ATLAS.numbers), ATLAS)


def boards(seed, count=3):
    return [tiled(board) for board in np.random.default_rng(seed).integers(0, len(ATLAS), (count, 2, ROWS, COLUMNS))]


def pictures(seed, count=3):
    return [board.draw() for board in boards(seed, count)]


def tables(seed, count=3):
    return list(np.random.default_rng(seed).uniform(-0.03, 0.03, (count, 2, OBJECTS.size)).astype(np.float32))


KINDS = pytest.mark.parametrize(
    ("g", "draw"), [(TILES, boards), (TILES, pictures), (RELATIONS, tables)], ids=["tiles", "pixels", "relations"]
)


@KINDS
@given(seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_plans_add_along_a_trajectory(g, draw, seed):
    """g(a, b) + g(b, c) = g(a, c), and there and back again is nothing."""
    a, b, c = draw(seed)
    np.testing.assert_allclose(encode(g, a, b) + encode(g, b, c), encode(g, a, c), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(encode(g, a, b), -encode(g, b, a))
    assert (np.abs(encode(g, a, c)).max(axis=1) > 1e-3).all()


@KINDS
def test_doing_nothing_is_no_plan_at_all(g, draw):
    for seen in draw(1):
        assert not np.asarray(encode(g, seen, seen)).any()


@KINDS
def test_in_whatever_precision_an_agent_computes_its_plans_are_the_same(g, draw):
    agent = replace(untrained(), encoder=g)
    half = agent.cast(jnp.bfloat16)
    a, b, _ = draw(2)
    assert jnp.dtype(jnp.bfloat16) in {leaf.dtype for leaf in jax.tree.leaves(half.policy)}
    assert {leaf.dtype for leaf in jax.tree.leaves(half.encoder)} == {jnp.dtype(jnp.float32)}
    plan = encode(half.encoder, a, b)
    assert plan.dtype == jnp.float32 and not np.asarray(encode(half.encoder, a, a)).any()
    np.testing.assert_array_equal(plan, encode(agent.encoder, a, b))


def test_tiles_looked_up_are_as_their_pixels():
    """A potential of each tile, summed in plain NumPy, is what both come to."""
    board = boards(3)[0]

    def of(tile):
        x = tile.reshape(-1).astype(np.float64) / 32
        for i, layer in enumerate(TILES.layers):
            x = x @ np.asarray(layer.weight, np.float64) + np.asarray(layer.bias)
            x = np.maximum(x, 0) if i < 2 else x
        return x

    expected = [sum(of(ATLAS.pictures[number]) for number in np.ravel(tiles)) for tiles in board.tiles]
    potential = jax.jit(lambda seen: TILES.potential(seen))
    np.testing.assert_allclose(potential(board), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(potential(board.draw()), expected, rtol=1e-4, atol=1e-4)


def test_tiles_of_another_size_are_seen_as_pixels():
    """And what is left over at an edge is not seen."""
    fine = Atlas(np.arange(4 * 12, dtype=np.uint8).reshape(4, 2, 2, 3))
    seen = Tiled(jnp.asarray(np.random.default_rng(4).integers(0, 4, (2, 3, 5)), fine.numbers), fine)
    cut = seen.draw()[:, :6, :9]
    np.testing.assert_array_equal(TILES.potential(seen), TILES.potential(cut))


def test_where_a_tile_lies_is_no_part_of_a_plan():
    board, other = boards(5)[:2]
    moved = tiled(np.random.default_rng(6).permutation(board.tiles.reshape(2, -1), axis=1).reshape(2, ROWS, COLUMNS))
    assert not np.array_equal(moved.tiles, board.tiles)
    np.testing.assert_array_equal(encode(TILES, board, other), encode(TILES, moved, other))


def test_a_potential_of_objects_is_linear_in_how_they_stand():
    a, b, _ = tables(7)
    expected = (relations(b, OBJECTS) - relations(a, OBJECTS)) @ RELATIONS.linear.weight
    np.testing.assert_allclose(encode(RELATIONS, a, b), expected, rtol=1e-4, atol=1e-5)
