"""Training in PyTorch, for the benchmark: what is the same for all models there. Only where PyTorch is installed.

Everything here favours it: a fused optimiser, bfloat16 on a GPU and TF32 for what is to stay in float32, and batches
that lie ready on the device, drawn and scaled.
"""
# pyright: reportMissingImports=false, reportMissingModuleSource=false
# PyTorch is no dependency of ours

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from jax import Array
from torch import Tensor, nn

from planvec.agents.encoders import Conv, Linear
from planvec.training.config import Config

# CUDA graphs: so small a network waits for kernel launches otherwise. A CPU has none, and there the default is as good.
MODES = {"cuda": "reduce-overhead", "cpu": "default"}
PRECISION = {"cuda": torch.bfloat16, "cpu": torch.float32}


def trainer(model: nn.Module, samples: Sequence[Any], device: str, mode: str | None, config: Config) -> Callable:
    """A function that does so many updates and waits until they are done. `samples`: batches on the device, used in
    turn; `model.loss` takes one. `mode`: of torch.compile; None for none."""
    torch.compiler.reset()  # it would give up compiling after some models of the same class
    torch.backends.cudnn.benchmark = True
    if device == "cuda":
        torch.set_float32_matmul_precision("high")
    model = model.to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay, fused=True
    )
    loss = torch.compile(model.loss, mode=mode, dynamic=False) if mode else model.loss

    def run(updates: int) -> None:
        for step in range(updates):
            if mode == "reduce-overhead":
                torch.compiler.cudagraph_mark_step_begin()
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device, PRECISION[device], enabled=device == "cuda"):
                value = loss(samples[step % len(samples)])
            value.backward()
            optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()

    return run


def copy(ours: Conv | Linear, theirs: nn.Module) -> None:
    """A layer's weights."""
    copy_kernel(ours.weight, theirs)
    with torch.no_grad():
        theirs.bias.copy_(tensor(ours.bias))


def copy_kernel(ours: Array, theirs: nn.Module) -> None:
    """Ours is (…, inputs, outputs), theirs (outputs, inputs, …)."""
    with torch.no_grad():
        theirs.weight.copy_(tensor(ours).movedim((-1, -2), (0, 1)))


def tensor(ours: Any, device: str = "cpu") -> Tensor:
    return torch.tensor(np.asarray(ours), device=device)
