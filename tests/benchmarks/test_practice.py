import jax
import jax.numpy as jnp
import pytest

from planvec.benchmarks import practice, work

SIZE = practice.Size(envs=4, rollout=2, pool=2, rounds=2)


@pytest.fixture
def bench(monkeypatch):
    """Few sums: each takes a program of its own to be made."""
    config = practice.PracticeConfig(sums="1,1+1", pool=2, envs=4, rollout=2, minibatch=4)
    monkeypatch.setattr(practice.Size, "config", lambda size: config)
    return practice.prepare(practice.make("crafting"), SIZE)


def test_what_is_usual_are_the_numbers_of_practice():
    world = practice.make("crafting")
    usual = practice.PracticeConfig().resolved(world)
    config = practice.ACCELERATED.config().resolved(world)
    assert (config.sums, config.envs, config.rollout) == (usual.sums, usual.envs, usual.rollout)
    assert config.minibatch == usual.minibatch


@pytest.mark.slow
def test_acting_and_learning_alone_make_a_round(bench):
    """The same that a round does, to the last bit or nearly."""
    _, seen, last = practice.acting_alone(bench)()
    learner, _, _ = practice.learning_alone(bench, seen, last)()
    after = practice.whole_rounds(bench, 1)()
    for ours, theirs in zip(jax.tree.leaves(learner), jax.tree.leaves(after.learner), strict=True):
        assert jnp.allclose(ours, theirs, atol=1e-6)
    assert int(practice.whole_rounds(bench, 2)().step) == 2


@pytest.mark.slow
def test_every_row_is_measured(bench, monkeypatch):
    monkeypatch.setattr(practice, "prepare", lambda world, size: bench)
    monkeypatch.setattr(work, "matrix_peak", lambda: 1e9)
    rows = list(practice.run(batches=(4,), actions=2))
    units = ["steps/s", "MFLOP", "TFLOP/s", "% of that peak"]
    assert [row.unit for row in rows] == ["TFLOP/s", *3 * units, "ms"]
    assert all(row.rate > 0 for row in rows)
    whole, acting, learning = (rows[i].rate for i in (2, 6, 10))
    assert whole == pytest.approx(acting + learning)
