"""The crafting expert: does a task skill after skill, by shortest paths, and nothing that was not asked for.

It plans afresh at every step, so that noise never throws it off. Sets of cells are bitboards, one word a row:
a search from all goals at once is a few shifts and ors, for thousands of boards together.
"""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jax import Array

from planvec.worlds.crafting.rules import DROP, MOVE, NEIGHBOUR, NOTHING, PICKUP, SIZE, AnyArray, State

if TYPE_CHECKING:
    from planvec.worlds.crafting.world import Crafting


def choose(
    world: "Crafting", state: State, task: Array, left: Array, word: Array, keep_extras: bool
) -> tuple[Array, Array]:
    """The expert's action, and whether there is one. `word`: random bits, to break ties between shortest paths."""
    rules = world.rules
    skill = task[jnp.argmax(left)]
    tool = jnp.asarray(rules.tool)[skill]
    target = jnp.asarray(rules.target)[skill]
    ready = (tool == NOTHING) | (state.held == tool)
    goal = jnp.where(ready, target, jnp.where(state.held == NOTHING, tool, NOTHING))  # else put down what is held
    asked = jnp.any(left[:, None] & (task[:, None] == jnp.arange(len(world.skills))), axis=0)
    free = _free_kinds(world, state.held, asked | keep_extras)
    direction, reachable = _first_step(
        start=state.agent,
        goals=_bitboard(state.cells, jnp.uint32(1) << goal),
        free=_bitboard(state.cells, free),
        word=word,
    )
    at_goal = ~ready & (state.cells[state.agent] == goal)
    hand = jnp.where(state.held == NOTHING, PICKUP, DROP)
    return jnp.where(at_goal, hand, direction).astype(jnp.uint8), at_goal | reachable


def tick_off(task: Array, left: Array, skill: Array, keep_extras: bool) -> Array:
    """What is left of the task after a skill was done: its first entry of that kind goes.

    Where extras are kept, only the entry being worked on goes: what happens by the way is not credited.
    """
    same = left & (task == skill)
    first = jnp.arange(len(task)) == jnp.argmax(left if keep_extras else same)
    return left & ~(same & first)


def _free_kinds(world: "Crafting", held: AnyArray, asked: Array) -> Array:
    """The kinds of thing that may be walked over, as bits: those that let one in and do no skill but one asked for."""
    outcome = world.rules.outcome
    harmless = jnp.append(asked, True)[jnp.asarray(outcome.skill[MOVE])[held]]
    free = jnp.asarray(outcome.enters[MOVE])[held] & harmless
    return jnp.sum(free.astype(jnp.uint32) << jnp.arange(len(free), dtype=jnp.uint32), dtype=jnp.uint32)


def _bitboard(cells: AnyArray, kinds: Array) -> Array:
    """Where things of the given kinds (bits) lie: a word a row. uint32 [10]"""
    bits = (kinds >> cells.astype(jnp.uint32)).reshape(SIZE, SIZE) & 1
    return jnp.sum(bits << jnp.arange(SIZE, dtype=jnp.uint32), axis=1, dtype=jnp.uint32)


def _first_step(start: AnyArray, goals: Array, free: Array, word: Array) -> tuple[Array, Array]:
    """The first step of a random shortest path from `start` to a goal, and whether there is a path."""
    moves = jnp.asarray(NEIGHBOUR[:, :4])[start].astype(jnp.int32)
    inside = moves != start

    def hits(reached: Array) -> Array:
        """Which of the four moves lead into the reached cells."""
        return inside & ((reached[moves // SIZE] >> (moves % SIZE).astype(jnp.uint32)) & 1 == 1)

    def spread(search: tuple[Array, Array]) -> tuple[Array, Array]:
        reached, _ = search
        sideways = reached << 1 | reached >> 1
        above = jnp.pad(reached[1:], (0, 1))
        below = jnp.pad(reached[:-1], (1, 0))
        grown = reached | ((sideways | above | below) & free)
        return grown, jnp.any(grown != reached)

    def searching(search: tuple[Array, Array]) -> Array:
        reached, growing = search
        return growing & ~jnp.any(hits(reached))

    reached, _ = jax.lax.while_loop(searching, spread, (goals, jnp.bool_(True)))
    good = hits(reached)
    pick = (word % jnp.maximum(jnp.sum(good), 1).astype(jnp.uint32)).astype(jnp.int32)
    return jnp.argmax(good & (jnp.cumsum(good) == pick + 1)), jnp.any(good)
