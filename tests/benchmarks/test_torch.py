"""The models in PyTorch are ours: the same weights give the same losses, outputs and gradients."""

import equinox as eqx
import jax
import numpy as np
import pytest

from planvec.data.pairs import PairSet
from planvec.training import losses
from planvec.training.config import Config
from planvec.training.update import start
from planvec.worlds import make

pytest.importorskip("torch")

import torch

from planvec.benchmarks import torch_cpv, torch_potential, torch_training

WORLD = make("crafting")
MODELS = {"cpv-full": torch_cpv, "potential": torch_potential}


@pytest.fixture(scope="module")
def batch():
    tasks = [task for task in WORLD.sample_tasks((0,), 32, 1, 2) for _ in range(2)]
    demos = WORLD.record(tasks, (1,), 0.1)
    pairs = PairSet.of(WORLD, WORLD.replay(demos), demos.actions, demos.lengths)
    return pairs.sample(jax.random.key(0), 16, ended=0.25)


def fresh(name):
    config = Config(agent=name, batch=16, optimizer="adam", warmup=0).resolved()
    return start(config).agent, config


@pytest.mark.parametrize("name", MODELS)
def test_it_has_as_many_weights(name):
    agent, _ = fresh(name)
    theirs = sum(weights.numel() for weights in MODELS[name].convert(agent).parameters())
    assert theirs == sum(leaf.size for leaf in jax.tree.leaves(agent))


@pytest.mark.parametrize("name", MODELS)
def test_losses_and_gradients_are_ours(name, batch):
    agent, config = fresh(name)
    if name == "cpv-full":  # it does not stop, and counts a last moment as any other
        batch = batch._replace(over=np.zeros(16, bool))
    gradient = eqx.filter_value_and_grad(lambda agent: losses.total(agent, batch, config.weights)[0])
    value, gradients = gradient(agent)
    model = MODELS[name].convert(agent)
    loss = model.loss(MODELS[name].ready(batch, "cpu"))
    assert loss.item() == pytest.approx(float(value), abs=1e-3)
    loss.backward()
    ours = {parameter: values.detach() for parameter, values in MODELS[name].convert(gradients).named_parameters()}
    zero = 1e-4 * max(values.abs().max() for values in ours.values())  # what cancels does so but for rounding
    for parameter, theirs in model.named_parameters():
        tolerance = float(1e-2 * ours[parameter].abs().max() + zero)  # a ReLU at 0 may go either way
        assert torch.allclose(theirs.grad, ours[parameter], atol=tolerance), parameter


def test_the_residual_policy_does_the_same(batch):
    agent, _ = fresh("potential")
    plans = 3 * jax.random.normal(jax.random.key(1), (16, 64))
    ours = agent.policy((batch.now,), batch.now, plans)
    sample = torch_potential.ready(batch, "cpu")
    model = torch_potential.convert(agent)
    actions, end = model(sample.seen[1], torch_training.tensor(plans))
    assert np.allclose(actions.detach(), ours.action, atol=1e-3)
    assert np.allclose(end.detach(), ours.stop, atol=1e-3)


def test_the_potential_is_the_same(batch):
    agent, _ = fresh("potential")
    first, _, last, _, _ = torch_potential.convert(agent).phi(torch_potential.ready(batch, "cpu").seen)
    assert np.allclose((last - first).detach(), agent.encode(batch.first, batch.last), atol=1e-3)


@pytest.mark.parametrize("name", MODELS)
def test_it_trains(name, batch, monkeypatch):
    """By updates of its own that make the loss of a batch fall."""
    agent, config = fresh(name)
    model = MODELS[name].convert(agent)
    loss, seen = model.loss, []

    def watched(sample):
        seen.append(loss(sample))
        return seen[-1]

    monkeypatch.setattr(model, "loss", watched)
    torch_training.trainer(model, [MODELS[name].ready(batch, "cpu")], "cpu", None, config)(5)
    assert len(seen) == 5 and seen[-1].item() < seen[0].item()
