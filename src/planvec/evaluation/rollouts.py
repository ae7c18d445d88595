"""One episode of an agent following a plan, for people."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from planvec.agents import Agent
from planvec.data.demonstrations import Demonstration
from planvec.evaluation.episodes import episodes, stack
from planvec.evaluation.judge import Judge
from planvec.media.filming import film
from planvec.plans import AnyPlan
from planvec.tasks import parse_task
from planvec.worlds.protocol import World


@dataclass(frozen=True, eq=False)
class Episode(Demonstration):
    """What an agent did: a demonstration, whether it did its task, and everything that it did."""

    world: World
    skills_done: tuple[str, ...]  # in order
    success: bool
    exact: bool  # … and nothing else on the way

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
    horizon: int | None = None,
) -> Episode:
    """An agent acting on a plan in a random scene until the task is done or the horizon is reached.

    The task says what the scene must offer and when to stop; the agent never sees it. `horizon`: that of such a task,
    unless given.
    """
    task = parse_task(task, world.skills)
    scene = world.scenes([task], (seed, 5))
    plans = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None, None], agent.values(plan))  # of one agent's one episode
    most = world.horizon([len(task)]) if horizon is None else horizon
    judge = Judge(1)
    seen, steps, actions = [], [], []
    for moment in episodes(
        stack([agent]), world, plans, scene, world.asked([task]), jax.random.key(seed), most, greedy
    ):
        judge.see(moment)
        seen.append(moment.session.observe())
        steps.append(moment.session.steps())
        if moment.time:
            actions.append(moment.actions)
        if judge.verdicts.success.all() or not moment.sane.all():
            break
    observations, states, done = _joined(seen), _joined(steps), _joined(actions)
    return Episode(
        task=task,
        observations=observations,
        actions=done,
        steps=states,
        world=world,
        skills_done=tuple(event for event in world.events(states, done) if event),
        success=bool(judge.verdicts.success.all()),
        exact=bool(judge.verdicts.exact.all()),
    )


def _joined(moments: list[Any]) -> Any:
    """One after the other, as NumPy arrays."""
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *moments)
