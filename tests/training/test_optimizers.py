from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from planvec.training import optimizers
from planvec.training.config import Config
from planvec.training.update import make_optimizer


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


def changes(optimizer, gradients, params):
    """What becomes of the parameters' first updates, one after another."""
    state = optimizer.init(params)
    for gradient in gradients:
        change, state = optimizer.update(gradient, state, params)
        yield change


@pytest.fixture
def constant():
    """A training whose step size is 0.1 throughout."""
    return Config(samples=1000, batch=10, learning_rate=0.1, warmup=0, schedule="constant")


MATRIX, BIAS = jnp.full((12, 8), 2.0), jnp.full(8, 3.0)


@pytest.mark.parametrize("kind", ["muon", "adam"])
def test_weights_decay_by_the_step_size_times_the_weight_decay_under(kind, constant):
    """Where there is no gradient, that is all there is; of Muon's matrices and of Adam's biases."""
    params = {"matrix": MATRIX, "bias": BIAS}
    optimizer = make_optimizer(replace(constant, optimizer=kind, weight_decay=0.5).resolved())
    [change] = changes(optimizer, [jax.tree.map(jnp.zeros_like, params)], params)
    np.testing.assert_allclose(change["matrix"], np.full((12, 8), -0.1 * 0.5 * 2), rtol=1e-6)
    np.testing.assert_allclose(change["bias"], np.full(8, -0.1 * 0.5 * 3), rtol=1e-6)


def test_muon_has_nesterovs_momentum(constant):
    """m ← 0.95 m + g, and a step along g + 0.95 m"""
    one, other = jax.random.normal(jax.random.key(0), (2, 12, 8))
    optimizer = make_optimizer(replace(constant, optimizer="muon", weight_decay=0.0).resolved())
    first, second = changes(optimizer, [{"matrix": one}, {"matrix": other}], {"matrix": MATRIX})
    np.testing.assert_allclose(first["matrix"], -0.1 * alone(one), atol=1e-4)
    momentum = 0.95 * one + other
    np.testing.assert_allclose(second["matrix"], -0.1 * alone(other + 0.95 * momentum), atol=1e-4)
