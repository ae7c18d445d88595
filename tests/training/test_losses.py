"""Each loss against a float64 version in NumPy, and the total against its parts."""

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from planvec.agents import AGENTS, Weights, build
from planvec.agents.agent import Agent
from planvec.data.pairs import Batch
from planvec.training import losses
from planvec.worlds.spaces import Images

SHAPE = (33, 30, 3)
N = 5


@pytest.fixture(scope="module")
def batch() -> Batch:
    rng = np.random.default_rng(0)
    first, now, last, ref_first, ref_last = jnp.asarray(rng.integers(0, 128, (5, N, *SHAPE), np.uint8))
    return Batch(first=first, now=now, last=last, action=jnp.arange(N), ref_first=ref_first, ref_last=ref_last)


total = eqx.filter_jit(losses.total)
encode = eqx.filter_jit(lambda agent, first, last: agent.encode(first, last))
outputs = eqx.filter_jit(lambda agent, first, now, plans: agent.outputs(first, now, plans))


@functools.cache
def agent(name: str) -> Agent:
    return build(name, Images(SHAPE, 6), 16, key=jax.random.key(1))


def embeddings(count: int) -> list[np.ndarray]:
    return list(np.random.default_rng(2).normal(size=(count, N, 8)) / 2)


def numpy_triplet(a: np.ndarray, p: np.ndarray, n: np.ndarray) -> np.ndarray:
    return np.maximum(np.linalg.norm(a - p, axis=-1) - np.linalg.norm(a - n, axis=-1) + 1.0, 0.0)


def next_of(x: np.ndarray) -> np.ndarray:
    return np.stack([x[(i + 1) % len(x)] for i in range(len(x))])


def as_float32(arrays: list[np.ndarray]) -> list[jax.Array]:
    return [jnp.asarray(array, jnp.float32) for array in arrays]


def test_triplet():
    a, p, n = embeddings(3)
    np.testing.assert_allclose(losses.triplet(*as_float32([a, p, n])), numpy_triplet(a, p, n), rtol=1e-5)
    assert losses.triplet(*as_float32([a, a, a + 100])).max() == 0


def test_homomorphism():
    done, left, whole = embeddings(3)
    expected = numpy_triplet(done + left, whole, next_of(whole))
    np.testing.assert_allclose(losses.homomorphism(*as_float32([done, left, whole])), expected, rtol=1e-5)


def test_pair():
    whole, reference = embeddings(2)
    expected = numpy_triplet(whole, reference, next_of(reference))
    np.testing.assert_allclose(losses.pair(*as_float32([whole, reference])), expected, rtol=1e-5)


def test_contrastive():
    whole, reference = embeddings(2)
    reference[0] = whole[0]  # near enough to cost nothing
    s, positive = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (whole, reference))
    expected = np.maximum(0, 0.1 - (s * positive).sum(-1) + (s * next_of(positive)).sum(-1))
    assert expected[0] == 0 < expected[1]
    np.testing.assert_allclose(losses.contrastive(*as_float32([whole, reference])), expected, rtol=1e-5, atol=1e-6)


def test_imitation():
    logits, action = np.random.default_rng(3).normal(size=(N, 6)), np.arange(N)
    probability = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    expected = -np.log(probability[np.arange(N), action])
    head = agent("cpv-plain").policy.head
    np.testing.assert_allclose(losses.imitation(head, jnp.float32(logits), action), expected, rtol=1e-5)


def test_gradients_are_finite_where_distances_vanish():
    same = jnp.ones((N, 8))
    for loss in (losses.pair, losses.contrastive):
        assert np.isfinite(jax.grad(lambda x, loss=loss: loss(x, same).sum())(same)).all()
        assert np.isfinite(jax.grad(lambda x, loss=loss: loss(x, x).sum())(jnp.zeros((N, 8)))).all()


