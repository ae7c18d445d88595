"""Each loss against a float64 version in NumPy, and the total against its parts."""

import dataclasses
import functools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from planvec.agents import AGENTS, Weights, build
from planvec.agents.agent import Agent
from planvec.data.samples import Batch
from planvec.errors import InputError
from planvec.training import losses
from planvec.worlds.spaces import Images, Objects

SHAPE = (33, 30, 3)
N = 5
OVER = np.array([False, True, False, False, True])


@pytest.fixture(scope="module")
def batch() -> Batch:
    rng = np.random.default_rng(0)
    first, now, last, ref_first, ref_last, following = jnp.asarray(rng.integers(0, 128, (6, N, *SHAPE), np.uint8))
    return Batch(first, now, last, jnp.arange(N), ref_first, ref_last, over=jnp.zeros(N, bool), next=following)


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


def numpy_alike(whole: np.ndarray, reference: np.ndarray) -> np.ndarray:
    apart = ((reference - next_of(reference)) ** 2).sum(-1)
    return ((whole - reference) ** 2).sum(-1) / apart.mean()


def numpy_sparse(step: np.ndarray, whole: np.ndarray) -> np.ndarray:
    apart = ((whole - next_of(whole)) ** 2).sum(-1)
    return np.linalg.norm(step, axis=-1) / np.sqrt(apart.mean())


def numpy_stop(logit: np.ndarray, over: np.ndarray) -> np.ndarray:
    stops = 1 / (1 + np.exp(-logit))
    return len(over) * np.where(over, -np.log(stops) / over.sum(), -np.log(1 - stops) / (~over).sum())


def numpy_cancelling(whole: np.ndarray, reference: np.ndarray, share: float) -> np.ndarray:
    added = next_of(reference) - next_of(whole)
    added[math.ceil(share * len(added)) :] = 0
    return added


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


def test_alike():
    whole, reference = embeddings(2)
    expected = numpy_alike(whole, reference)
    np.testing.assert_allclose(losses.alike(*as_float32([whole, reference])), expected, rtol=1e-5)
    np.testing.assert_allclose(losses.alike(*as_float32([100 * whole, 100 * reference])), expected, rtol=1e-5)
    assert losses.alike(*as_float32([reference, reference])).max() == 0


def test_alike_is_nothing_where_all_plans_are_the_same():
    same = jnp.ones((N, 8))
    assert losses.alike(same, same).max() == 0


def test_sparse():
    step, whole = embeddings(2)
    found = losses.sparse(*as_float32([step, whole]))
    np.testing.assert_allclose(found, numpy_sparse(step, whole), rtol=1e-5)
    np.testing.assert_allclose(losses.sparse(*as_float32([100 * step, 100 * whole])), found, rtol=1e-5)
    assert losses.sparse(jnp.zeros((N, 8)), jnp.ones((N, 8))).max() == 0


def test_sparse_moves_nothing_but_the_step():
    """Plans would make a step small by growing apart."""
    step, whole = as_float32(embeddings(2))
    of_step, of_whole = jax.grad(lambda *plans: losses.sparse(*plans).sum(), argnums=(0, 1))(step, whole)
    assert of_step.any() and not of_whole.any()


def test_stop():
    logit = np.random.default_rng(4).normal(size=N)
    found = losses.stop(jnp.float32(logit), jnp.asarray(OVER))
    np.testing.assert_allclose(found, numpy_stop(logit, OVER), rtol=1e-5)
    stops = 1 / (1 + np.exp(-logit))
    both = -np.log(stops[OVER]).mean() - np.log(1 - stops[~OVER]).mean()  # whichever there are more of
    np.testing.assert_allclose(found.mean(), both, rtol=1e-5)


@pytest.mark.parametrize("over", [False, True])
def test_stop_where_all_moments_are_of_one_kind(over):
    logit = np.random.default_rng(4).normal(size=N)
    found = losses.stop(jnp.float32(logit), jnp.full(N, over))
    np.testing.assert_allclose(found, np.log1p(np.exp(-logit if over else logit)), rtol=1e-5)


