"""One episode of an agent following a plan, for people."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
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
from planvec.worlds.protocol import World, take

LATER = 15  # steps after success that a film shows, where the agent goes on


@dataclass(frozen=True, eq=False)
class Episode(Demonstration):
    """What an agent did, until it stopped or the horizon came: a demonstration, and how it is judged."""

    world: World
    skills_done: tuple[str, ...]  # in order
    success: bool
    exact: bool  # … and nothing else had been done by then
    stays: bool  # … nor was it later, and all of it still held at the end
    stopped: bool  # whether the agent has said that nothing is left to do
    success_at: int | None  # how many actions success took
    after: tuple[str, ...]  # the skills that were done after that
    whole: int  # actions of the whole episode, of which a film may show fewer

    @property
    def before(self) -> tuple[str, ...]:
        """The skills that were done up to success, or at all where there was none."""
        return self.skills_done[: len(self.skills_done) - len(self.after)]

    @property
    def filmed(self) -> "Episode":
        """Where an agent goes on and on, some of what came after success is enough."""
        if self.success_at is None or self.stopped:
            return self
        end = min(self.success_at + LATER, len(self))
        observations, steps = take((self.observations, self.steps), slice(end + 1))
        return replace(self, observations=observations, steps=steps, actions=self.actions[:end])

    def remarks(self, time: int) -> list[str]:
        lines = [f"step {time} of {self.whole}"]
        if self.success_at is not None and time >= self.success_at:
            lines.append(f"success at step {self.success_at}, {'and nothing else' if self.exact else 'and more'}")
        if time == len(self) and self.stopped:
            lines.append("the agent has stopped")
        if time == len(self) < self.whole:
            lines.append("cut here: the agent goes on")
        return lines

    def describe(self) -> str:
        """For people: what was done, and what came after success."""
        did = f"the agent did {', '.join(self.before) or 'nothing'}"
        if self.success_at is None:
            return f"{did} in {_steps(self.whole)}{', and stopped' if self.stopped else ''}: failure"
        success = f"success, {'and nothing else' if self.exact else 'and more'}"
        more = f"it did {', '.join(self.after)}" if self.after else "it did nothing more"
        if self.exact and not self.stays and not self.after:
            more = "it did not leave it so"
        until = "and stopped" if self.stopped else f"until the horizon, step {self.whole}"
        return f"{did} in {_steps(self.success_at)}: {success}; then {more} {until}"

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
    stop: str = "own",
) -> Episode:
    """An agent acting on a plan in a random scene, until it stops or the horizon is reached.

    The task says what the scene must offer and what is judged; the agent never sees it. `horizon`: that of such a task,
    unless given. `stop`: who may end the episode, as in `episodes`.
    """
    task = parse_task(task, world.skills)
    scene = world.scenes([task], (seed, 5))
    plans = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None, None], agent.values(plan))  # of one agent's one episode
    most = world.horizon([len(task)]) if horizon is None else horizon
    key = jax.random.key(seed)
    judge = Judge(1)
    stopped = False
    seen, steps, actions = [], [], []
    for moment in episodes(stack([agent], stop), world, plans, scene, world.asked([task]), key, most, greedy, stop):
        judge.see(moment)
        stopped = bool(moment.stopped.all())
        if stopped:
            break  # its action was not done
        seen.append(moment.session.observe())
        steps.append(moment.session.steps())
        if moment.time:
            actions.append(moment.actions)
        if not moment.sane.all():
            break
    observations, states = _joined(seen), _joined(steps)
    done = _joined(actions or [take(moment.actions, slice(0))])
    events = world.events(states, done) if actions else []
    verdicts = judge.verdicts
    success = bool(verdicts.success.all())
    at = int(verdicts.success_at[0]) if success else None
    return Episode(
        task=task,
        observations=observations,
        actions=done,
        steps=states,
        world=world,
        skills_done=tuple(event for event in events if event),
        success=success,
        exact=bool(verdicts.exact.all()),
        stays=bool(verdicts.stays.all()),
        stopped=stopped,
        success_at=at,
        after=tuple(event for event in events[at:] if event) if success else (),
        whole=len(done),
    )


def _steps(count: int) -> str:
    return f"{count} step{'' if count == 1 else 's'}"


def _joined(moments: list[Any]) -> Any:
    """One after the other, as NumPy arrays."""
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *moments)
