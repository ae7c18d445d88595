"""Demonstrations, in memory and in files."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from planvec.errors import InputError
from planvec.io.checkpoints import load_described, named, save_described
from planvec.tasks import Task, parse_task, show_task

if TYPE_CHECKING:
    from planvec.worlds.protocol import World

PyTree = Any
FORMAT = "planvec demonstration"
VERSION = "1"


@dataclass(frozen=True, eq=False)
class Demonstration:
    """One task being done: H actions and H+1 observations."""

    task: Task
    observations: PyTree  # [H+1, …], what an agent saw
    actions: np.ndarray  # [H, …]
    steps: PyTree  # [H+1, …], as the world stores them: what its `draw` takes

    def __post_init__(self) -> None:
        for part in (self.observations, self.steps):
            for leaf in jax.tree.leaves(part):
                if len(leaf) != len(self.actions) + 1:
                    raise InputError(
                        f"{len(self.actions)} actions need {len(self.actions) + 1} observations, got {len(leaf)}"
                    )

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def filmed(self) -> "Demonstration":
        """What of it a film shows: all."""
        return self

    def remarks(self, time: int) -> list[str]:
        """What a film says beside the task when so many actions have been done."""
        return [f"step {time} of {len(self)}"]

    @property
    def first(self) -> PyTree:
        return jax.tree.map(lambda leaf: leaf[0], self.observations)

    @property
    def last(self) -> PyTree:
        return jax.tree.map(lambda leaf: leaf[-1], self.observations)


def save_demonstration(path: Path | str, demo: Demonstration, world: "World") -> None:
    """Write a demonstration (or an episode) as a safetensors file, each array under its path in the tree."""
    origin = {"world": world.name, "fingerprint": world.fingerprint, "task": show_task(demo.task)}
    save_described(path, named(_parts(demo)), FORMAT, VERSION, **origin)


def load_demonstration(path: Path | str, world: "World") -> Demonstration:
    """Read what `save_demonstration` has written for the same world."""
    described, arrays = load_described(path, "a demonstration", FORMAT, VERSION)
    if described["world"] != world.name:
        raise InputError(f"{path} is a demonstration in the world '{described['world']}', not in '{world.name}'")
    if described["fingerprint"] != world.fingerprint:
        raise InputError(
            f"{path} was made with other rules of '{world.name}' ({described['fingerprint']}, now {world.fingerprint})"
        )
    like = world.demonstrate(world.skills[:1])  # any demonstration tells how the world arranges its arrays
    wanted = named(_parts(like))
    if {name: leaf.shape[1:] for name, leaf in arrays.items()} != {name: x.shape[1:] for name, x in wanted.items()}:
        raise InputError(f"{path} is damaged: its arrays are not those of a demonstration in '{world.name}'")
    leaves = [arrays[name].astype(leaf.dtype) for name, leaf in wanted.items()]
    parts = jax.tree.unflatten(jax.tree.structure(_parts(like)), leaves)
    return Demonstration(parse_task(described["task"], world.skills), **parts)


def _parts(demo: Demonstration) -> dict[str, PyTree]:
    return {"observations": demo.observations, "actions": demo.actions, "steps": demo.steps}