@pytest.mark.parametrize(("share", "some"), [(0.0, 0), (0.4, 2), (0.75, 4), (1.0, 5)])
def test_cancelling(share, some):
    """As many samples as it is a share of them, and nothing where plans of pairs are equal."""
    whole, reference = embeddings(2)
    found = losses.cancelling(*as_float32([whole, reference]), share)
    np.testing.assert_allclose(found, numpy_cancelling(whole, reference, share), rtol=1e-5, atol=1e-6)
    assert np.any(found, axis=-1).tolist() == [True] * some + [False] * (N - some)
    np.testing.assert_array_equal(losses.cancelling(*as_float32([whole, reference]), jnp.float32(share)), found)
    assert not losses.cancelling(*as_float32([reference, reference]), share).any()


def test_imitation():
    logits, action = np.random.default_rng(3).normal(size=(N, 6)), np.arange(N)
    probability = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    expected = -np.log(probability[np.arange(N), action])
    head = agent("cpv-plain").policy.head
    np.testing.assert_allclose(losses.imitation(head, jnp.float32(logits), action), expected, rtol=1e-5)


def test_gradients_are_finite_where_distances_vanish():
    same = jnp.ones((N, 8))
    for loss in (losses.pair, losses.contrastive, losses.alike, losses.sparse):
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


@pytest.fixture(scope="module")
def moved() -> Batch:
    """Of three objects; two of the samples are last moments."""
    rng = np.random.default_rng(5)
    first, now, last, ref_first, ref_last, following = jnp.asarray(rng.uniform(-0.2, 0.2, (6, N, 9)), jnp.float32)
    now = jnp.where(OVER[:, None], last, now)
    action = jnp.asarray(rng.uniform(-0.2, 0.2, (N, 4)), jnp.float32)
    return Batch(first, now, last, action, ref_first, ref_last, over=jnp.asarray(OVER), next=following)


def test_total_of_a_model_that_stops_is_the_sum_of_its_parts(moved):
    model, weights = build("potential", Objects(3), 16, key=jax.random.key(1)), AGENTS["potential"].weights
    model = eqx.tree_at(lambda model: model.encoder.linear.weight, model, replace_fn=lambda weight: 100 * weight)
    loss, metrics = total(model, moved, weights)
    reference, whole = encode(model, moved.ref_first, moved.ref_last), encode(model, moved.first, moved.last)
    exact = [np.float64(plans) for plans in (whole, reference)]
    asked = reference + jnp.float32(numpy_cancelling(*exact, weights.cancelling))
    found = outputs(model, moved.first, moved.now, asked)
    head = model.policy.head
    expected = {
        "imitation": head.loss(found, moved.action)[~OVER].mean(),
        "stop": numpy_stop(np.float64(found.stop), OVER).mean(),
        "alike": numpy_alike(*exact).mean(),
    }
    assert metrics.keys() == expected.keys() | {"loss", "accuracy", "stop_accuracy"}
    for part, value in expected.items():
        np.testing.assert_allclose(metrics[part], value, rtol=1e-4)
    np.testing.assert_allclose(metrics["stop_accuracy"], ((found.stop > 0) == OVER).mean(), rtol=1e-6)
    summed = expected["imitation"] + weights.stop * expected["stop"] + weights.alike * expected["alike"]
    assert 0 < weights.stop < weights.alike  # so that each is weighed by its own
    np.testing.assert_allclose(loss, summed, rtol=1e-4)


def test_total_in_play_imitates_the_stretch_itself(moved):
    """The reference, which is nearly the same stretch, is for the losses on pairs alone."""
    model, weights = (
        build("potential", Objects(3), 16, key=jax.random.key(1)),
        Weights(stop=0.3, sparse=0.2, alike=0.5, cancelling=0.5),
    )
    loss, metrics = total(model, moved, weights, asked="whole")
    reference, whole = encode(model, moved.ref_first, moved.ref_last), encode(model, moved.first, moved.last)
    exact = [np.float64(plans) for plans in (whole, reference)]
    found = outputs(model, moved.first, moved.now, whole + jnp.float32(numpy_cancelling(*exact, 0.5)))
    expected = {
        "imitation": model.policy.head.loss(found, moved.action)[~OVER].mean(),
        "stop": numpy_stop(np.float64(found.stop), OVER).mean(),
        "alike": numpy_alike(*exact).mean(),
        "sparse": numpy_sparse(np.float64(encode(model, moved.now, moved.next)), exact[0]).mean(),
    }
    for part, value in expected.items():
        np.testing.assert_allclose(metrics[part], value, rtol=1e-4)
    summed = sum(getattr(weights, part) * value for part, value in expected.items())
    np.testing.assert_allclose(loss, summed, rtol=1e-4)


