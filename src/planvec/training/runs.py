"""A run's folder: what was trained, its checkpoints and its metrics. Whatever moment a kill comes at, it can go on."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp
import optax
from jax import Array
from tensorboardX import SummaryWriter

from planvec.agents import Agent
from planvec.errors import InputError
from planvec.io import files
from planvec.io.checkpoints import load_json, load_tree, save_json, save_tree
from planvec.io.provenance import provenance
from planvec.training.config import Config

CONFIG = "config.json"
WEIGHTS = "weights.safetensors"
METRICS = "metrics.jsonl"
STATE = "state.safetensors"
PREVIOUS = "state.previous.safetensors"


class Saved(Protocol):
    """What a checkpoint is of: all that changes from one step to the next."""

    @property
    def agent(self) -> Agent: ...

    @property
    def step(self) -> Array: ...


AnySaved = TypeVar("AnySaved", bound=Saved)


class State(NamedTuple):
    """All that changes while training."""

    agent: Agent
    optimizer: optax.OptState
    step: Array  # int32 [], updates done


def open_run(config: Config, folder: Path, data: dict[str, Any], practice: dict[str, Any] | None = None) -> None:
    """Make a run folder, or check that it is of the same training. The config must be resolved. `practice`: how the
    agent practises, where it does."""
    asked = asdict(config)
    further = {"data": data} | ({"practice": practice} if practice else {})
    further = json.loads(json.dumps(further))  # as it is read back
    if (folder / CONFIG).exists():
        known = asdict(read_config(folder).resolved())
        for name, value in asked.items():
            if name != "interval" and known[name] != value:
                raise InputError(
                    f"{folder} holds a training with {name} {known[name]}, not {value}; choose another folder"
                )
        described = load_json(folder / CONFIG)
        if described.get("data") != further["data"]:
            raise InputError(f"{folder} holds a training on other data; choose another folder")
        if described.get("practice") != further.get("practice"):
            raise InputError(f"{folder} holds another practice, or none; choose another folder")
        return
    if folder.exists() and any(not path.name.endswith(files.TEMPORARY) for path in folder.iterdir()):
        raise InputError(f"{folder} is not empty and no training of planvec; choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    save_json(folder / CONFIG, {"config": asked} | further | {"made": provenance()})


def read_config(folder: Path) -> Config:
    """What was trained. Older runs leave the networks to their world: it is not `resolved`, which needs that world."""
    described = load_json(folder / CONFIG)
    try:
        return Config(**described["config"])
    except (TypeError, KeyError):
        raise InputError(f"{folder / CONFIG} is of another version of planvec, or damaged") from None


def resume(folders: Sequence[Path], fresh: Sequence[AnySaved]) -> AnySaved:
    """The states to go on from, stacked: the latest step that all folders have saved, or fresh ones where none has any.

    What is newer than that step is dropped, so that the next save does not push out what all have in common.
    """
    saved = [_saved(folder, like) for folder, like in zip(folders, fresh, strict=True)]
    if any(saved):
        common = set.intersection(*map(set, saved))
        if not common:
            raise InputError(f"{', '.join(map(str, folders))} have no checkpoint in common: train them one by one")
        for folder, by_step in zip(folders, saved, strict=True):
            if max(by_step) > max(common):
                os.replace(folder / PREVIOUS, folder / STATE)
        fresh = [by_step[max(common)] for by_step in saved]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *fresh)


def _saved(folder: Path, like: AnySaved) -> dict[int, AnySaved]:
    """The states in a folder, by step."""
    states = [load_tree(folder / name, like) for name in (STATE, PREVIOUS) if (folder / name).exists()]
    return {int(state.step): state for state in states}


class Run:
    """A training being written: its weights, its metrics (JSON lines, TensorBoard), and what is needed to go on."""

    def __init__(self, folder: Path, step: int) -> None:
        """Lines after the step gone on from are dropped."""
        self.folder = folder
        self._kept = step
        kept = [json.dumps(row) + "\n" for row in read_metrics(folder) if row["step"] <= step]
        files.write(folder / METRICS, "".join(kept))
        self._board = SummaryWriter(str(folder), purge_step=step + 1, flush_secs=10)

    def save(self, state: Saved, metrics: dict[str, float]) -> None:
        """The state comes last: where that is, all of its step is. The one before stays too, as agents that train
        together go on from a step that all have saved, wherever between two saves a kill came."""
        step = int(state.step)
        save_tree(self.folder / WEIGHTS, state.agent)
        with (self.folder / METRICS).open("a") as file:
            file.write(json.dumps({"step": step, **metrics}) + "\n")
        for name, value in metrics.items():
            self._board.add_scalar(name.replace("valid_", "valid/"), value, step)
        self.keep(state)

    def keep(self, state: Saved) -> None:
        """What is needed to go on, unless that is there already."""
        if self._kept == int(state.step):
            return
        if (self.folder / STATE).exists():
            os.replace(self.folder / STATE, self.folder / PREVIOUS)
        save_tree(self.folder / STATE, state)
        self._kept = int(state.step)

    def close(self) -> None:
        self._board.close()


def read_metrics(folder: Path) -> list[dict[str, float]]:
    """The lines of a run's metrics; one that a kill cut off is left out."""
    path = folder / METRICS
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def reached(folder: Path) -> int | None:
    """The update that a run has come to, by its log; None where it has not been begun."""
    return max((int(row["step"]) for row in read_metrics(folder)), default=0) if (folder / STATE).exists() else None
