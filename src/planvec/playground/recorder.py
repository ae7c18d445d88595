"""A person playing the crafting world, which becomes a demonstration like any other."""

import jax
import numpy as np

from planvec.data.demonstrations import Demonstration
from planvec.errors import InputError
from planvec.playground import frames
from planvec.worlds.crafting.recording import pad
from planvec.worlds.crafting.rules import ACTIONS, State
from planvec.worlds.crafting.world import Crafting, observe_many, step_many
from planvec.worlds.protocol import World

LONGEST = 300  # actions


class Recorder:
    """A scene in which everything can be done, and what was done in it."""

    def __init__(self, world: World, seed: int) -> None:
        if not isinstance(world, Crafting):
            raise InputError("only the crafting world can be played with the keyboard")
        self.world = world
        scene = jax.tree.map(np.asarray, world.scenes([world.skills], (seed, 6)))
        self.states, self.actions, self.events = [scene], [], []
        step_many(world, scene, np.zeros(1, int))  # compiles, so that the first key is answered at once

    def move(self, action: int) -> None:
        """Do one action."""
        if not 0 <= action < len(ACTIONS):
            raise InputError(f"actions are numbered 0 to {len(ACTIONS) - 1}; got {action}")
        if len(self.actions) == LONGEST:
            raise InputError(f"a demonstration has {LONGEST} actions at most; keep this one, or begin again")
        after, skill = jax.device_get(step_many(self.world, self.states[-1], np.array([action])))
        self.states.append(after)
        self.actions.append(action)
        self.events.append((*self.world.skills, None)[skill[0]])

    @property
    def picture(self) -> str:
        return frames.cells(self.states[-1])[0]

    def demonstration(self) -> Demonstration:
        """All of it; its task is what was done."""
        task = tuple(filter(None, self.events))
        if not task:
            raise InputError("nothing has been done yet: a demonstration needs at least one skill")
        states: State = jax.tree.map(lambda *leaves: np.concatenate(leaves), *self.states)
        observations = np.asarray(observe_many(self.world, pad(states)))[: len(self.states)]
        return Demonstration(task, observations, np.array(self.actions, np.uint8), states)