def test_last_moments_are_not_imitated(batch):
    model, over = agent("cpv-plain"), jnp.asarray(OVER)
    reference = encode(model, batch.ref_first, batch.ref_last)
    found = outputs(model, batch.first, batch.now, reference)
    for action in (batch.action, jnp.where(over, 5 - batch.action, batch.action)):
        _, metrics = total(model, batch._replace(action=action, over=over), Weights())
        for name, each in (("imitation", model.policy.head.loss), ("accuracy", model.policy.head.accuracy)):
            np.testing.assert_allclose(metrics[name], each(found, batch.action)[~OVER].mean(), rtol=1e-4)
    _, metrics = total(model, batch._replace(over=jnp.ones(N, bool)), Weights())
    assert metrics["imitation"] == metrics["accuracy"] == 0


def test_accuracy_counts_the_likeliest_actions(batch):
    model = agent("cpv-plain")
    reference = encode(model, batch.ref_first, batch.ref_last)
    likeliest = np.array(outputs(model, batch.first, batch.now, reference)).argmax(axis=-1)
    assert accuracy(model, batch._replace(action=jnp.array(likeliest))) == 1
    likeliest[0] = (likeliest[0] + 1) % 6
    np.testing.assert_allclose(accuracy(model, batch._replace(action=jnp.array(likeliest))), (N - 1) / N)


def accuracy(model: Agent, batch: Batch) -> float:
    return total(model, batch, Weights())[1]["accuracy"]


def calls(weights: Weights, name: str, batch: Batch, **how: str) -> list[int]:
    """Batch sizes with which the encoder is called in one total."""
    sizes = []

    class Watched(eqx.Module):
        inner: eqx.Module

        def __call__(self, observations):
            sizes.append(len(observations[0]))
            return self.inner(observations)

    model = agent(name)
    model = dataclasses.replace(model, encoder=Watched(model.encoder))
    eqx.filter_eval_shape(losses.total, model, batch, weights, **how)
    return sizes


def test_all_embeddings_come_from_one_call_and_only_those_needed(batch):
    assert calls(Weights(hom=1.0, pair=1.0), "cpv-full", batch) == [4 * N]
    assert calls(Weights(pair=1.0), "cpv-full", batch) == [3 * N]
    assert calls(Weights(), "cpv-full", batch) == [2 * N]
    assert calls(Weights(), "te-full", batch) == [N]
    assert calls(Weights(pair=1.0), "te-full", batch) == [2 * N]
    assert calls(Weights(imitation=0, pair=1.0), "cpv-full", batch) == [2 * N]
    assert calls(Weights(hom=jnp.zeros(())), "cpv-plain", batch) == [4 * N]
    assert calls(Weights(alike=1.0), "te-full", batch) == [2 * N]
    assert calls(Weights(sparse=1.0), "cpv-plain", batch) == [4 * N]
    assert calls(Weights(sparse=1.0), "cpv-plain", batch, asked="whole") == [3 * N]
    assert calls(Weights(cancelling=0.5), "cpv-plain", batch) == [3 * N]
    assert calls(Weights(imitation=0, pair=1.0, cancelling=0.5), "cpv-plain", batch) == [2 * N]


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


@pytest.mark.parametrize("name", ["hom", "alike", "cancelling", "sparse"])
def test_naive_refuses_losses_on_plan_vectors(name, batch):
    with pytest.raises(InputError, match=rf"^{name} .*plan vectors, and this agent \(naive\)"):
        losses.total(agent("naive"), batch, Weights(**{name: 1.0}))
