"""Demonstrations, in memory and in files; pairs of them on the accelerator."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from planvec.checkpoints import load_described, named, save_described
from planvec.errors import InputError
from planvec.tasks import Task, parse_task, show_task

if TYPE_CHECKING:
    from planvec.worlds.world import World

PyTree = Any
FORMAT, VERSION = "planvec demonstration", "1"


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


class Batch(NamedTuple):
    """What one update of training sees: a moment t of each demonstration, and the reference's two ends."""

    first: PyTree  # o₀
    now: PyTree  # o_t
    last: PyTree  # o_T
    action: Array  # a_t
    ref_first: PyTree  # o₀ of the reference
    ref_last: PyTree  # o_T of the reference


class PairSet(eqx.Module):
    """Pairs of demonstrations laid end to end: pair i is demonstrations 2i and 2i+1.

    A pytree: pass it to a jitted function as an argument (closed over, it would become a constant of the program).
    """

    steps: PyTree  # [all steps, …], as the world stores them
    actions: Array  # [all actions, …]
    starts: Array  # int32 [demonstration], where its steps begin
    lengths: Array  # int32 [demonstration], its number of actions
    begin: Array  # int32 [], the first pair of this part
    end: Array  # int32 [], the pair after its last
    world: "World" = eqx.field(static=True)

    @staticmethod
    def of(world: "World", steps: PyTree, actions: np.ndarray, lengths: np.ndarray) -> "PairSet":
        """Put demonstrations onto the accelerator."""
        starts = np.cumsum(lengths + 1) - (lengths + 1)
        arrays = jax.tree.map(jnp.asarray, (steps, actions, starts.astype(np.int32), lengths.astype(np.int32)))
        return PairSet(*arrays, jnp.int32(0), jnp.int32(len(lengths) // 2), world)

    def __len__(self) -> int:
        return int(self.end - self.begin)

    def split(self, share: float = 0.9) -> tuple["PairSet", "PairSet"]:
        """Divide by pair, for training and validation; both parts share the same memory."""
        middle = self.begin + round(len(self) * share)
        if not 0 < int(middle - self.begin) < len(self):
            raise InputError(f"{len(self)} pairs cannot be split {share:.0%} to {1 - share:.0%}; collect more")
        return (
            eqx.tree_at(lambda pairs: pairs.end, self, jnp.int32(middle)),
            eqx.tree_at(lambda pairs: pairs.begin, self, jnp.int32(middle)),
        )

    def sample(self, key: Array, batch: int) -> Batch:
        """Random pairs, either side being the reference, at a random time step each. Pure: call it inside jit."""
        pair_key, side_key, time_key = jax.random.split(key, 3)
        pair = jax.random.randint(pair_key, (batch,), self.begin, self.end)
        side = jax.random.bernoulli(side_key, shape=(batch,)).astype(jnp.int32)
        demo, reference = 2 * pair + side, 2 * pair + 1 - side
        start, length = self.starts[demo], self.lengths[demo]
        time = jax.random.randint(time_key, (batch,), 0, length)
        return Batch(
            first=self._observe(start),
            now=self._observe(start + time),
            last=self._observe(start + length),
            action=jax.tree.map(lambda leaf: leaf[start - demo + time], self.actions),
            ref_first=self._observe(self.starts[reference]),
            ref_last=self._observe(self.starts[reference] + self.lengths[reference]),
        )

    def _observe(self, index: Array) -> PyTree:
        return jax.vmap(self.world.decode)(jax.tree.map(lambda leaf: leaf[index], self.steps))
