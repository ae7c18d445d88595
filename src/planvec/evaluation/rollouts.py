"""One episode of an agent following a plan, for people."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from planvec.agents import Agent
from planvec.data.demonstrations import Demonstration
from planvec.media.filming import film
from planvec.plans import AnyPlan
from planvec.tasks import Task, parse_task
from planvec.worlds.protocol import HostedWorld, PureWorld, World, is_hosted


@dataclass(frozen=True, eq=False)
class Episode(Demonstration):
    """What an agent did: a demonstration, whether it did its task, and everything that it did."""

    world: World
    skills_done: tuple[str, ...]  # in order
    success: bool

    def save(self, path: Path | str) -> None:
        """Write it as a GIF."""
        film(self.world, self, Path(path), title="the agent")


def rollout(
    agent: Agent,
    plan: AnyPlan,
    world: World,
    task: str | Iterable[str],
    seed: int = 0,
    greedy: bool = False,
) -> Episode:
    """An agent acting on a plan in a random scene until the task is done or the horizon is reached.

    The task says what the scene must offer and when to stop; the agent never sees it.
    """
    task = parse_task(task, world.skills)
    plans = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], agent.values(plan))
    run = _run_hosted if is_hosted(world) else _run_pure
    return run(agent, world, plans, task, seed, greedy)


def _run_pure(agent: Agent, world: PureWorld, plans: Any, task: Task, seed: int, greedy: bool) -> Episode:
    """The whole horizon in one program, cut off where the task was done."""
    scene = world.scenes([task], (seed, 5))
    states, actions = _act(agent, world, plans, scene, jax.random.key(seed), world.horizon([len(task)]), greedy)
    states = jax.tree.map(lambda start, rest: np.concatenate([start, rest[:, 0]]), scene, states)
    actions = np.asarray(actions)[:, 0].astype(np.uint8)
    events = world.events(states, actions)
    length = _until(task, events)
    steps = jax.tree.map(lambda leaf: leaf[: length + 1], states)
    done = tuple(filter(None, events[:length]))
    observations = np.asarray(jax.vmap(world.observe)(steps))
    success = not Counter(task) - Counter(done)
    return Episode(task, observations, actions[:length], steps, world, done, success)


def _run_hosted(agent: Agent, world: HostedWorld, plans: Any, task: Task, seed: int, greedy: bool) -> Episode:
    """Step by step."""
    asked, key, success, actions = world.asked([task]), jax.random.key(seed), False, []
    with world.start(world.scenes([task], (seed, 5))) as session:
        seen, steps = [session.observe()], [session.steps()]
        while not success and len(actions) < world.horizon([len(task)]):
            action_key = jax.random.fold_in(key, len(actions))
            actions.append(np.asarray(_act_once(agent, seen[0], seen[-1], plans, action_key, greedy)))
            sane = session.step(actions[-1]).all()
            seen.append(session.observe())
            steps.append(session.steps())
            success = bool(sane and session.judge(asked)[0].all())
            if not sane:
                break
    seen, steps, actions = map(_join, (seen, steps, actions))
    done = tuple(filter(None, world.events(steps, actions)))
    return Episode(task, seen, actions, steps, world, done, success)


def _join(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *trees)


def _until(task: Task, events: list[str | None]) -> int:
    """How many actions it took to do the task; all of them where it was not done."""
    left = Counter(task)
    for time, event in enumerate(events, start=1):
        left[event] -= 1
        if not +left:
            return time
    return len(events)


@eqx.filter_jit
def _act(
    agent: Agent, world: PureWorld, plans: Any, scene: Any, key: Array, horizon: int, greedy: bool
) -> tuple[Any, Array]:
    """States after each action, and the actions. [step, 1]"""
    first = jax.vmap(world.observe)(scene)

    def step(states: Any, time: Array) -> tuple[Any, tuple[Any, Array]]:
        now = jax.vmap(world.observe)(states)
        actions = agent.choose(first, now, plans, jax.random.fold_in(key, time), greedy)
        states, _ = jax.vmap(world.step)(states, actions)
        return states, (states, actions)

    return jax.lax.scan(step, scene, jnp.arange(horizon))[1]


@eqx.filter_jit
def _act_once(agent: Agent, first: Any, now: Any, plans: Any, key: Array, greedy: bool) -> Array:
    return agent.choose(first, now, plans, key, greedy)