@pytest.mark.parametrize("name", ["naive", "tecnet", "te-full", "cpv-plain", "cpv-full"])
def test_total_is_the_sum_of_its_parts(name, batch):
    model, weights = agent(name), AGENTS[name].weights
    loss, metrics = total(model, batch, weights)
    reference, whole = encode(model, batch.ref_first, batch.ref_last), encode(model, batch.first, batch.last)
    logits = outputs(model, batch.first, batch.now, reference)
    expected = {"imitation": model.policy.head.loss(logits, batch.action).mean()}
    if weights.hom:
        parts = encode(model, batch.first, batch.now), encode(model, batch.now, batch.last)
        expected["hom"] = losses.homomorphism(*parts, whole).mean()
    if weights.pair:
        expected["pair"] = losses.pair(whole, reference).mean()
    if weights.contrastive:
        expected["contrastive"] = losses.contrastive(whole, reference).mean()
    assert metrics.keys() == expected.keys() | {"loss", "accuracy"}
    for part, value in expected.items():
        np.testing.assert_allclose(metrics[part], value, rtol=1e-4)
    np.testing.assert_allclose(loss, sum(getattr(weights, k) * v for k, v in expected.items()), rtol=1e-4)


def test_accuracy_counts_the_likeliest_actions(batch):
    model = agent("cpv-plain")
    reference = encode(model, batch.ref_first, batch.ref_last)
    likeliest = np.array(outputs(model, batch.first, batch.now, reference)).argmax(axis=-1)
    assert accuracy(model, batch._replace(action=jnp.array(likeliest))) == 1
    likeliest[0] = (likeliest[0] + 1) % 6
    np.testing.assert_allclose(accuracy(model, batch._replace(action=jnp.array(likeliest))), (N - 1) / N)


def accuracy(model: Agent, batch: Batch) -> float:
    return total(model, batch, Weights())[1]["accuracy"]


def calls(weights: Weights, name: str, batch: Batch) -> list[int]:
    """Batch sizes with which the encoder is called in one total."""
    sizes = []

    class Watched(eqx.Module):
        inner: eqx.Module

        def __call__(self, observations):
            sizes.append(len(observations[0]))
            return self.inner(observations)

    model = agent(name)
    model = dataclasses.replace(model, encoder=Watched(model.encoder))
    eqx.filter_eval_shape(losses.total, model, batch, weights)
    return sizes


def test_all_embeddings_come_from_one_call_and_only_those_needed(batch):
    assert calls(Weights(hom=1.0, pair=1.0), "cpv-full", batch) == [4 * N]
    assert calls(Weights(pair=1.0), "cpv-full", batch) == [3 * N]
    assert calls(Weights(), "cpv-full", batch) == [2 * N]
    assert calls(Weights(), "te-full", batch) == [N]
    assert calls(Weights(pair=1.0), "te-full", batch) == [2 * N]
    assert calls(Weights(imitation=0, pair=1.0), "cpv-full", batch) == [2 * N]
    assert calls(Weights(hom=jnp.zeros(())), "cpv-plain", batch) == [4 * N]


def test_weight_variants_train_together(batch):
    model = agent("cpv-full")
    variants = [(0.0, 0.0), (1.0, 1.0), (0.5, 0.0)]

    @jax.jit
    @jax.vmap
    def together(hom, pair):
        return losses.total(model, batch, Weights(hom=hom, pair=pair))[0]

    together = together(*jnp.array(variants).T)
    alone = [total(model, batch, Weights(hom=hom, pair=pair))[0] for hom, pair in variants]
    np.testing.assert_allclose(together, alone, rtol=1e-5)


def test_bfloat16_is_near_float32_and_gradients_stay_float32(batch):
    model, weights = agent("cpv-full"), AGENTS["cpv-full"].weights
    exact, _ = total(model, batch, weights)
    rough, _ = total(model, batch, weights, jnp.bfloat16)
    assert rough.dtype == jnp.float32
    np.testing.assert_allclose(rough, exact, rtol=0.05)
    gradient = eqx.filter_grad(losses.total, has_aux=True)
    gradients, _ = eqx.filter_eval_shape(gradient, model, batch, weights, jnp.bfloat16)
    assert {leaf.dtype for leaf in jax.tree.leaves(gradients)} == {jnp.dtype("float32")}


def test_naive_refuses_losses_on_plan_vectors(batch):
    with pytest.raises(ValueError, match="hom compare plan vectors"):
        losses.total(agent("naive"), batch, Weights(hom=1.0))
