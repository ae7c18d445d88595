"""Pairs of demonstrations on the accelerator, and samples of them for training."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

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

NOISE = 0.1  # the share of the expert's actions that are random, unless told


class Batch(NamedTuple):
    """What one update of training sees: a moment t of each demonstration, and the reference's two ends."""

    first: PyTree  # o₀
    now: PyTree  # o_t
    last: PyTree  # o_T
    action: Array  # a_t; at the last moment there is none, and this means nothing
    ref_first: PyTree  # o₀ of the reference
    ref_last: PyTree  # o_T of the reference
    over: Array  # bool, whether this moment is the last, t = T


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
        first_steps = starts_of(lengths + 1)
        return PairSet(
            steps=jax.tree.map(jnp.asarray, steps),
            actions=jax.tree.map(jnp.asarray, actions),
            starts=jnp.asarray(first_steps, jnp.int32),
            lengths=jnp.asarray(lengths, jnp.int32),
            begin=jnp.int32(0),
            end=jnp.int32(len(lengths) // 2),
            world=world,
        )

    @staticmethod
    def fresh(world: "World", count: int, seed: Sequence[int]) -> "PairSet":
        """Pairs of demonstrations by the expert, of the world's usual tasks, in memory."""
        tasks = [task for task in world.sample_tasks((*seed, 0), count, *world.sizes) for _ in range(2)]
        demos = world.record(tasks, (*seed, 1), NOISE)
        return PairSet.of(world, world.replay(demos), demos.actions, demos.lengths)

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

    def sample(self, key: Array, batch: int, ended: float = 0.0) -> Batch:
        """Random pairs, either side being the reference, at a random time step each; a share of them, `ended`, at the
        very end. Pure: call it inside jit."""
        pair_key, side_key, time_key = jax.random.split(key, 3)
        pair = jax.random.randint(pair_key, (batch,), self.begin, self.end)
        side = jax.random.bernoulli(side_key, shape=(batch,)).astype(jnp.int32)
        demo = 2 * pair + side
        reference = 2 * pair + 1 - side
        start = self.starts[demo]
        length = self.lengths[demo]
        time = jax.random.randint(time_key, (batch,), 0, length)
        over = jax.random.bernoulli(jax.random.fold_in(time_key, 1), ended, (batch,))
        time = jnp.where(over, length, time)
        return Batch(
            first=self._observe(start),
            now=self._observe(start + time),
            last=self._observe(start + length),
            action=jax.tree.map(lambda leaf: leaf[start - demo + time], self.actions),
            ref_first=self._observe(self.starts[reference]),
            ref_last=self._observe(self.starts[reference] + self.lengths[reference]),
            over=over,
        )

    def _observe(self, index: Array) -> PyTree:
        return jax.vmap(self.world.decode)(jax.tree.map(lambda leaf: leaf[index], self.steps))
