import jax
import jax.numpy as jnp
import numpy as np
import pytest

from planvec.agents.encoders import METRES, ImageEncoder
from planvec.agents.policies import Categorical, PickAndPlace, Policy

SHAPE = (33, 30, 3)


def test_features_reach_the_mlp_without_relu_beside_the_plan():
    network = ImageEncoder(SHAPE, observations=1, features=8, key=jax.random.key(0))
    policy = Policy(network, (12, 5, 7), Categorical(7, 6, key=jax.random.key(2)), key=jax.random.key(1))
    image = np.random.default_rng(0).integers(0, 256, (2, *SHAPE), np.uint8)
    plan = jnp.arange(8.0).reshape(2, 4)
    x = np.concatenate([network((image,)), plan], axis=-1)
    assert (x < 0).any()
    for layer in policy.layers:
        x = np.maximum(x @ np.asarray(layer.weight) + np.asarray(layer.bias), 0)
    x = x @ np.asarray(policy.head.linear.weight)
    np.testing.assert_allclose(policy((image,), image, plan), x, rtol=1e-3, atol=1e-4)


def test_categorical_chooses_and_scores():
    head = Categorical(4, 3, key=jax.random.key(0))
    logits = jnp.log(jnp.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]))
    action = jnp.array([0, 1])
    np.testing.assert_array_equal(head.greedy(logits), [0, 2])
    np.testing.assert_array_equal(head.accuracy(logits, action), [1, 0])
    np.testing.assert_allclose(head.loss(logits, action.astype(jnp.uint8)), -np.log([0.7, 0.1]), rtol=1e-5)


def test_samples_follow_the_probabilities():
    logits = jnp.log(jnp.array([0.7, 0.2, 0.1]))
    head = Categorical(4, 3, key=jax.random.key(0))
    drawn = head.sample(jnp.broadcast_to(logits, (20_000, 3)), jax.random.key(0))
    np.testing.assert_allclose(np.bincount(drawn) / 20_000, [0.7, 0.2, 0.1], atol=0.02)


def test_pick_and_place_grasps_what_it_attends_to():
    head = PickAndPlace(5, objects=6, key=jax.random.key(0))
    hidden = jax.random.normal(jax.random.key(1), (4, 5))
    now = 0.2 * jax.random.normal(jax.random.key(2), (4, 18))
    outputs = head(hidden, now)
    attention = np.exp(hidden @ head.attention.weight)
    attention /= attention.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(outputs.attention, attention, rtol=1e-4)
    place = np.concatenate([hidden, attention], axis=1) @ head.place.weight * METRES
    where = np.asarray(now).reshape(4, 6, 3)[:, :, :2]
    action = head.greedy(outputs)
    np.testing.assert_allclose(action[:, :2], where[np.arange(4), attention.argmax(axis=1)], rtol=1e-6)
    np.testing.assert_allclose(action[:, 2:], place, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(head.sample(outputs, jax.random.key(3)), action)

    asked = 0.1 * jax.random.normal(jax.random.key(4), (4, 4))
    soft = np.concatenate([(attention[:, :, None] * where).sum(axis=1), place], axis=1)
    np.testing.assert_allclose(head.loss(outputs, asked), (((soft - asked) / METRES) ** 2).sum(axis=1), rtol=1e-3)


@pytest.mark.parametrize(("off", "right"), [((0.019, 0, 0, 0), 1), ((0.021, 0, 0, 0), 0), ((0, 0, 0, -0.021), 0)])
def test_accuracy_of_points_at_its_edge(off, right):
    head = PickAndPlace(5, objects=6, key=jax.random.key(0))
    outputs = head(jnp.ones((1, 5)), jnp.linspace(-0.2, 0.2, 18)[None])
    assert head.accuracy(outputs, head.greedy(outputs) + jnp.array([off])) == right
