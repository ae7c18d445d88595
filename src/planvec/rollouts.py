"""One episode of an agent following a plan, for people."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from planvec.agents import Agent
from planvec.demos import Demonstration
from planvec.filming import film
from planvec.plans import AnyPlan
from planvec.tasks import parse_task
from planvec.worlds.crafting.rules import State
from planvec.worlds.crafting.world import Crafting


@dataclass(frozen=True, eq=False)
class Episode(Demonstration):
    """What an agent did: a demonstration, whether it did its task, and everything that it did."""

    world: Crafting
    skills_done: tuple[str, ...]  # in order

    @property
    def success(self) -> bool:
        return not Counter(self.task) - Counter(self.skills_done)

    def save(self, path: Path | str) -> None:
        """Write it as a GIF."""
        film(self.world, self, Path(path), title="the agent")


def rollout(
    agent: Agent,
    plan: AnyPlan,
    world: Crafting,
    task: str | Iterable[str],
    seed: int = 0,
    greedy: bool = False,
) -> Episode:
    """An agent acting on a plan in a random scene until the task is done or the horizon is reached.

    The task says what the scene must offer and when to stop; the agent never sees it.
    """
    task = parse_task(task, world.skills)
    scene = world.scenes([task], (seed, 5))
    plans = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], agent.read(plan))
    states, actions = _act(agent, world, plans, scene, jax.random.key(seed), world.horizon(len(task)), greedy)
    states = jax.tree.map(lambda start, rest: np.concatenate([start, rest[:, 0]]), scene, states)
    actions = np.asarray(actions)[:, 0].astype(np.uint8)
    events = world.events(states, actions)
    length = _until(task, events)
    steps = jax.tree.map(lambda leaf: leaf[: length + 1], states)
    observations = np.asarray(jax.vmap(world.observe)(steps))
    return Episode(task, observations, actions[:length], steps, world, tuple(filter(None, events[:length])))


def _until(task: tuple[str, ...], events: list[str | None]) -> int:
    """How many actions it took to do the task; all of them where it was not done."""
    left = Counter(task)
    for time, event in enumerate(events, start=1):
        left[event] -= 1
        if not +left:
            return time
    return len(events)


@eqx.filter_jit
def _act(
    agent: Agent, world: Crafting, plans: object, scene: State, key: Array, horizon: int, greedy: bool
) -> tuple[State, Array]:
    """States after each action, and the actions. [step, 1]"""
    first, head = jax.vmap(world.observe)(scene), agent.policy.head

    def step(states: State, time: Array) -> tuple[State, tuple[State, Array]]:
        outputs = agent.outputs(first, jax.vmap(world.observe)(states), plans)
        actions = head.greedy(outputs) if greedy else head.sample(outputs, jax.random.fold_in(key, time))
        states, _ = jax.vmap(world.step)(states, actions)
        return states, (states, actions)

    return jax.lax.scan(step, scene, jnp.arange(horizon))[1]
