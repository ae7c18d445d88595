"""Recorded steps on the accelerator, laid end to end, and what training sees of them."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from planvec.data.recordings import starts_of
from planvec.errors import InputError

if TYPE_CHECKING:
    from planvec.worlds.protocol import World

PyTree = Any


class Batch(NamedTuple):
    """What one update of training sees: a moment t of each demonstration, and the reference's two ends."""

    first: PyTree  # o₀
    now: PyTree  # o_t
    last: PyTree  # o_T
    action: Array  # a_t; at the last moment there is none, and this means nothing
    ref_first: PyTree  # o₀ of the reference
    ref_last: PyTree  # o_T of the reference
    over: Array  # bool, whether this moment is the last, t = T
    next: PyTree  # o_t+1; where the recording has ended, o_t


class Samples(eqx.Module):
    """Recorded steps laid end to end: so many recordings in a row belong together, and make one unit.

    A pytree: pass it to a jitted function as an argument (closed over, it would become a constant of the program).
    """

    steps: PyTree  # [all steps, …], as the world stores them
    actions: Array  # [all actions, …]
    starts: Array  # int32 [recording], where its steps begin
    lengths: Array  # int32 [recording], its number of actions
    begin: Array  # int32 [], the first unit of this part
    end: Array  # int32 [], the unit after its last
    world: "World" = eqx.field(static=True)

    unit: ClassVar[str]  # what units are called
    size: ClassVar[int]  # recordings in each

    @classmethod
    def of(cls, world: "World", steps: PyTree, actions: np.ndarray, lengths: np.ndarray) -> Self:
        """Put recordings onto the accelerator."""
        first_steps = starts_of(lengths + 1)
        return cls(
            steps=jax.tree.map(jnp.asarray, steps),
            actions=jax.tree.map(jnp.asarray, actions),
            starts=jnp.asarray(first_steps, jnp.int32),
            lengths=jnp.asarray(lengths, jnp.int32),
            begin=jnp.int32(0),
            end=jnp.int32(len(lengths) // cls.size),
            world=world,
        )

    def __len__(self) -> int:
        return int(self.end - self.begin)

    def split(self, share: float = 0.9) -> tuple[Self, Self]:
        """Divide by unit, for training and validation; both parts share the same memory."""
        middle = self.begin + round(len(self) * share)
        if not 0 < int(middle - self.begin) < len(self):
            raise InputError(f"{len(self)} {self.unit} cannot be split {share:.0%} to {1 - share:.0%}; collect more")
        return (
            eqx.tree_at(lambda samples: samples.end, self, jnp.int32(middle)),
            eqx.tree_at(lambda samples: samples.begin, self, jnp.int32(middle)),
        )

    @abstractmethod
    def sample(self, key: Array, batch: int, ended: float = 0.0) -> Batch:
        """Random moments, a share of them, `ended`, at the very end. Pure: call it inside jit."""

    def moments(self, recording: Array, time: Array) -> PyTree:
        """What is observed in recordings, after so many actions each."""
        index = self.starts[recording] + time
        return jax.vmap(self.world.decode)(jax.tree.map(lambda leaf: leaf[index], self.steps))

    def acts(self, recording: Array, time: Array) -> PyTree:
        """What is done in them then."""
        index = self.starts[recording] - recording + time
        return jax.tree.map(lambda leaf: leaf[index], self.actions)
