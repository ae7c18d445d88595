"""A person playing the crafting world, which becomes a demonstration like any other."""

import jax
import numpy as np

from planvec.data.demonstrations import Demonstration
from planvec.errors import InputError
from planvec.worlds.crafting.attempts import pad
from planvec.worlds.crafting.rules import ACTIONS, State
from planvec.worlds.crafting.world import Crafting, observe_many, step_many
from planvec.worlds.protocol import Player

LONGEST = 300  # actions


class CraftingPlayer(Player):
    """A scene in which everything can be done, and what was done in it."""

    def __init__(self, world: Crafting, seed: int) -> None:
        self.world = world
        scene = jax.tree.map(np.asarray, world.scenes([world.skills], (seed, 6)))
        self.steps = [scene]
        self.actions = []
        self.events = []
        step_many(world, scene, np.zeros(1, int))  # compiles, so that the first key is answered at once

    def move(self, action: int) -> None:
        if not 0 <= action < len(ACTIONS):
            raise InputError(f"actions are numbered 0 to {len(ACTIONS) - 1}; got {action}")
        if len(self.actions) == LONGEST:
            raise InputError(f"a demonstration has {LONGEST} actions at most; keep this one, or begin again")
        after, skill = jax.device_get(step_many(self.world, self.steps[-1], np.array([action])))
        self.steps.append(after)
        self.actions.append(action)
        self.events.append((*self.world.skills, None)[skill[0]])

    def demonstration(self) -> Demonstration:
        task = tuple(event for event in self.events if event)
        if not task:
            raise InputError("nothing has been done yet: a demonstration needs at least one skill")
        states: State = jax.tree.map(lambda *leaves: np.concatenate(leaves), *self.steps)
        observations = np.asarray(observe_many(self.world, pad(states)))[: len(self.steps)]
        return Demonstration(task, observations, np.array(self.actions, np.uint8), states)
