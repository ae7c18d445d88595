import jax
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from planvec.agents.relations import RelationEncoder, relations
from planvec.worlds.spaces import Objects

SPACE = Objects(3, landmarks=((0.2, 0.1), (-0.2, 0.1)), side=0.04)


def slow(positions: np.ndarray) -> list[float]:
    """Object by object: under, level with, on top of each later one; then at each landmark."""
    where = [tuple(map(float, positions[3 * i : 3 * i + 3])) for i in range(3)]

    def bump(*offsets: float) -> float:
        return float(np.exp(-sum((offset / 0.02) ** 2 for offset in offsets)))

    pairs = [
        bump(a[0] - b[0], a[1] - b[1], a[2] - b[2] - height)
        for a, b in ((where[0], where[1]), (where[0], where[2]), (where[1], where[2]))
        for height in (-0.04, 0.0, 0.04)
    ]
    return pairs + [bump(a[0] - x, a[1] - y) for a in where for x, y in SPACE.landmarks]


positions = st.lists(st.floats(-0.25, 0.25, width=32), min_size=9, max_size=9).map(np.float32)


@settings(max_examples=50, deadline=None)
@given(positions)
def test_relations_equal_the_slow_ones(where):
    np.testing.assert_allclose(relations(where, SPACE), slow(where), atol=1e-5)


def test_what_relations_say():
    """The first on the second, the third in the second corner."""
    where = np.float32([0.05, 0, 0.06, 0.05, 0, 0.02, -0.2, 0.1, 0.02])
    expected = np.zeros(15)
    expected[[2, 14]] = 1
    np.testing.assert_allclose(relations(where, SPACE), expected, atol=0.02)  # e⁻⁴: on top is nearly not level
    half_off = relations(where + np.float32([0.02, 0, 0, *[0] * 6]), SPACE)
    np.testing.assert_allclose(half_off[2], np.exp(-1), rtol=1e-5)


def test_pairs_are_the_same_wherever_they_stand():
    where = np.random.default_rng(0).uniform(-0.05, 0.05, (5, 9)).astype(np.float32)
    elsewhere = where + np.tile(np.float32([0.03, -0.02, 0]), 3)
    np.testing.assert_allclose(relations(where, SPACE)[:, :9], relations(elsewhere, SPACE)[:, :9], atol=1e-5)


def test_the_encoder_is_linear_in_both_ends():
    """Relations and positions at first and at last, and what stayed: each with weights of its own."""
    encoder = RelationEncoder(SPACE, features=4, key=jax.random.key(0))
    first, last = np.random.default_rng(1).uniform(-0.2, 0.2, (2, 6, 9)).astype(np.float32)
    last[:, :3] = first[:, :3]
    stayed = np.exp(-np.sum(((last - first).reshape(6, 3, 3) / 0.02) ** 2, axis=-1))
    inputs = np.column_stack(
        [[slow(row) for row in first], [slow(row) for row in last], stayed, first / 0.03, last / 0.03]
    )
    assert encoder.linear.weight.shape == (51, 4) and np.all(stayed[:, 0] == 1)
    np.testing.assert_allclose(encoder((first, last)), inputs @ encoder.linear.weight, rtol=1e-3, atol=1e-3)


def test_without_landmarks_pairs_remain():
    assert relations(np.zeros((2, 6), np.float32), Objects(2)).shape == (2, 3)
