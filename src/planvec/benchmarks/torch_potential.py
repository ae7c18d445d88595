"""The model `potential` in PyTorch, for the benchmark: the network and the losses of ours, written as one does there.

Pictures lie ready as tiles, pixels of a tile side by side, so that Φ and the policy's first layer are plain products;
and Φ is asked once of each observation, where ours is asked of both ends of each segment. Only where PyTorch is
installed.
"""
# pyright: reportMissingImports=false, reportMissingModuleSource=false
# PyTorch is no dependency of ours

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from planvec.agents import AGENTS, Agent
from planvec.agents.agent import Difference
from planvec.agents.encoders import GREY, Conv, Linear
from planvec.agents.policies import Categorical, Stopping
from planvec.agents.potentials import TilePotential
from planvec.agents.residual import ResidualPolicy
from planvec.agents.zoo import TILE
from planvec.benchmarks.torch_training import PRECISION, copy, copy_kernel, tensor
from planvec.data.samples import Batch
from planvec.training.losses import TINY

WEIGHTS = AGENTS["potential"].weights
OBSERVATIONS = ("first", "now", "last", "ref_first", "ref_last")


class Sample(NamedTuple):
    """A batch as the network takes it, on the device."""

    seen: Tensor  # [5, batch, rows, columns, 27], tiles of the five observations
    action: Tensor  # [batch]
    over: Tensor  # bool [batch]


class Block(nn.Module):
    """x + W₂ * relu(W₁ * relu(x + V·plan))"""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.read = nn.Linear(width, width)
        self.inner = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.outer = nn.Conv2d(width, width, 3, padding=1, bias=False)

    def forward(self, x: Tensor, plan: Tensor) -> Tensor:
        seen = F.relu(x + self.read(plan)[:, :, None, None])
        return x + self.outer(F.relu(self.inner(seen)))


class Residual(nn.Module):
    """The potential Φ, and the policy π of what is seen and what is left to do."""

    def __init__(self, policy: ResidualPolicy, encoder: TilePotential, actions: int) -> None:
        """As large as ours."""
        super().__init__()

        def linear(layer: Linear) -> nn.Linear:
            return nn.Linear(*layer.weight.shape)

        width = policy.tiles.weight.shape[-1]
        self.potential = nn.ModuleList(linear(layer) for layer in encoder.layers)
        self.tiles = nn.Linear(encoder.layers[0].weight.shape[0], width)
        self.reader = linear(policy.reader.linear)
        self.blocks = nn.ModuleList(Block(width) for _ in policy.blocks)
        self.queries = linear(policy.queries)
        self.layers = nn.ModuleList(linear(layer) for layer in policy.layers)
        self.action = nn.Linear(policy.features, actions)
        self.end = nn.Linear(policy.features, 1)

    def phi(self, seen: Tensor) -> Tensor:
        """The sum over all tiles of what three layers make of each, in float32: (…, embedding)"""
        first, second, last = self.potential
        with torch.autocast(seen.device.type, enabled=False):
            x = F.relu(second(F.relu(first(seen.float()))))
            return last(x).sum(dim=(-3, -2))

    def forward(self, now: Tensor, left: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of the actions, and of stopping."""
        with torch.autocast(now.device.type, enabled=False):
            plan = torch.tanh(self.reader(left))
        x = self.tiles(now).permute(0, 3, 1, 2)  # channels last in memory
        for block in self.blocks:
            x = block(x, plan)
        places = F.relu(x).permute(0, 2, 3, 1).flatten(1, 2)
        attention = self.queries(places).float().softmax(dim=1).to(places.dtype)
        x = torch.einsum("npq,npc->nqc", attention, places).flatten(1)
        for layer in self.layers:
            x = F.relu(layer(x))
        return self.action(x).float(), self.end(x).float()[:, 0]

    def loss(self, sample: Sample) -> Tensor:
        """Imitation of sums in which some cancels, and Alike and Stop by their weights."""
        first, now, last, ref_first, ref_last = self.phi(sample.seen).unbind()
        reference, whole = ref_last - ref_first, last - first
        others = (reference - whole).roll(-1, 0)
        some = torch.arange(len(others), device=others.device) < WEIGHTS.cancelling * len(others)
        asked = reference + torch.where(some[:, None], others, 0)
        actions, end = self(sample.seen[1], asked - (now - first))
        imitation = mean(F.cross_entropy(actions, sample.action, reduction="none"), ~sample.over)
        return imitation + WEIGHTS.alike * alike(whole, reference) + WEIGHTS.stop * stop(end, sample.over)


def alike(whole: Tensor, reference: Tensor) -> Tensor:
    """The mean of ‖whole − reference‖², by that of ‖reference − the next one of the batch‖²."""
    apart = (reference - reference.roll(-1, 0)).square().sum(dim=1).mean()
    return (whole - reference).square().sum(dim=1).mean() / apart.clamp(min=TINY)


def stop(logit: Tensor, over: Tensor) -> Tensor:
    """−log σ(stop) at last moments, −log(1 − σ(stop)) at others; each kind counts as much."""
    return mean(F.softplus(-logit), over) + mean(F.softplus(logit), ~over)


def mean(values: Tensor, which: Tensor) -> Tensor:
    return (values * which).sum() / which.sum().clamp(min=1)


def convert(agent: Agent) -> Residual:
    """The same weights in PyTorch."""
    assert isinstance(agent, Difference)
    policy, encoder = agent.policy, agent.encoder
    assert isinstance(policy, ResidualPolicy)
    assert isinstance(encoder, TilePotential)
    assert isinstance(policy.head, Stopping)
    assert isinstance(policy.head.head, Categorical)
    logits = policy.head.head.linear
    model = Residual(policy, encoder, len(logits.bias))
    _copy_tiles(policy.tiles, model.tiles)
    for ours, theirs in zip(policy.blocks, model.blocks, strict=True):
        copy(ours.read, theirs.read)
        copy_kernel(ours.inner, theirs.inner)
        copy_kernel(ours.outer, theirs.outer)
    sources = (*encoder.layers, policy.reader.linear, policy.queries, *policy.layers, logits, policy.head.end)
    targets = (*model.potential, model.reader, model.queries, *model.layers, model.action, model.end)
    for source, target in zip(sources, targets, strict=True):
        copy(source, target)
    return model


def _copy_tiles(ours: Conv, theirs: nn.Linear) -> None:
    """A convolution that sees one tile at a time is a layer of its pixels."""
    copy_kernel(ours.weight.reshape(-1, ours.weight.shape[-1]), theirs)
    with torch.no_grad():
        theirs.bias.copy_(tensor(ours.bias))


def ready(batch: Batch, device: str) -> Sample:
    """A batch of ours, drawn, scaled, cut into tiles and brought to the device."""
    images = np.stack([np.asarray(getattr(batch, name)) for name in OBSERVATIONS])
    *many, height, width, colours = images.shape
    tiles = images.reshape(*many, height // TILE, TILE, width // TILE, TILE, colours).swapaxes(-4, -3)
    flat = tensor(tiles.reshape(*tiles.shape[:-3], -1), device)
    action, over = tensor(batch.action, device).long(), tensor(batch.over, device)
    return Sample(flat.to(PRECISION[device]) / GREY, action, over)
