"""How fast cpv-full trains: ours, the same in PyTorch where it is installed, and what the machine could do."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from planvec.agents import AGENTS, Agent
from planvec.agents.encoders import ImageEncoder, convolved
from planvec.benchmarks.layers import layers
from planvec.benchmarks.measure import Row, rate, rates
from planvec.data import folders
from planvec.data.pairs import PairSet
from planvec.evaluation.scores import evaluate
from planvec.training import update
from planvec.training.config import Config
from planvec.training.loading import load
from planvec.training.loop import grid
from planvec.training.losses import SEGMENTS
from planvec.worlds import make
from planvec.worlds.protocol import World
from planvec.worlds.registry import USUAL
from planvec.worlds.spaces import Images
from planvec.worlds.trials import random_trial

AGENT = "cpv-full"
WORLD = USUAL
Optimizer = Literal["muon", "adam"]
READY = 4  # batches that lie ready for PyTorch, used in turn
ROUNDS = 5  # of all that are compared, one after the other; of each the best counts


def run(
    batches: tuple[int, ...] | None = None,
    pairs: int | None = None,
    episodes: int = 100,
    warn: Callable[[str], None] = lambda message: None,
) -> Iterator[Row]:
    """Measure everything, a row at a time. `warn` is told what could not be compared with, and why."""
    on_cpu = jax.default_backend() == "cpu"
    compared = batches or ((256, 1024) if on_cpu else (1024,))
    batches = batches or ((256, 1024) if on_cpu else (256, 1024, 4096, 16_384))
    together = (1,) if on_cpu else (1, 3, 12)
    world = make(WORLD)
    data = _collect(world, pairs or (2_000 if on_cpu else 40_000))
    trained = []
    for batch in batches:
        rows = _side_by_side(data, batch, warn if batch in compared else None)
        trained.append(rows[0])
        yield from rows
        for count in together if batch == 1024 else ():
            optimizers: tuple[Optimizer, ...] = ("adam", "muon") if count > 1 else ("muon",)
            for optimizer in optimizers:
                what, program = _ours(data, batch, count, optimizer)
                per_second = rate(program, count=_updates(batch * count) * batch * count)
                trained.append(Row(what, "samples/s", batch, per_second))
                yield trained[-1]
    yield from _against_peak(trained)
    yield _evaluation(world, episodes)


def _collect(world: World, pairs: int) -> PairSet:
    """The paper's training pairs, on the device."""
    recipe = folders.Recipe(world=WORLD, pairs=pairs, skills=world.sizes, noise=0.1, extras="discard", seed=0)
    with TemporaryDirectory() as folder:
        data = Path(folder) / "pairs"
        folders.collect(recipe, data, world)
        return folders.load(data, world)


