"""Episodes in a pure world, stepped from outside as those in a hosted one are."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from planvec.worlds.protocol import PureWorld, Session

NOTHING = -1  # in place of the number of a skill that was done


class PureSession(Session):
    """States, and how often each skill was done."""

    def __init__(self, world: PureWorld, scenes: Any) -> None:
        self.world = world
        self._states = lambda: scenes
        self._done = np.zeros((len(jax.tree.leaves(scenes)[0]), len(world.skills)), int)

    def observe(self) -> Any:
        return _observe(self.world, self._states())

    def step(self, actions: np.ndarray, going: np.ndarray) -> np.ndarray:
        states, skills = _step(self.world, self._states(), actions, going)
        self.follow(lambda: states, np.asarray(skills))
        return np.ones(len(actions), bool)

    def follow(self, states: Callable[[], Any], skills: np.ndarray) -> None:
        """One action further, which was done elsewhere: where it led, asked for when somebody wants to know, and the
        number of the skill that it did. [episode]"""
        self._states = states
        self._done = self._done + (skills[:, None] == np.arange(len(self.world.skills)))

    def judge(self, asked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.all(self._done >= asked, axis=1), np.all(self._done <= asked, axis=1)

    def steps(self) -> Any:
        return jax.tree.map(np.asarray, self._states())


@eqx.filter_jit
def _observe(world: PureWorld, states: Any) -> Any:
    return jax.vmap(world.observe)(states)


@eqx.filter_jit
def _step(world: PureWorld, states: Any, actions: np.ndarray, going: np.ndarray) -> tuple[Any, Array]:
    after, skills = jax.vmap(world.step)(states, actions)
    return chosen(going, after, states), jnp.where(going, jnp.int32(skills), NOTHING)


def chosen(which: Array | np.ndarray, ours: Any, theirs: Any) -> Any:
    """Of two trees the rows of one where so wanted, and of the other elsewhere."""
    return jax.tree.map(
        lambda one, other: jnp.where(which.reshape(-1, *[1] * (one.ndim - 1)), one, other), ours, theirs
    )
