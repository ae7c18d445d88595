"""A world as small as can be for agents to practise in: five lamps in a row, each a skill to switch on."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from planvec.agents.agent import Difference
from planvec.agents.policies import Categorical, Stopping
from planvec.agents.potentials import TilePotential
from planvec.agents.residual import ResidualPolicy
from planvec.worlds.protocol import PureWorld
from planvec.worlds.retrying import generator
from planvec.worlds.spaces import Images

LAMPS = 5
LEFT, RIGHT, PRESS = range(3)


def step(lit, place, action):
    """The rules in plain Python: a tuple of bools, where the agent is; and the lamp that was switched on, or None."""
    if action == LEFT:
        return lit, max(place - 1, 0), None
    if action == RIGHT:
        return lit, min(place + 1, LAMPS - 1), None
    if lit[place]:
        return lit, place, None
    return tuple(on or i == place for i, on in enumerate(lit)), place, place


class Lamps(PureWorld):
    name = "lamps"
    skills = tuple("ABCDE")
    space = Images((3, 3 * LAMPS, 3), actions=3)
    pairs = 32

    def observe(self, state):
        """A tile of one colour for each lamp: whether it is on, in its own shade, and whether the agent is there."""
        place = jnp.arange(LAMPS)
        on = state["lit"] * (50 + 40 * place)
        here = 200 * (place == state["place"])
        tiles = jnp.stack([on, here, jnp.full(LAMPS, 30)], axis=-1).astype(jnp.uint8)
        return jnp.broadcast_to(jnp.repeat(tiles, 3, axis=0), self.space.shape)

    def step(self, state, action):
        lit, place = state["lit"], state["place"].astype(jnp.int32)
        moved = jnp.clip(place + (action == RIGHT) - (action == LEFT), 0, LAMPS - 1)
        here = (jnp.arange(LAMPS) == place) & (action == PRESS)
        skill = jnp.where(jnp.any(here & (lit == 0)), place, LAMPS)
        return {"lit": jnp.where(here, 1, lit).astype(jnp.uint8), "place": moved.astype(jnp.uint8)}, skill

    def scenes(self, tasks, seed):
        """What a task asks for is off at first; other lamps may be on."""
        return _stacked([self._scene(task, generator((*seed, i))) for i, task in enumerate(tasks)])

    def _scene(self, task, rng):
        lit = [skill not in task and rng.random() < 0.5 for skill in self.skills]
        return {"lit": np.array(lit, np.uint8), "place": np.uint8(rng.integers(LAMPS))}

    def attempt(self, task, rng, noise):
        states, actions = [self._scene(task, rng)], []
        for lamp in map(self.skills.index, task):
            while not states[-1]["lit"][lamp]:
                place = int(states[-1]["place"])
                action = PRESS if place == lamp else RIGHT if place < lamp else LEFT
                action = int(rng.integers(3)) if rng.random() < noise else action
                lit, place, _ = step(tuple(states[-1]["lit"]), place, action)
                states.append({"lit": np.array(lit, np.uint8), "place": np.uint8(place)})
                actions.append(action)
        return _stacked(states), np.array(actions, np.uint8)

    def events(self, steps, actions):
        fresh = (steps["lit"][1:] == 1) & (steps["lit"][:-1] == 0)
        return [self.skills[row.argmax()] if row.any() else None for row in fresh]

    def horizon(self, sizes):
        return 8 * sum(sizes)

    def draw(self, step):
        return np.repeat(np.repeat(np.asarray(self.observe(step)), 16, axis=0), 16, axis=1)


def _stacked(states):
    return {name: np.stack([state[name] for state in states]) for name in states[0]}


def untrained(seed=0, stop=-1.0):
    """A small agent that acts at random in it; `stop`: about the logit of its stops."""
    encoder_key, policy_key, head_key, end_key = jax.random.split(jax.random.key(seed), 4)
    features = ResidualPolicy.FEATURES
    head = Stopping(Categorical(features, 3, key=head_key), features, key=end_key)
    head = jax.tree.map(lambda leaf: leaf / 10, head)
    head = eqx.tree_at(lambda head: head.end.bias, head, jnp.full(1, stop))
    policy = ResidualPolicy(3, 3, 8, head, width=4, depth=1, key=policy_key)
    encoder = TilePotential(3, 3, 8, hidden=8, key=encoder_key)
    return Difference(policy=policy, encoder=eqx.tree_at(_last, encoder, 10 * _last(encoder)))


def _last(encoder):
    return encoder.layers[-1].weight
