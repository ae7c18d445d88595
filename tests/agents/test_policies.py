import jax
import jax.numpy as jnp
import numpy as np
import pytest

from planvec.agents.encoders import ImageEncoder
from planvec.agents.policies import METRES, AttendAndPlace, Categorical, Ending, LayeredPolicy, PickAndPlace, Stopping
from planvec.errors import InputError

SHAPE = (33, 30, 3)


def test_features_reach_the_mlp_without_relu_beside_the_plan():
    network = ImageEncoder(SHAPE, observations=1, features=8, key=jax.random.key(0))
    policy = LayeredPolicy(network, (12, 5, 7), Categorical(7, 6, key=jax.random.key(2)), key=jax.random.key(1))
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
    for shift in (0, 3):  # logits are what they are beside each other
        surprise = head.loss(logits + shift, action.astype(jnp.uint8))
        np.testing.assert_allclose(surprise, -np.log([0.7, 0.1]), rtol=1e-5)


def test_samples_follow_the_probabilities():
    logits = jnp.log(jnp.array([0.7, 0.2, 0.1]))
    head = Categorical(4, 3, key=jax.random.key(0))
    drawn = head.sample(jnp.broadcast_to(logits, (20_000, 3)), jax.random.key(0))
    np.testing.assert_allclose(np.bincount(drawn) / 20_000, [0.7, 0.2, 0.1], atol=0.02)


def test_chances_of_stopping_and_of_each_action_add_up_to_one():
    """And are those by which actions are sampled: one stop beside the three actions."""
    head = Stopping(Categorical(4, 3, key=jax.random.key(0)), 4, key=jax.random.key(1))
    logits = jnp.log(jnp.array([0.7, 0.2, 0.1]))
    outputs = Ending(jnp.tile(logits, (4, 1)), jnp.full(4, jnp.log(0.25 / 0.75)))
    stop = jnp.array([True, False, False, False])
    chances = jnp.exp(head.log_chance(outputs, jnp.array([0, 0, 1, 2]), stop))
    np.testing.assert_allclose(chances, [0.25, 0.75 * 0.7, 0.75 * 0.2, 0.75 * 0.1], rtol=1e-5)
    assert not head.stops(outputs).any() and head.stops(Ending(logits[None], jnp.ones(1))).all()


def test_entropy_by_hand():
    head = Categorical(4, 3, key=jax.random.key(0))
    chances = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]])
    np.testing.assert_allclose(head.entropy(jnp.log(chances)), -(chances * np.log(chances)).sum(axis=1), rtol=1e-5)


def test_a_head_without_chances_cannot_practise():
    head = PickAndPlace(5, objects=6, key=jax.random.key(0))
    with pytest.raises(InputError, match="PickAndPlace gives its actions no chances"):
        head.log_density(head(jnp.ones((1, 5)), jnp.ones((1, 18))), jnp.ones((1, 4)))


def test_pick_and_place_puts_each_object_in_its_place():
    head = PickAndPlace(5, objects=6, key=jax.random.key(0))
    hidden = jax.random.normal(jax.random.key(1), (4, 5))
    now = 0.2 * jax.random.normal(jax.random.key(2), (4, 18))
    outputs = head(hidden, now)
    logits = np.asarray(hidden @ head.attention.weight)
    where = np.asarray(now).reshape(4, 6, 3)
    places = np.asarray(hidden @ head.place.weight).reshape(4, 6, 2) * METRES
    every, best = np.arange(4), logits.argmax(axis=1)
    action = np.concatenate([where[every, best, :2], places[every, best]], axis=1)
    np.testing.assert_allclose(head.greedy(outputs), action, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(head.sample(outputs, jax.random.key(3)), head.greedy(outputs))

    taken = np.array([0, 5, 2, 2])
    asked = np.concatenate([where[every, taken, :2], 0.1 * np.ones((4, 2))], axis=1)
    surprise = np.log(np.exp(logits).sum(axis=1)) - logits[every, taken]
    off = ((places[every, taken] - 0.1) / METRES) ** 2
    flat = outputs._replace(objects=outputs.objects.at[..., 2].set(0.02))  # no object above another
    np.testing.assert_allclose(head.loss(flat, asked), surprise + off.sum(axis=1), rtol=1e-3)


def test_the_papers_head_grasps_at_the_mean_and_has_one_place():
    head = AttendAndPlace(5, objects=6, key=jax.random.key(0))
    hidden = jax.random.normal(jax.random.key(1), (4, 5))
    now = 0.2 * jax.random.normal(jax.random.key(2), (4, 18))
    outputs = head(hidden, now)
    logits = np.asarray(hidden @ head.attention.weight)
    attention = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    where = np.asarray(now).reshape(4, 6, 3)[..., :2]
    place = np.concatenate([hidden, attention], axis=1) @ np.asarray(head.place.weight) * METRES
    action = np.concatenate([where[np.arange(4), logits.argmax(axis=1)], place], axis=1)
    np.testing.assert_allclose(head.greedy(outputs), action, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(head.sample(outputs, jax.random.key(3)), head.greedy(outputs))
    grasp = (attention[..., None] * where).sum(axis=1)
    off = (np.concatenate([grasp, place], axis=1) - 0.1) / METRES
    np.testing.assert_allclose(head.loss(outputs, np.full((4, 4), 0.1)), (off**2).sum(axis=1), rtol=1e-4)


@pytest.mark.parametrize(("point", "which"), [((0.0, 0.0), 1), ((0.004, -0.004), 1), ((0.05, 0.0), 2), ((0.3, 0.0), 2)])
def test_a_grasp_takes_the_nearest_object_and_of_a_pile_the_top(point, which):
    objects = jnp.array([(0.0, 0.0, 0.02), (0.004, 0.0, 0.06), (0.045, 0.0, 0.02), (-0.2, 0.0, 0.14)])
    assert PickAndPlace(5, objects=4, key=jax.random.key(0)).grasped(objects, jnp.array(point)) == which


@pytest.mark.parametrize(("off", "right"), [((0.019, 0, 0, 0), 1), ((0.021, 0, 0, 0), 0), ((0, 0, 0, -0.021), 0)])
def test_accuracy_of_points_at_its_edge(off, right):
    head = PickAndPlace(5, objects=6, key=jax.random.key(0))
    outputs = head(jnp.ones((1, 5)), jnp.linspace(-0.2, 0.2, 18)[None])
    assert head.accuracy(outputs, head.greedy(outputs) + jnp.array([off])) == right
