"""cpv-full in PyTorch, for the benchmark: the network and the losses of ours, written as one does there.

Pictures lie channels last in memory, as it likes them. Only where PyTorch is installed.
"""
# pyright: reportMissingImports=false, reportMissingModuleSource=false
# PyTorch is no dependency of ours

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jax import Array
from torch import Tensor, nn

from planvec.agents import Agent
from planvec.agents.agent import Difference
from planvec.agents.encoders import CONVOLUTIONS, GREY, ImageEncoder
from planvec.agents.policies import Categorical, LayeredPolicy
from planvec.agents.zoo import FEATURES, HIDDEN
from planvec.benchmarks.torch_training import PRECISION, copy, tensor
from planvec.data.samples import Batch
from planvec.training.losses import SEGMENTS

PARAMETERS = 807_158  # of cpv-full, here and there


class Sample(NamedTuple):
    """A batch as the network takes it, on the device."""

    ends: Tensor  # [4·batch, 6, 33, 30], where the four segments begin and end
    now: Tensor  # [batch, 3, 33, 30]
    action: Tensor  # [batch]


class Network(nn.Module):
    """Four convolutions with ReLU, and a linear layer."""

    def __init__(self, channels: int, features: int) -> None:
        super().__init__()
        widths = [channels, *(layer.channels for layer in CONVOLUTIONS)]
        self.convs = nn.ModuleList(
            nn.Conv2d(inputs, *layer) for inputs, layer in zip(widths[:-1], CONVOLUTIONS, strict=True)
        )
        self.linear = nn.Linear(3 * 3 * widths[-1], features)

    def forward(self, x: Tensor) -> Tensor:
        for conv in self.convs:
            x = F.relu(conv(x))
        return self.linear(x.permute(0, 2, 3, 1).flatten(1))  # as it lies in memory


class CPV(nn.Module):
    """The encoder g, and the policy π of what is seen and what is left to do."""

    def __init__(self, embedding: int = 512, actions: int = 6) -> None:
        super().__init__()
        self.encoder = Network(6, embedding)
        self.network = Network(3, FEATURES)
        sizes = (FEATURES + embedding, *HIDDEN, actions)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        assert sum(weights.numel() for weights in self.parameters()) == PARAMETERS

    def loss(self, sample: Sample) -> Tensor:
        """Imitation + Hom + Pair."""
        reference, done, left, whole = self.encoder(sample.ends).float().chunk(len(SEGMENTS))
        x = torch.cat([self.network(sample.now), reference - done], dim=1)
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        imitation = F.cross_entropy(self.layers[-1](x).float(), sample.action)
        return imitation + triplet(done + left, whole, whole) + triplet(whole, reference, reference)


def triplet(anchor: Tensor, positive: Tensor, of: Tensor) -> Tensor:
    """The mean of max(‖a − p‖ − ‖a − n‖ + 1, 0), the negative being the next one of the batch."""
    apart = torch.linalg.vector_norm(anchor - positive, dim=1)
    other = torch.linalg.vector_norm(anchor - of.roll(-1, 0), dim=1)
    return F.relu(apart - other + 1).mean()


def convert(agent: Agent) -> CPV:
    """The same weights in PyTorch."""
    assert isinstance(agent, Difference)
    policy = agent.policy
    assert isinstance(policy, LayeredPolicy)
    assert isinstance(policy.head, Categorical)
    model = CPV()
    for ours, theirs in ((agent.encoder, model.encoder), (policy.network, model.network)):
        assert isinstance(ours, ImageEncoder)
        for source, target in zip((*ours.convs, ours.linear), (*theirs.convs, theirs.linear), strict=True):
            copy(source, target)
    for source, target in zip((*policy.layers, policy.head.linear), model.layers, strict=True):
        copy(source, target)
    return model


def ready(batch: Batch, device: str) -> Sample:
    """A batch of ours, drawn, scaled, stacked and brought to the device."""

    def images(*parts: Array) -> Tensor:
        stacked = tensor(np.concatenate([np.asarray(part) for part in parts], axis=-1), device)
        return (stacked.to(PRECISION[device]) / GREY).permute(0, 3, 1, 2)  # channels last in memory

    segments = [images(getattr(batch, begin), getattr(batch, end)) for begin, end in SEGMENTS.values()]
    ends = torch.cat(segments).contiguous(memory_format=torch.channels_last)
    return Sample(ends, images(batch.now), tensor(batch.action, device).long())