def _updates(batch: int) -> int:
    """How many to time at once: so many that allocating memory for the first of them costs next to nothing."""
    samples = 2**14 if jax.default_backend() == "cpu" else 2**19
    return max(1, samples // batch)


def _side_by_side(pairs: PairSet, batch: int, warn: Callable[[str], None] | None) -> list[Row]:
    """Ours, alone and with Adam; and, unless `warn` is None, the same in PyTorch, run in turn."""
    programs = dict([_ours(pairs, batch, 1, "adam")])
    if warn:
        programs.update(_torch(pairs, batch, warn))
    measured = rates(list(programs.values()), _updates(batch) * batch, ROUNDS)
    ours, *others = [Row(what, "samples/s", batch, each) for what, each in zip(programs, measured, strict=True)]
    compared = [(other, Row(f"planvec / {other.what}", "×", batch, ours.rate / other.rate)) for other in others]
    return [ours, *chain.from_iterable(compared)]


def _ours(pairs: PairSet, batch: int, together: int, optimizer: Optimizer) -> tuple[str, Callable[[], Any]]:
    """What `planvec train` runs between two log lines: sampling, drawing, losses, gradients, optimiser.

    Muon is what it has unless told, Adam what is compared with PyTorch's. Twelve together are what `planvec reproduce`
    runs: three seeds of all four cpv models.
    """
    names = [name for name in AGENTS if name.startswith("cpv")] if together == 12 else [AGENT]
    trainings = [(seed, name) for seed in range(together // len(names)) for name in names]
    config = Config(world=WORLD, batch=batch, optimizer=optimizer)
    configs = [replace(config, agent=name, seed=seed).resolved() for seed, name in trainings]
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(update.start, configs))
    seeds, kinds = grid(configs)
    chunk, _ = update.programs(kinds)
    what = f"planvec {AGENT}, {_precision()}, {optimizer}"
    what += f", {together} trainings together" if together > 1 else ""
    return what, partial(chunk, states, pairs, seeds, _updates(batch * together))


def _torch(pairs: PairSet, batch: int, warn: Callable[[str], None]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The same model, losses, optimiser and batch in PyTorch, as written and compiled; ready images on its device."""
    try:
        name = f"torch {version('torch')}"
        from planvec.benchmarks import torch_model
    except (PackageNotFoundError, ImportError) as error:
        warn(f"not compared with torch: {error}; pip install torch")
        return
    device = "cpu" if jax.default_backend() == "cpu" else "cuda"
    config = Config(agent=AGENT, world=WORLD, batch=batch, optimizer="adam").resolved()
    updates = _updates(batch)
    sample = eqx.filter_jit(PairSet.sample)
    ready = [sample(pairs, jax.random.key(i), batch) for i in range(READY)]
    for mode in (None, torch_model.MODES[device]):
        what = f"{name} {AGENT}, {_precision()}, {f'compiled ({mode})' if mode else 'eager'}"
        try:
            program = torch_model.trainer(update.start(config).agent, ready, device, mode, config)
            program(1)
        except Exception as error:  # no C++ compiler, no GPU for it, …: ours is still to be measured
            warn(f"not compared with {what}, batch {batch}: {type(error).__name__}: {error}")
        else:
            yield what, partial(program, updates)


def _precision() -> str:
    return jnp.dtype(update.precision(Config().resolved())).name


def _against_peak(trained: list[Row]) -> Iterator[Row]:
    """How much of what the device can do in matrix products becomes training."""
    agent = update.start(Config(agent=AGENT, world=WORLD).resolved()).agent
    space = make(WORLD).space
    assert isinstance(space, Images)
    per_sample = flops(agent, space.shape)
    peak = matrix_peak()
    yield Row(f"{AGENT}: work in a sample, forward and backward", "MFLOP", 1, per_sample / 1e6)
    yield Row("largest matrix product", "TFLOP/s", 1, peak / 1e12)
    for row in trained:
        yield Row(row.what, "TFLOP/s", row.batch, row.rate * per_sample / 1e12)
        yield Row(row.what, "% of that peak", row.batch, 100 * row.rate * per_sample / peak)


def flops(agent: Agent, shape: tuple[int, int, int]) -> int:
    """What training on one sample takes, by the shapes of the layers.

    2 for each multiplication and addition; the encoder once for each segment, the policy once; and the backward pass
    twice the forward one, as it has two products (gradients of inputs and of weights) for each of that.
    """
    parts = layers(agent)
    policy = _network_products(parts.network, shape) + sum(layer.weight.size for layer in parts.linear)
    forward = 2 * (len(SEGMENTS) * _network_products(parts.encoder, shape) + policy)
    return 3 * forward


def _network_products(network: ImageEncoder, shape: tuple[int, int, int]) -> int:
    """Multiplications in a forward pass of one image."""
    height, width, _ = shape
    products = network.linear.weight.size
    for conv in network.convs:
        height = convolved(height, len(conv.weight), conv.stride, conv.padding)
        width = convolved(width, len(conv.weight), conv.stride, conv.padding)
        products += height * width * conv.weight.size
    return products


def matrix_peak(size: int | None = None, chain: int = 4) -> float:
    """FLOP/s in products of large square matrices, in the dtype that training computes in."""
    size = size or (2048 if jax.default_backend() == "cpu" else 16_384)
    matrix = jax.random.normal(jax.random.key(0), (size, size)) / size**0.5  # keeps its products near 1
    matrix = matrix.astype(update.precision(Config().resolved()))

    @jax.jit
    def multiply(x: Array) -> Array:
        product = x
        for _ in range(chain):
            product = product @ x
        return product

    return rate(multiply, matrix, count=chain * 2 * size**3)


def _evaluation(world: World, episodes: int) -> Row:
    """Seconds for the six conditions with the shipped agent, references by the expert included, after compilation."""
    agent = load(WORLD)
    for seed in (0, 1):  # the first compiles, the second has other tasks in the same shapes
        began = time.perf_counter()
        for condition in world.conditions:
            evaluate([agent], world, random_trial(world, condition, episodes, seed, "discard"), seed)
    seconds = time.perf_counter() - began
    return Row(f"evaluation, {len(world.conditions)} conditions", "s", episodes, seconds)
