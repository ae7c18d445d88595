import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from planvec.agents.encoders import ImageEncoder
from planvec.agents.policies import (
    METRES,
    AttendAndPlace,
    Categorical,
    Choices,
    Ending,
    LayeredPolicy,
    PickAndPlace,
    Stopping,
)
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


def a_table(coincide=False):
    """What PickAndPlace would do with four objects, some of them likelier to be taken; the last two may be in one
    place."""
    objects = jnp.array([(0.1, 0.0, 0.02), (-0.1, 0.05, 0.02), (0.02, -0.1, 0.0), (0.02, -0.1, 0.054)])
    if not coincide:
        objects = objects.at[3, 0].add(0.001)
    places = jnp.array([(0.2, 0.1), (0.0, 0.0), (-0.1, 0.1), (-0.1, 0.106)])
    return Choices(jnp.log(jnp.array([0.4, 0.3, 0.2, 0.1])), objects, places)


def density(table, action, spread):
    """By hand: Σ π(object) · N(x₁) · N(y₁) over the objects in the middle of which the hand takes hold."""
    total = 0.0
    shares = np.exp(np.asarray(table.logits, np.float64))
    for share, middle, place in zip(shares, np.asarray(table.objects), np.asarray(table.places), strict=True):
        if math.dist(middle[:2], action[:2]) < 1e-5:
            around = [math.exp(-(((a - b) / spread) ** 2) / 2) for a, b in zip(action[2:], place, strict=True)]
            total += share * math.prod(around) / (2 * math.pi * spread**2)
    return total


@pytest.mark.parametrize("coincide", [False, True])
def test_what_is_explored_has_the_density_that_is_said(coincide):
    """Against a sum by hand; and what is drawn is drawn so often."""
    head = PickAndPlace(5, objects=4, key=jax.random.key(0))
    one = a_table(coincide)
    table = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (8000, *leaf.shape)), one)
    drawn = np.asarray(head.explore(table, jax.random.key(1)))
    found = head.log_density(table, drawn)
    expected = [math.log(density(one, action, head.SPREAD)) for action in drawn[:200]]
    np.testing.assert_allclose(found[:200], expected, rtol=1e-3, atol=2e-3)

    taken = [np.flatnonzero(np.abs(drawn[:, :2] - middle[:2]).max(axis=1) < 1e-5) for middle in one.objects]
    shares = [0.4, 0.3, *([0.3, 0.3] if coincide else [0.2, 0.1])]
    np.testing.assert_allclose([len(rows) / len(drawn) for rows in taken], shares, atol=0.02)
    off = drawn[taken[1], 2:] - np.asarray(one.places[1])
    np.testing.assert_allclose(off.mean(axis=0), 0, atol=5e-4)
    np.testing.assert_allclose(off.std(axis=0), head.SPREAD, rtol=0.1)
    assert not np.array_equal(head.sample(table, jax.random.key(1)), drawn)  # acting is as careful as before


def test_the_density_of_what_is_explored_sums_to_the_chance_of_its_object():
    """Over a fine grid of places."""
    head = PickAndPlace(5, objects=4, key=jax.random.key(0))
    table = a_table()
    offsets = np.arange(-0.025, 0.025, 0.001)
    grid = np.stack(np.meshgrid(offsets, offsets), axis=-1).reshape(-1, 2)
    tables = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (len(grid), *leaf.shape)), table)
    for middle, place, share in zip(table.objects, table.places, (0.4, 0.3, 0.2, 0.1), strict=True):
        actions = np.concatenate([np.broadcast_to(middle[:2], grid.shape), grid + np.asarray(place)], axis=1)
        total = np.exp(np.asarray(head.log_density(tables, actions), np.float64)).sum() * 0.001**2
        assert total == pytest.approx(share, rel=0.01)
    assert head.entropy(table) == pytest.approx(-sum(share * math.log(share) for share in (0.4, 0.3, 0.2, 0.1)))


def test_a_head_without_chances_says_so():
    head = AttendAndPlace(5, objects=6, key=jax.random.key(0))
    with pytest.raises(InputError, match="AttendAndPlace gives its actions no chances: such an agent cannot practise"):
        head.log_density(None, jnp.zeros(4))
