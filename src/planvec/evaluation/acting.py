"""An agent acting on an expression of plans: "A + B - C", where A, B and C are demonstrations.

What the scene must offer, and what is judged, is the same expression of the demonstrations' skills: of ChopTree and
MakeBread, less MakeBread, ChopTree is left. Counts are rounded (halves down), and those below zero are none.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from planvec.agents import Agent
from planvec.data.demonstrations import Demonstration, load_demonstration
from planvec.errors import InputError
from planvec.evaluation.rollouts import Episode, rollout
from planvec.expressions import NAME, Expression, parse
from planvec.media.filming import film_together
from planvec.plans import AnyPlan, Plan
from planvec.tasks import Task, check_seed, parse_task
from planvec.worlds.protocol import World

MOST = 64  # skills that a plan may ask for
BESIDE = 3  # so many references fit beside the agent in a film


@dataclass(frozen=True, eq=False)
class Performance:
    """What was shown to an agent, and what it did."""

    expression: Expression
    demos: dict[str, Demonstration]  # those that the expression names
    plan: AnyPlan
    episode: Episode  # its task is what was wanted

    def as_dict(self) -> dict[str, Any]:
        """For JSON. `norm` is None where plans are no vectors."""
        return {
            "plan": self.expression.text,
            "demos": {name: list(demo.task) for name, demo in self.demos.items()},
            "wanted": list(self.episode.task),
            "skills_done": list(self.episode.skills_done),
            "success": self.episode.success,
            "exact": self.episode.exact,
            "success_at": self.episode.success_at,
            "after": list(self.episode.after),
            "stays": self.episode.stays,
            "stopped": self.episode.stopped,
            "steps": len(self.episode),
            "norm": float(self.plan.norm()) if isinstance(self.plan, Plan) else None,
        }

    def describe(self) -> str:
        """For people."""
        shown = [f"{name}: {', '.join(demo.task)}" for name, demo in self.demos.items()]
        wanted = f"wanted of {self.expression}: {', '.join(self.episode.task)}"
        return "\n".join([*shown, wanted, self.episode.describe()])

    def save(self, path: Path | str) -> None:
        """Write it as a GIF: the demonstrations and the agent side by side, or the agent alone where they are many."""
        if len(self.demos) > BESIDE:
            self.episode.save(path)
            return
        shown = [(f"{name}, demonstrated", demo) for name, demo in self.demos.items()]
        film_together(self.episode.world, [*shown, (f"{self.expression}, by the agent", self.episode)], Path(path))


def act(
    agent: Agent,
    world: World,
    plan: str,
    demos: Mapping[str, str | Iterable[str] | Demonstration],
    seed: int = 0,
    task: str | Iterable[str] | None = None,
    greedy: bool = False,
    stop: str = "own",
) -> Performance:
    """Let an agent act on an expression of demonstrations: tasks for the expert, paths of saved ones, or ready ones.

    `task`: what the scene must offer and what is judged, in place of what the expression makes of the demonstrations'.
    `stop`: who may end the episode, as in `episodes`.
    """
    expression = parse(plan)
    expression.check(demos)
    shown = {name: demonstration(world, name, demos[name], seed) for name in expression.names}
    wanted = wanted_of(expression, shown) if task is None else parse_task(task, world.skills)
    with np.errstate(over="ignore"):  # what is too large is told below
        total = expression.evaluate({name: agent.plan(demo) for name, demo in shown.items()})
    if not all(bool(np.isfinite(leaf).all()) for leaf in jax.tree.leaves(total)):
        raise InputError(f"'{plan}' makes a plan of numbers too large to act on; use smaller factors")
    horizon = world.horizon(sizes_of(expression, shown) if task is None else [len(wanted)])
    episode = rollout(agent, total, world, wanted, seed, greedy, horizon, stop)
    return Performance(expression, shown, total, episode)


def parse_demos(texts: Sequence[str]) -> dict[str, str]:
    """Read "A=ChopTree,MakeBread" and the like: names, each with a task or the path of a saved demonstration."""
    demos: dict[str, str] = {}
    for text in texts:
        name, equals, what = (part.strip() for part in text.partition("="))
        if not (equals and what and NAME.fullmatch(name)):
            raise InputError(f"'{text}' names no demonstration; write A=SKILL,SKILL or A=FILE.safetensors")
        if name in demos:
            raise InputError(f"there are two demonstrations called {name}; give each a name of its own")
        demos[name] = what
    return demos


def demonstration(world: World, name: str, what: str | Iterable[str] | Demonstration, seed: int) -> Demonstration:
    """A demonstration by the expert, in a scene that depends on its name and the seed alone, or a saved one."""
    if isinstance(what, Demonstration):
        return what
    if isinstance(what, str) and ("/" in what or what.endswith(".safetensors")):
        return load_demonstration(what, world)
    check_seed(seed)
    [own_seed] = np.random.SeedSequence((seed, *name.encode())).generate_state(1)
    return world.demonstrate(what, seed=int(own_seed))


def wanted_of(expression: Expression, demos: Mapping[str, Demonstration]) -> Task:
    """The skills that an expression asks for; one that asks for none is a mistake."""
    wanted = skills_of(expression, demos)
    if not wanted:
        raise InputError(f"'{expression}' asks for no skill at all; name a task for the scene to offer and to judge by")
    return wanted


def sizes_of(expression: Expression, demos: Mapping[str, Demonstration]) -> list[int]:
    """How many skills the parts of a sum have, as a condition says it: [1, 1] of A + B. Of any other expression, the
    number of skills that it asks for in all."""
    if all(factor == 1 for _, factor in expression.terms):
        return [len(demos[name].task) for name, _ in expression.terms]
    return [max(1, len(skills_of(expression, demos)))]


def skills_of(expression: Expression, demos: Mapping[str, Demonstration]) -> Task:
    """The skills that an expression asks for, in the order in which the demonstrations mention them, turn by turn."""
    mentioned = [skill for name in expression.names for skill in demos[name].task]
    counts = {
        skill: expression.evaluate({name: demo.task.count(skill) for name, demo in demos.items()})
        for skill in mentioned
    }
    left = Counter({skill: math.ceil(min(count, MOST + 1) - 0.5) for skill, count in counts.items() if count > 0})
    if left.total() > MOST:
        raise InputError(f"'{expression}' asks for more than {MOST} skills; ask for fewer, or name a task to judge by")
    task: list[str] = []
    while +left:
        for skill in mentioned:
            if left[skill] > 0:
                task.append(skill)
                left[skill] -= 1
    return tuple(task)
