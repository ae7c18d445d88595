"""Whether scenes can be done at all: on boards as full as tasks of dozens of skills make them, an agent may begin
walled in by trees and rocks, and never reach a tool."""

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from planvec.worlds.crafting.expert import choose
from planvec.worlds.crafting.rules import State

if TYPE_CHECKING:
    from planvec.worlds.crafting.world import Crafting

TRIES = 3  # in which the expert does the skills in an order of its own; nearly all that it can do it does in the first
CHUNK = 100  # steps between two looks at which have ended


class Try(NamedTuple):
    """An expert under way that may do what is left in any order."""

    state: State
    left: Array  # int32 [skill], how often each is still to be done
    skill: Array  # int32 [], what it does now; counted on beyond the last
    stuck: Array  # int32 [], how many skills in a row could not be done


def doable(world: "Crafting", scenes: State, wanted: np.ndarray, horizon: int, seed: Array) -> np.ndarray:
    """Whether an expert does so much of each skill, and nothing else. `wanted`: int32 [scene, skill]; bool [scene]"""
    done = np.zeros(len(wanted), bool)
    for attempt in range(TRIES):
        key = jax.random.fold_in(seed, attempt)
        first = jax.random.randint(key, (len(wanted),), 0, len(world.skills))
        none = jnp.zeros(len(wanted), jnp.int32)
        tries = Try(jax.tree.map(jnp.asarray, scenes), jnp.asarray(wanted, jnp.int32), first, none)
        for begin in range(0, horizon, CHUNK):
            tries, going = _advance(world, tries, jax.random.fold_in(key, begin))
            if not np.any(going):
                break
        done |= np.asarray(jnp.all(tries.left == 0, axis=1))
        if done.all():
            break
    return done


@partial(jax.jit, static_argnames="world")
def _advance(world: "Crafting", tries: Try, key: Array) -> tuple[Try, Array]:
    """CHUNK steps of all; and which of them go on."""

    def step(tries: Try, key: Array) -> tuple[Try, None]:
        words = jax.random.bits(key, (len(tries.skill),))
        return jax.vmap(partial(_step, world))(tries, words), None

    tries, _ = jax.lax.scan(step, tries, jax.random.split(key, CHUNK))
    return tries, jnp.any(tries.left > 0, axis=1) & (tries.stuck < len(world.skills))


def _step(world: "Crafting", before: Try, word: Array) -> Try:
    """An action towards the present skill, or the next that is left; or, where it cannot be done, none."""
    skills = jnp.arange(len(world.skills))
    order = (before.skill + skills) % len(skills)
    left = before.left > 0
    present = order[jnp.argmax(left[order])]
    action, possible = choose(world, before.state, order, left[order], word, keep_extras=False)
    acts = jnp.any(left) & possible
    moved, skill = world.step(before.state, action)
    did = acts & (skill == skills)
    any_of_them = ((word >> 16) % len(skills)).astype(jnp.int32)
    return Try(
        state=jax.tree.map(lambda new, old: jnp.where(acts, new, old), moved, before.state),
        left=before.left - did,
        skill=jnp.where(jnp.any(did), any_of_them, jnp.where(acts, present, present + 1)),
        stuck=jnp.where(acts, 0, before.stuck + 1),
    )
