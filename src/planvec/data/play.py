"""Play on the accelerator: long recordings of whatever was done, unpaired; and stretches of them for training.

What was done between two moments of a recording is its own reference: a sample's plan is made from the first and the
last observation of the very stretch that is imitated.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from planvec.data.pairs import NOISE
from planvec.data.samples import Batch, PyTree, Samples

if TYPE_CHECKING:
    from planvec.worlds.protocol import World

SKILLS = (8, 8)  # of a recording, unless told
WINDOW = 60  # actions of a stretch at most, unless told


def as_many(world: "World", pairs: int, skills: tuple[int, int] = SKILLS) -> int:
    """How many recordings have as many skills in them as so many of the world's usual pairs."""
    return max(1, round(2 * pairs * sum(world.sizes) / sum(skills)))


class PlaySet(Samples):
    """Recordings laid end to end, each by itself."""

    unit: ClassVar[str] = "recordings"
    size: ClassVar[int] = 1

    @staticmethod
    def fresh(world: "World", count: int, seed: Sequence[int], skills: tuple[int, int] = SKILLS) -> "PlaySet":
        """Recordings of the expert, in memory."""
        demos = world.record(world.sample_tasks((*seed, 0), count, *skills), (*seed, 1), NOISE)
        return PlaySet.of(world, world.replay(demos), demos.actions, demos.lengths)

    def sample(self, key: Array, batch: int, ended: float = 0.0, window: int = WINDOW, jitter: int = 0) -> Batch:
        """Random stretches of random recordings, of `window` actions at most, at a random time step each; a share of
        them, `ended`, at the very end. Pure: call it inside jit.

        The reference is the stretch, with either end moved by `jitter` actions at most: nearly the same was done.
        """
        which_key, start_key, size_key, time_key, over_key, begin_key, end_key = jax.random.split(key, 7)
        which = jax.random.randint(which_key, (batch,), self.begin, self.end)
        length = self.lengths[which]
        start = jax.random.randint(start_key, (batch,), 0, length)
        end = start + jax.random.randint(size_key, (batch,), 1, jnp.minimum(window, length - start) + 1)
        time = jax.random.randint(time_key, (batch,), start, end)
        over = jax.random.bernoulli(over_key, ended, (batch,))
        time = jnp.where(over, end, time)

        def near(key: Array, moment: Array) -> Array:
            return moment + jax.random.randint(key, (batch,), -jitter, jitter + 1)

        ref_start = jnp.clip(near(begin_key, start), 0, length)
        ref_end = jnp.clip(near(end_key, end), ref_start, length)
        return Batch(
            first=self.moments(which, start),
            now=self.moments(which, time),
            last=self.moments(which, end),
            action=self.acts(which, time),
            ref_first=self.moments(which, ref_start),
            ref_last=self.moments(which, ref_end),
            over=over,
            next=self.moments(which, jnp.minimum(time + 1, length)),
        )

    def neighbours(self, key: Array, batch: int, actions: int) -> tuple[PyTree, PyTree, PyTree]:
        """Three moments of random recordings, so many actions from each to the next; in shorter recordings as many as
        they have room for."""
        which_key, start_key = jax.random.split(key)
        which = jax.random.randint(which_key, (batch,), self.begin, self.end)
        length = self.lengths[which]
        apart = jnp.minimum(actions, length // 2)
        start = jax.random.randint(start_key, (batch,), 0, length - 2 * apart + 1)
        return tuple(self.moments(which, start + turn * apart) for turn in range(3))
