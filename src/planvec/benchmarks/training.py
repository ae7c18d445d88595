"""How fast models train: ours, the same in PyTorch where it is installed, and what the machine could do."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from planvec.agents import AGENTS
from planvec.agents.agent import EmbeddingAgent
from planvec.benchmarks import work
from planvec.benchmarks.measure import Row, rate, rates
from planvec.data import folders
from planvec.data.pairs import PairSet
from planvec.evaluation.scores import evaluate
from planvec.training import update
from planvec.training.config import Config
from planvec.training.loading import load
from planvec.training.loop import grid
from planvec.worlds import make
from planvec.worlds.protocol import World
from planvec.worlds.registry import USUAL
from planvec.worlds.trials import random_trial

WORLD = USUAL
Optimizer = Literal["muon", "adam"]
READY = 4  # batches that lie ready for PyTorch, used in turn
ROUNDS = 5  # of all that are compared, one after the other; of each the best counts


class Measured(NamedTuple):
    """What is measured of a model, on a CPU or on an accelerator."""

    batches: tuple[int, ...]  # unless told
    compared: tuple[int, ...]  # those of them in which PyTorch trains it too
    together: dict[int, tuple[int, ...]]  # with Muon, at some batches: so many trainings together
    samples: int  # timed at once; allocating memory for the first update of them costs next to nothing …
    updates: int  # … or so many updates, where batches are small


ON_CPU = {
    "cpv-full": Measured((256, 1024), (256, 1024), {1024: (1,)}, 2**14, 64),
    "potential": Measured((16, 64), (16, 64), {64: (1,)}, 2**9, 32),
}
ACCELERATED = {
    "cpv-full": Measured((256, 1024, 4096, 16_384), (1024,), {1024: (1, 3, 12)}, 2**19, 2048),
    "potential": Measured((1024, 4096), (1024, 4096), {1024: (1,), 4096: (1,)}, 2**18, 256),
}
RIVALS = {"cpv-full": "torch_cpv", "potential": "torch_potential"}  # the files with the same in PyTorch


def run(
    batches: tuple[int, ...] | None = None,
    pairs: int | None = None,
    episodes: int = 100,
    warn: Callable[[str], None] = lambda message: None,
) -> Iterator[Row]:
    """Measure everything, a row at a time. `warn` is told what could not be compared with, and why."""
    world = make(WORLD)
    data = _collect(world, pairs or (2_000 if _on_cpu() else 40_000))
    peak = work.matrix_peak()
    yield work.peak_row(peak)
    for model in _models():
        trained = []
        for row in _trainings(model, data, batches, warn):
            trained.append(row)
            yield row
        ours = [row for row in trained if row.what.startswith(f"planvec {model}")]
        yield from _arithmetic(model, world, data, ours, peak)
    yield _evaluation(world, episodes)


def _on_cpu() -> bool:
    return jax.default_backend() == "cpu"


def _models() -> dict[str, Measured]:
    return ON_CPU if _on_cpu() else ACCELERATED


def _trainings(
    model: str, data: PairSet, batches: tuple[int, ...] | None, warn: Callable[[str], None]
) -> Iterator[Row]:
    """One model at all batches: beside PyTorch with Adam; and by itself, with Muon and several together."""
    measured = _models()[model]
    compared = batches or measured.compared
    for batch in batches or measured.batches:
        yield from _side_by_side(model, data, batch, warn if batch in compared else None)
        for count in measured.together.get(batch, ()):
            optimizers: tuple[Optimizer, ...] = ("adam", "muon") if count > 1 else ("muon",)
            for optimizer in optimizers:
                what, program = _ours(model, data, batch, count, optimizer)
                per_second = rate(program, count=_updates(model, batch * count) * batch * count)
                yield Row(what, "samples/s", batch, per_second)


def _collect(world: World, pairs: int) -> PairSet:
    """The paper's training pairs, on the device."""
    recipe = folders.Recipe(world=WORLD, pairs=pairs, skills=world.sizes, noise=0.1, extras="discard", seed=0)
    with TemporaryDirectory() as folder:
        data = Path(folder) / "pairs"
        folders.collect(recipe, data, world)
        return folders.load(data, world)


