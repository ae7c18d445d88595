"""What each of the agents that train together is shown, step by step."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from planvec.training import update
from planvec.training.config import ENDED, Config
from planvec.training.runs import State

SEEDS, STEPS, BATCH = (3, 4), 3, 8
KINDS = tuple(Config(agent=agent, batch=BATCH) for agent in ("te-plain", "te-full"))


class Numbers(eqx.Module):
    """In place of pairs: samples are random numbers."""

    def sample(self, key, batch, ended):
        return jax.random.uniform(key, (batch,))


NUMBERS = Numbers()


class Ended(Numbers):
    """In place of pairs: samples are the share of last moments that was asked for."""

    def sample(self, key, batch, ended):
        return jnp.full(batch, ended)


@pytest.fixture
def seen(monkeypatch):
    """A function that trains agents which do nothing but remember their samples, all numbers apart."""

    def remember(state, batch, weights, config):
        return State(agent=state.agent.at[state.step].set(batch), optimizer=(), step=state.step + 1), {}

    monkeypatch.setattr(update, "update", remember)

    def train(seeds=SEEDS, kinds=KINDS, pieces=(STEPS,), pairs=NUMBERS):
        count = len(seeds) * len(kinds)
        states = State(jnp.zeros((count, STEPS, BATCH)), (), jnp.zeros(count, jnp.int32))
        for updates in pieces:
            states, _ = update.chunk(states, pairs, jnp.array(seeds, jnp.uint32), updates, kinds)
        return np.array(states.agent).reshape(len(seeds), len(kinds), STEPS, BATCH)

    return train


def test_every_seed_is_given_samples_of_its_own(seen):
    one, other = seen()[:, 0]
    assert not set(one.ravel()) & set(other.ravel())


def test_every_step_is_given_samples_of_its_own(seen):
    for steps in seen()[:, 0]:
        assert len(set(steps.ravel())) == STEPS * BATCH


def test_all_kinds_with_one_seed_are_given_the_same_samples(seen):
    for one, other in seen():
        np.testing.assert_array_equal(one, other)


def test_metrics_are_means_over_the_updates_of_a_chunk(monkeypatch):
    monkeypatch.setattr(
        update, "update", lambda state, *_: (state._replace(step=state.step + 1), {"step": 1.0 * state.step})
    )
    states = State((), (), jnp.array([4]))
    _, metrics = update.chunk(states, NUMBERS, jnp.array(SEEDS[:1], jnp.uint32), 3, KINDS[:1])
    assert metrics["step"].tolist() == [5]  # of 4, 5 and 6


def test_samples_follow_from_the_seed_and_the_step_alone(seen):
    """Not from what trains beside, nor from how the steps are cut into chunks."""
    together = seen()
    np.testing.assert_array_equal(seen(seeds=SEEDS[1:], kinds=KINDS[:1])[0, 0], together[1, 0])
    np.testing.assert_array_equal(seen(pieces=(1, 2)), together)


def test_last_moments_are_shown_to_what_learns_to_stop(seen):
    stops = tuple(replace(kind, stop=0.3) for kind in KINDS)
    for kinds, share in ((KINDS, 0.0), (stops, ENDED)):
        np.testing.assert_array_equal(seen(seeds=SEEDS[:1], kinds=kinds, pairs=Ended()), share)


def test_each_kind_is_trained_on_its_own_losses(monkeypatch):
    def remember(state, batch, weights, config):
        return State(agent=jnp.stack([weights.hom, weights.pair]), optimizer=(), step=state.step + 1), {}

    monkeypatch.setattr(update, "update", remember)
    kinds = tuple(Config(agent=agent, batch=BATCH) for agent in ("te-plain", "te-hom", "te-full"))
    states = State(jnp.zeros((6, 2)), (), jnp.zeros(6, jnp.int32))
    states, _ = update.chunk(states, NUMBERS, jnp.array(SEEDS, jnp.uint32), 1, kinds)
    np.testing.assert_array_equal(states.agent, [[0, 0], [1, 0], [1, 1]] * 2)


def test_each_kind_is_validated_on_its_own_losses_and_all_on_the_same_samples(monkeypatch):
    """Which are random numbers here; their first one is kept as a figure."""

    def total(agent, batch, weights, dtype, asked):
        return None, {"agent": agent, "hom": weights.hom + 0.0, "pair": weights.pair + 0.0, "sample": batch[0]}

    monkeypatch.setattr(update.losses, "total", total)
    kinds = tuple(Config(agent=agent, batch=BATCH) for agent in ("te-plain", "te-hom", "te-full"))
    figures = update.validate(jnp.arange(6.0), NUMBERS, kinds)
    np.testing.assert_array_equal(figures["agent"], np.arange(6))
    np.testing.assert_array_equal(jnp.stack([figures["hom"], figures["pair"]], axis=1), [[0, 0], [1, 0], [1, 1]] * 2)
    assert len(set(figures["sample"].tolist())) == 1
    np.testing.assert_array_equal(figures["sample"], update.validate(jnp.arange(6.0), NUMBERS, kinds)["sample"])


def test_losses_weigh_as_each_kind_has_them():
    kinds = tuple(Config(agent=agent) for agent in ("te-plain", "te-hom", "te-full"))
    each = [update.weights_of(kinds, jnp.array(kind)) for kind in range(3)]
    assert [(float(w.imitation), float(w.hom), float(w.pair)) for w in each] == [(1, 0, 0), (1, 1, 0), (1, 1, 1)]
    for name in ("contrastive", "alike", "stop", "cancelling", "sparse"):
        weight = getattr(each[0], name)
        assert weight == 0.0 and isinstance(weight, float)  # a constant: left out of the program
