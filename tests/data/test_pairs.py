import jax
import numpy as np
import pytest

from planvec.data.pairs import NOISE, PairSet
from planvec.worlds import make

MANY = 1024


@pytest.fixture(scope="module")
def pairs():
    return PairSet.fresh(make("own_world:Coins"), 16, (0,))


def test_fresh_pairs_are_by_an_expert_with_noise():
    asked = []

    class Watched(type(make("own_world:Coins"))):
        def record(self, tasks, seed, noise=0.0, *rest):
            asked.append(noise)
            return super().record(tasks, seed, noise, *rest)

    PairSet.fresh(Watched(), 2, (0,))
    assert asked == [NOISE] and NOISE > 0


sample = jax.jit(lambda pairs, ended: pairs.sample(jax.random.key(0), MANY, ended))


def test_without_ended_no_moment_is_the_last(pairs):
    """Whatever else is drawn, samples are the same."""
    batch = sample(pairs, 0.0)
    assert not batch.over.any() and (batch.now != batch.last).any(axis=-1).all()
    for one, other in zip(batch, pairs.sample(jax.random.key(0), MANY), strict=True):
        np.testing.assert_array_equal(one, other)


def test_all_ended_are_last_moments_alone(pairs):
    batch = sample(pairs, 1.0)
    assert batch.over.all() and np.isfinite(batch.action).all()  # which means nothing, but must not break a sum
    np.testing.assert_array_equal(batch.now, batch.last)


def test_a_share_of_samples_are_last_moments(pairs):
    """Those alone are others than they would be without."""
    usual, batch = sample(pairs, 0.0), sample(pairs, 1 / 8)
    assert MANY / 16 < batch.over.sum() < MANY / 4
    np.testing.assert_array_equal((batch.now == batch.last).all(axis=-1), batch.over)
    going = ~np.array(batch.over)
    np.testing.assert_array_equal(batch.now[going], usual.now[going])
    np.testing.assert_array_equal(batch.action[going], usual.action[going])
    for name in ("first", "last", "ref_first", "ref_last"):
        np.testing.assert_array_equal(getattr(batch, name), getattr(usual, name))
