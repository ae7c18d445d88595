import jax
import jax.numpy as jnp
import numpy as np

from planvec.agents.encoders import ImageEncoder
from planvec.agents.policies import Categorical, Policy

SHAPE = (33, 30, 3)


def test_the_mlp_has_the_papers_sizes():
    network = ImageEncoder(SHAPE, observations=1, features=512, key=jax.random.key(0))
    policy = Policy(network, inputs=1024, head=Categorical(6), key=jax.random.key(1))
    shapes = [layer.weight.shape for layer in policy.layers]
    assert shapes == [(1024, 64), (64, 64), (64, 64), (64, 64), (64, 6)]
    assert policy((np.zeros((3, *SHAPE), np.uint8),), jnp.zeros((3, 512))).shape == (3, 6)


def test_features_reach_the_mlp_without_relu_beside_the_plan():
    network = ImageEncoder(SHAPE, observations=1, features=8, key=jax.random.key(0))
    policy = Policy(network, inputs=12, head=Categorical(6), key=jax.random.key(1))
    image = np.random.default_rng(0).integers(0, 256, (2, *SHAPE), np.uint8)
    plan = jnp.arange(8.0).reshape(2, 4)
    x = np.concatenate([network((image,)), plan], axis=-1)
    assert (x < 0).any()
    for layer in policy.layers[:-1]:
        x = np.maximum(x @ np.asarray(layer.weight) + np.asarray(layer.bias), 0)
    x = x @ np.asarray(policy.layers[-1].weight)
    np.testing.assert_allclose(policy((image,), plan), x, rtol=1e-3, atol=1e-4)


def test_categorical_chooses_and_scores():
    head = Categorical(3)
    logits = jnp.log(jnp.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]))
    action = jnp.array([0, 1])
    assert head.size == 3
    np.testing.assert_array_equal(head.greedy(logits), [0, 2])
    np.testing.assert_array_equal(head.accuracy(logits, action), [1, 0])
    np.testing.assert_allclose(head.loss(logits, action.astype(jnp.uint8)), -np.log([0.7, 0.1]), rtol=1e-5)


def test_samples_follow_the_probabilities():
    logits = jnp.log(jnp.array([0.7, 0.2, 0.1]))
    drawn = Categorical(3).sample(jnp.broadcast_to(logits, (20_000, 3)), jax.random.key(0))
    np.testing.assert_allclose(np.bincount(drawn) / 20_000, [0.7, 0.2, 0.1], atol=0.02)