def _updates(model: str, samples: int) -> int:
    """How many to time at once, of so many samples each."""
    measured = _models()[model]
    return max(1, min(measured.samples // samples, measured.updates))


def _side_by_side(model: str, pairs: PairSet, batch: int, warn: Callable[[str], None] | None) -> list[Row]:
    """Ours, alone and with Adam; and, unless `warn` is None, the same in PyTorch, run in turn."""
    programs = dict([_ours(model, pairs, batch, 1, "adam")])
    if warn:
        programs.update(_torch(model, pairs, batch, warn))
    measured = rates(list(programs.values()), _updates(model, batch) * batch, ROUNDS)
    ours, *others = [Row(what, "samples/s", batch, each) for what, each in zip(programs, measured, strict=True)]
    compared = [(other, Row(f"planvec / {other.what}", "×", batch, ours.rate / other.rate)) for other in others]
    return [ours, *chain.from_iterable(compared)]


def _ours(model: str, pairs: PairSet, batch: int, together: int, optimizer: Optimizer) -> tuple[str, Callable[[], Any]]:
    """What `planvec train` runs between two log lines: sampling, drawing, losses, gradients, optimiser.

    Muon is what it has unless told, Adam what is compared with PyTorch's. Twelve together are what `planvec reproduce`
    runs: three seeds of all four cpv models.
    """
    names = [name for name in AGENTS if name.startswith("cpv")] if together == 12 else [model]
    trainings = [(seed, name) for seed in range(together // len(names)) for name in names]
    config = Config(world=WORLD, batch=batch, optimizer=optimizer)
    configs = [replace(config, agent=name, seed=seed).resolved() for seed, name in trainings]
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(update.start, configs))
    seeds, kinds = grid(configs)
    chunk, _ = update.programs(kinds)
    what = f"planvec {model}, {_precision()}, {optimizer}"
    what += f", {together} trainings together" if together > 1 else ""
    return what, partial(chunk, states, pairs, seeds, _updates(model, batch * together))


def _torch(
    model: str, pairs: PairSet, batch: int, warn: Callable[[str], None]
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The same model, losses, optimiser and batch in PyTorch, as written and compiled; ready images on its device."""
    try:
        name = f"torch {version('torch')}"
        from planvec.benchmarks import torch_training

        rival = import_module(f"planvec.benchmarks.{RIVALS[model]}")
    except (PackageNotFoundError, ImportError) as error:
        warn(f"not compared with torch: {error}; pip install torch")
        return
    device = "cpu" if _on_cpu() else "cuda"
    config = Config(agent=model, world=WORLD, batch=batch, optimizer="adam").resolved()
    sample = eqx.filter_jit(PairSet.sample)
    batches = [sample(pairs, jax.random.key(i), batch, config.ended) for i in range(READY)]
    for mode in (None, torch_training.MODES[device]):
        what = f"{name} {model}, {_precision()}, {f'compiled ({mode})' if mode else 'eager'}"
        try:
            samples = [rival.ready(one, device) for one in batches]
            program = torch_training.trainer(rival.convert(update.start(config).agent), samples, device, mode, config)
            program(1)
        except Exception as error:  # no C++ compiler, no GPU for it, …: ours is still to be measured
            warn(f"not compared with {what}, batch {batch}: {type(error).__name__}: {error}")
        else:
            yield what, partial(program, _updates(model, batch))


def _precision() -> str:
    return jnp.dtype(update.precision(Config().resolved())).name


def _arithmetic(model: str, world: World, data: PairSet, trained: list[Row], peak: float) -> Iterator[Row]:
    """How much of what the device can do in matrix products becomes training."""
    config = Config(agent=model, world=WORLD).resolved()
    agent = update.start(config).agent
    assert isinstance(agent, EmbeddingAgent)
    flops = work.of_sample(agent, config.weights, work.outline(world, data.steps))
    yield Row(f"{model}: work in a sample, forward and backward", "MFLOP", 1, flops / 1e6)
    for row in trained:
        yield from work.against_peak(row, flops, peak)


def _evaluation(world: World, episodes: int) -> Row:
    """Seconds for the six conditions with the shipped agent, references by the expert included, after compilation."""
    agent = load(WORLD)
    for seed in (0, 1):  # the first compiles, the second has other tasks in the same shapes
        began = time.perf_counter()
        for condition in world.conditions:
            evaluate([agent], world, random_trial(world, condition, episodes, seed, "discard"), seed)
    seconds = time.perf_counter() - began
    return Row(f"evaluation, {len(world.conditions)} conditions", "s", episodes, seconds)
