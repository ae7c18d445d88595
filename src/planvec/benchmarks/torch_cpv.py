"""cpv-full in PyTorch, for the benchmark: the network, losses and optimiser of ours, written as one does there.

Everything here favours it: channels-last, a fused optimiser, bfloat16 on a GPU, and batches that lie ready on the
device, drawn, scaled and stacked. Only where PyTorch is installed.
"""
# pyright: reportMissingImports=false, reportMissingModuleSource=false
# PyTorch is no dependency of ours

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jax import Array
from torch import Tensor, nn

from planvec.agents import Agent
from planvec.agents.encoders import CONVOLUTIONS, GREY, Conv, ImageEncoder, Linear
from planvec.agents.zoo import FEATURES, HIDDEN
from planvec.benchmarks.layers import layers
from planvec.data.samples import Batch
from planvec.training.config import Config
from planvec.training.losses import SEGMENTS

PARAMETERS = 807_158  # of cpv-full, here and there

# CUDA graphs: so small a network waits for kernel launches otherwise. A CPU has none, and there the default is as good.
MODES = {"cuda": "reduce-overhead", "cpu": "default"}


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
    model = CPV()
    ours = layers(agent)
    _copy_network(ours.encoder, model.encoder)
    _copy_network(ours.network, model.network)
    for source, target in zip(ours.linear, model.layers, strict=True):
        _copy(source, target)
    return model


def ready(batch: Batch, device: str, dtype: torch.dtype) -> Sample:
    """A batch of ours, drawn, scaled, stacked and brought to the device."""

    def images(*parts: Array) -> Tensor:
        stacked = np.concatenate([np.asarray(part) for part in parts], axis=-1)
        scaled = torch.tensor(stacked, device=device).to(dtype) / GREY
        return scaled.permute(0, 3, 1, 2)  # channels last in memory

    segments = [images(getattr(batch, begin), getattr(batch, end)) for begin, end in SEGMENTS.values()]
    ends = torch.cat(segments).contiguous(memory_format=torch.channels_last)
    return Sample(ends, images(batch.now), torch.tensor(np.asarray(batch.action), device=device).long())


def trainer(agent: Agent, batches: list[Batch], device: str, mode: str | None, config: Config) -> Callable[[int], None]:
    """A function that does so many updates and waits until they are done. `mode`: of torch.compile; None for none."""
    torch.compiler.reset()  # it would give up compiling after some models of the same class
    torch.backends.cudnn.benchmark = True
    samples = [ready(batch, device, torch.bfloat16 if device == "cuda" else torch.float32) for batch in batches]
    model = convert(agent).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay, fused=True
    )
    loss = torch.compile(model.loss, mode=mode, dynamic=False) if mode else model.loss

    def run(updates: int) -> None:
        for step in range(updates):
            if mode == "reduce-overhead":
                torch.compiler.cudagraph_mark_step_begin()
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
                value = loss(samples[step % len(samples)])
            value.backward()
            optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()

    return run


def _copy_network(ours: ImageEncoder, theirs: Network) -> None:
    for source, target in zip(ours.convs, theirs.convs, strict=True):
        _copy(source, target)
    _copy(ours.linear, theirs.linear)


def _copy(ours: Conv | Linear, theirs: nn.Module) -> None:
    """Ours is (…, inputs, outputs), theirs (outputs, inputs, …)."""
    weight = torch.tensor(np.asarray(ours.weight))
    bias = torch.tensor(np.asarray(ours.bias))
    with torch.no_grad():
        theirs.weight.copy_(weight.movedim((-1, -2), (0, 1)))
        theirs.bias.copy_(bias)
