"""The coins of the examples, for agents to practise with."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from own_world import HOMES

from planvec.agents import build
from planvec.agents.policies import METRES
from planvec.training.practice_config import PracticeConfig
from planvec.worlds import make

COINS = "own_world:Coins"
WORLD = make(COINS)
ENVS = 16
PRACTICE = PracticeConfig(
    sums="1,1+1", steps=4 * ENVS * 2, pool=16, envs=ENVS, minibatch=16, passes=2, interval=2, learning_rate=1e-3
)


@cache
def novice(stop=-1.5):
    """An agent that knows about where each coin belongs, and not which one to take, nor when to stop."""
    agent = build("potential", WORLD.space, 8, key=jax.random.key(0))
    head = agent.policy.head
    places = (np.add(HOMES, (0.008, 0.0)) / METRES).ravel()
    return eqx.tree_at(
        lambda agent: (agent.policy.head.head.place.bias, agent.policy.head.head.place.weight, agent.policy.head.end),
        agent,
        (
            jnp.asarray(places, jnp.float32),
            head.head.place.weight / 100,
            jax.tree.map(lambda leaf: leaf / 10, eqx.tree_at(lambda end: end.bias, head.end, jnp.full(1, 10 * stop))),
        ),
    )
