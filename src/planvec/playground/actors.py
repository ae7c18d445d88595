"""Agents that act while somebody watches."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from planvec.agents import Agent
from planvec.agents.agent import EmbeddingAgent
from planvec.agents.probe import Probe
from planvec.data.demonstrations import Demonstration
from planvec.errors import InputError
from planvec.evaluation.episodes import episodes, stack
from planvec.evaluation.judge import Judge
from planvec.expressions import Expression
from planvec.plans import AnyPlan, Plan
from planvec.playground import pictures
from planvec.tasks import Task
from planvec.worlds.protocol import World

LONGEST = 600  # steps of an episode


class Actor:
    """An agent in its world."""

    def __init__(self, agent: Agent, world: World) -> None:
        self.agent = jax.tree.map(jnp.asarray, agent.bare)
        self.world = world
        self.probe = agent.probe if isinstance(agent, EmbeddingAgent) else None  # None: it cannot read plans

    def plan(self, demo: Demonstration) -> AnyPlan:
        """The plan of one demonstration."""
        return self.agent.plan(demo)

    def combine(self, expression: Expression, plans: Mapping[str, AnyPlan]) -> AnyPlan:
        """The plan that an expression stands for."""
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large is told below
            plan = expression.evaluate(plans)
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(plan)):
            raise InputError("these numbers are too large to act on; use smaller factors")
        return plan

    def read(self, plan: AnyPlan) -> list[float] | None:
        """How often each skill of the world is in a plan; None where the agent cannot tell."""
        if self.probe is None or not isinstance(plan, Plan):
            return None
        return self._by_skill(self.probe, np.asarray(plan.vector, float) @ np.asarray(self.probe.weights, float))

    def left(self, plan: AnyPlan, first: Any, now: Any) -> list[float] | None:
        """How often each skill is in what is left of a plan, as far as the agent can tell."""
        if self.probe is None or not isinstance(plan, Plan):
            return None
        return self._by_skill(self.probe, np.asarray(_read_left(self.agent, self.probe, plan.vector, first, now)))

    def _by_skill(self, probe: Probe, counts: np.ndarray) -> list[float]:
        known = dict(zip(probe.skills, np.nan_to_num(counts).round(3).tolist(), strict=True))
        return [known.get(skill, 0.0) for skill in self.world.skills]

    def begin(self, plan: AnyPlan, task: Task, offered: Task, seed: int, sizes: list[int]) -> "Watched":
        """Set a scene that offers something, to act in. `sizes`: of the parts of the plan, which say how long."""
        return Watched(self, plan, task, offered, seed, horizon=min(self.world.horizon(sizes), LONGEST))

    def warm_up(self, demo: Demonstration) -> None:
        """Compile what acting takes, by a step nobody sees."""
        episode = self.begin(self.plan(demo), demo.task, demo.task, seed=0, sizes=[len(demo.task)])
        episode.show(episode.advance())
        episode.close()


class Move(NamedTuple):
    """What an action did."""

    steps: Any  # before it and after it: [2, …]
    action: np.ndarray  # [1, …]
    event: str | None  # the skill that was done


class Step(NamedTuple):
    """What there is to see of one step."""

    time: int
    pictures: list[str]
    event: str | None
    left: list[float] | None  # how often each skill is in what is left of the plan, as far as the agent can tell
    over: bool


class Watched:
    """An agent acting in a scene, no further than somebody wants to see it."""

    def __init__(self, actor: Actor, plan: AnyPlan, task: Task, offered: Task, seed: int, horizon: int) -> None:
        """`task`: what is asked for, and ends it; never shown to the agent."""
        self.actor = actor
        self.plan = plan
        self.task = task
        self.horizon = horizon
        self.events: list[str] = []  # the skills that were done
        self.time = 0
        self.wanted = 0  # so many steps should be done by now
        self.over = False
        self._judge = Judge(1)
        agent = actor.agent
        world = actor.world
        asked = world.asked([task])  # complains where that cannot be asked for
        plans = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None, None], agent.unwrap(plan))
        scene = world.scenes([offered], (seed, 5))
        key = jax.random.key(seed)
        self._moments = episodes(stack([agent]), world, plans, scene, asked, key, horizon)
        beginning = next(self._moments).session
        self._first = self._now = _only(beginning.observe())
        self.steps = beginning.steps()

    @property
    def due(self) -> bool:
        return not self.over and self.time < self.wanted

    @property
    def success(self) -> bool:
        """All that was asked for was done; where that is nothing, nothing was."""
        return bool(self._judge.verdicts.success.all()) if self.task else not self.events

    @property
    def extras(self) -> list[str]:
        """What was done beyond what was asked for."""
        return list((Counter(self.events) - Counter(self.task)).elements())

    @property
    def exact(self) -> bool:
        """What was asked for was done, and nothing else."""
        return bool(self._judge.verdicts.exact.all()) if self.task else not self.events

    def picture(self) -> str:
        """How it looks now."""
        return pictures.still(self.actor.world, self.steps)

    def advance(self) -> Move:
        """One step."""
        before = self.steps
        moment = next(self._moments)
        self._judge.see(moment)
        self.time = moment.time
        self.steps = moment.session.steps()
        self._now = _only(moment.session.observe())
        both = jax.tree.map(lambda *leaves: np.concatenate(leaves), before, self.steps)
        [event] = self.actor.world.events(both, moment.actions)
        self.events += [event] if event else []
        done = bool(self.task) and self.success
        self.over = done or not moment.sane.all() or self.time >= self.horizon
        return Move(both, moment.actions, event)

    def show(self, move: Move) -> Step:
        """What there is to see of the last step."""
        drawn = pictures.added(self.actor.world, (move.steps, move.action))
        left = self.actor.left(self.plan, self._first, self._now)
        return Step(self.time, drawn, move.event, left, self.over)

    def fail(self) -> Step:
        """It ends here: something went wrong."""
        self.over = True
        self._judge = Judge(1)  # which has seen nothing done
        return Step(self.time, [], None, None, over=True)

    def close(self) -> None:
        """Let go of what acting holds."""
        self._moments.close()


@eqx.filter_jit
def _read_left(agent: EmbeddingAgent, probe: Probe, vector: Array, first: Any, now: Any) -> Array:
    """`Actor.left` in one program: it is asked for at every step of everybody's episodes."""
    one = jax.tree.map(lambda leaf: leaf[None], (first, now))
    return probe(vector - agent.encode(*one)[0])


def _only(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[0], tree)
