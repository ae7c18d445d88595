import jax
import jax.numpy as jnp
import numpy as np
import pytest

from planvec.training import optimizers


def alone(matrix):
    """Muon's step for one matrix, in NumPy and double precision."""
    flat = np.asarray(matrix, np.float64).reshape(-1, matrix.shape[-1])
    x = flat / np.linalg.norm(flat)
    for _ in range(optimizers.ROUNDS):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return 0.2 * max(flat.shape) ** 0.5 * x.reshape(matrix.shape)


SHAPES = {"tall": (40, 16), "wide": (9, 30), "square": (64, 64), "kernel": (3, 3, 6, 16), "large": (70, 100)}


@pytest.fixture(scope="module")
def momenta():
    keys = jax.random.split(jax.random.key(0), len(SHAPES))
    return {name: jax.random.normal(key, SHAPES[name]) for name, key in zip(SHAPES, keys, strict=True)}


def test_matrices_that_go_together_become_what_each_becomes_alone(momenta):
    steps = optimizers.orthogonal(momenta, jnp.float32)
    for name, momentum in momenta.items():
        np.testing.assert_allclose(steps[name], alone(momentum), rtol=1e-3, atol=1e-3)


def test_what_is_filled_up_stays_out(momenta):
    """A matrix has the same step in whatever company."""
    for name in momenta:
        [step] = jax.tree.leaves(optimizers.orthogonal({name: momenta[name]}, jnp.float32))
        np.testing.assert_allclose(step, optimizers.orthogonal(momenta, jnp.float32)[name], rtol=1e-4, atol=1e-4)


def test_nothing_comes_of_nothing():
    assert not np.any(optimizers.orthogonal({"w": jnp.zeros((4, 4))}, jnp.float32)["w"])
