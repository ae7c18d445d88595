"""Games of the crafting world: a state, a task, what has been done of it, and how they begin and end.

Pure functions of one game, like the world's; the gymnasium environments and the benchmark are built on them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from planvec.tasks import NO_SKILL
from planvec.worlds.crafting.rules import State

if TYPE_CHECKING:
    from planvec.worlds.crafting.world import Crafting


class Game(NamedTuple):
    state: State
    asked: Array  # uint8 [skill], how often the task asks for each skill
    done: Array  # uint8 [skill], how often each has been done
    time: Array  # int32 []
    horizon: Array  # int32 [], when the game is cut off


class Outcome(NamedTuple):
    """What gymnasium's step tells, apart from the observation."""

    reward: Array  # float32 [], 1 for each of the task's skills
    terminated: Array  # bool [], the whole task is done
    truncated: Array  # bool [], the horizon is reached


def begin(world: "Crafting", key: Array, task: Array) -> Game:
    """A fresh scene for an encoded task."""
    asked = world.count_skills(task)
    horizons = jnp.array([world.horizon([max(1, count)]) for count in range(len(task) + 1)], jnp.int32)
    return Game(
        state=world.reset(key, task),
        asked=asked,
        done=jnp.zeros_like(asked),
        time=jnp.int32(0),
        horizon=horizons[jnp.sum(task != NO_SKILL)],
    )


def advance(world: "Crafting", game: Game, action: Array) -> tuple[Game, Outcome]:
    """One action."""
    state, skill = world.step(game.state, action)
    happened = jnp.arange(len(world.skills)) == skill
    done = game.done + happened.astype(jnp.uint8)
    time = game.time + 1
    reward = jnp.sum(happened & (game.done < game.asked), dtype=jnp.float32)
    terminated = jnp.all(done >= game.asked)
    outcome = Outcome(reward, terminated, ~terminated & (time >= game.horizon))
    return game._replace(state=state, done=done, time=time), outcome


def advance_and_reset(
    world: "Crafting", game: Game, action: Array, fresh: Callable[[], Game]
) -> tuple[Game, Game, Outcome]:
    """One action; where it ends the game, a new one begins. Also returns the game as the action left it."""
    final, outcome = advance(world, game, action)
    over = outcome.terminated | outcome.truncated
    return jax.tree.map(lambda new, old: jnp.where(over, new, old), fresh(), final), final, outcome
