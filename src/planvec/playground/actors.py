"""Agents that act for many people at once: a step of all the episodes that somebody is watching is one program."""

import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from planvec.agents import Agent
from planvec.agents.agent import EmbeddingAgent
from planvec.data.demonstrations import Demonstration
from planvec.errors import InputError
from planvec.expressions import Expression
from planvec.plans import AnyPlan
from planvec.playground import frames
from planvec.tasks import Task
from planvec.worlds.protocol import PureWorld, World, is_hosted

LANES = 32  # episodes, or demonstrations, that one program deals with at most; fewer leave lanes empty
LONGEST = 600  # steps of an episode

Result = TypeVar("Result")
log = logging.getLogger(__name__)


class Moment(NamedTuple):
    """All that the next step of an episode in a pure world depends on."""

    first: Any  # the state in which it began
    state: Any
    plan: Any  # as the agent's policy reads it
    done: Any  # what the agent makes of the episode so far
    seed: np.ndarray  # int32 []
    time: np.ndarray  # int32 []


class Step(NamedTuple):
    """What there is to see of one step."""

    time: int
    pictures: list[str]
    event: str | None  # the skill that was done
    left: list[float] | None  # how often each skill is in what is left of the plan, as far as the agent can tell
    over: bool


@dataclass(eq=False)
class Episode:
    """An agent acting in a scene, no further than somebody wants to see it."""

    plan: AnyPlan
    task: Task  # what is asked for, and ends it; never shown to the agent
    horizon: int
    seed: int
    now: Any  # a Moment, or a hosted world's session
    first: Any = None  # where the world is hosted: the first observation, …
    seen: Any = None  # … the last one, …
    done: Any = None  # … and what the agent makes of the episode so far
    events: list[str] = field(default_factory=list)  # the skills that were done
    time: int = 0
    wanted: int = 0  # so many steps should be done by now
    over: bool = False
    success: bool = False  # all that was asked for was done; where that is nothing, nothing was

    @property
    def due(self) -> bool:
        return not self.over and self.time < self.wanted

    @property
    def extras(self) -> list[str]:
        """What was done beyond what was asked for."""
        return list((Counter(self.events) - Counter(self.task)).elements())

    def note(self, event: str | None, done: bool, broken: bool = False) -> None:
        """Take down what the last step did. `done`: all that was asked for; `broken`: the simulator has failed."""
        self.time += 1
        self.events += [event] if event else []
        self.success = done if self.task else not self.events
        self.over = bool(self.task and done) or broken or self.time >= self.horizon


class Actor(ABC):
    """An agent in its world."""

    lanes: ClassVar[tuple[int, ...]] = (LANES,)  # what programs are compiled for

    def __init__(self, agent: Agent, world: World) -> None:
        self.agent, self.world = jax.tree.map(jnp.asarray, replace(agent, probe=None)), world
        self.probe = agent.probe if isinstance(agent, EmbeddingAgent) else None  # None: it cannot read plans

    def encode(self, firsts: Any, lasts: Any) -> Any:
        """The plans of demonstrations, as values, from their first and last observations. NumPy, [demonstration, …]"""
        pieces = []
        for start in range(0, len(jax.tree.leaves(firsts)[0]), LANES):
            piece = jax.tree.map(lambda leaf, start=start: leaf[start : start + LANES], (firsts, lasts))
            values, count = _encode(self.agent, *_fill(piece, self.lanes)), len(jax.tree.leaves(piece)[0])
            pieces.append(jax.tree.map(lambda leaf, count=count: np.asarray(leaf)[:count], values))
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *pieces)

    def plan(self, demo: Demonstration) -> AnyPlan:
        """The plan of one demonstration."""
        return self.agent.wrap(self._encode_one(demo.first, demo.last))

    def combine(self, expression: Expression, plans: dict[str, AnyPlan]) -> AnyPlan:
        """The plan that an expression stands for."""
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large is told below
            plan = expression.evaluate(plans)
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(plan)):
            raise InputError("these numbers are too large to act on; use smaller factors")
        return plan

    def read(self, plan: AnyPlan) -> list[float] | None:
        """How often each skill is in a plan; None where the agent cannot tell."""
        return self._counts(self.agent.unwrap(plan)) if self.probe else None

    def begin(self, plan: AnyPlan, task: Task, offered: Task, seed: int) -> Episode:
        """Set a scene that offers something, to act in."""
        self.world.asked([task])  # complains where that cannot be asked for
        scene = self.world.scenes([offered], (seed, 5))
        horizon = min(self.world.horizon([max(1, len(task))]), LONGEST)
        return self._set(Episode(plan, task, horizon, seed, now=None), scene)

    def warm_up(self, demo: Demonstration) -> None:
        """Compile what acting takes, by a step nobody sees."""
        episode = self.begin(self.plan(demo), demo.task, demo.task, seed=0)
        self.advance([episode])
        self.end(episode)

    @abstractmethod
    def picture(self, episode: Episode) -> str:
        """How an episode looks at first."""

    @abstractmethod
    def advance(self, episodes: Sequence[Episode]) -> list[Step]:
        """One step of each, LANES at most."""

    @abstractmethod
    def end(self, episode: Episode) -> None:
        """Let go of an episode."""

    @abstractmethod
    def _set(self, episode: Episode, scene: Any) -> Episode:
        """The episode at its beginning."""

    def _encode_one(self, first: Any, last: Any) -> Any:
        return _only(self.encode(*jax.tree.map(lambda leaf: np.asarray(leaf)[None], (first, last))))

    def _left(self, episode: Episode, done: Any) -> list[float] | None:
        """What is left of the plan."""
        return self._counts(np.asarray(episode.plan.vector) - done) if self.probe else None

    def _counts(self, vector: Any) -> list[float]:
        """How often each skill of the world is in a plan vector."""
        counts = np.nan_to_num(np.asarray(vector, float) @ np.asarray(self.probe.weights, float)).round(3).tolist()
        by_skill = dict(zip(self.probe.skills, counts, strict=True))
        return [by_skill.get(skill, 0.0) for skill in self.world.skills]


class PureActor(Actor):
    """In a world that is a function of its state: all episodes go one step further together."""

    def picture(self, episode: Episode) -> str:
        return frames.first(self.world, episode.now.state)

    def advance(self, episodes: Sequence[Episode]) -> list[Step]:
        moments = _stack([episode.now for episode in episodes])
        after, skills = jax.device_get(_step(self.agent, self.world, _fill(moments, self.lanes)))
        names = (*self.world.skills, None)
        pictures = frames.cells(after.state)
        steps = []
        for lane, episode in enumerate(episodes):
            episode.now = jax.tree.map(lambda leaf, lane=lane: leaf[lane], after)
            event = names[skills[lane]]
            episode.note(event, done=not Counter(episode.task) - Counter([*episode.events, event]))
            left = self._left(episode, episode.now.done)
            steps.append(Step(episode.time, [pictures[lane]], event, left, episode.over))
        return steps

    def _set(self, episode: Episode, scene: Any) -> Episode:
        state = jax.tree.map(lambda leaf: np.asarray(leaf)[0], scene)
        seen = np.asarray(_observe(self.world, scene))[0]
        plan, done = jax.tree.map(np.asarray, self.agent.unwrap(episode.plan)), self._encode_one(seen, seen)
        episode.now = Moment(state, state, plan, done, np.int32(episode.seed), np.int32(0))
        return episode

    def end(self, episode: Episode) -> None:
        """Nothing is held."""


class Move(NamedTuple):
    """What an action did in a simulator."""

    steps: Any  # before it and after it
    action: np.ndarray
    event: str | None


class HostedActor(Actor):
    """In a simulator: the agent's part is one program for all episodes, the rest is each one's own. What goes wrong in
    one of them ends that one."""

    lanes = (1, 8, LANES)

    def __init__(self, agent: Agent, world: World) -> None:
        super().__init__(agent, world)
        self._painters = ThreadPoolExecutor(frames.at_once(world), "pictures") if frames.at_once(world) > 1 else None

    def picture(self, episode: Episode) -> str:
        return frames.first(self.world, _only(episode.now.steps()))

    def advance(self, episodes: Sequence[Episode]) -> list[Step]:
        actions = self._choose(episodes)
        moves = [_tried(self._move, *each) for each in zip(episodes, actions, strict=True)]
        for episode, done in zip(episodes, self._done(episodes), strict=True):
            episode.done = done
        return list(self._map(self._show, episodes, moves))

    def _choose(self, episodes: Sequence[Episode]) -> np.ndarray:
        """What the agent does next in each episode."""
        rows = [
            (episode.first, episode.seen, self.agent.unwrap(episode.plan), episode.done, episode.seed, episode.time)
            for episode in episodes
        ]
        return np.asarray(_choose(self.agent, *_fill(_stack(rows), self.lanes)))[: len(episodes)]

    def _move(self, episode: Episode, action: np.ndarray) -> Move:
        """Do it, and take down what came of it."""
        session, before, actions = episode.now, episode.now.steps(), action[None]
        sane = bool(session.step(actions).all())
        both = jax.tree.map(lambda *leaves: np.concatenate(leaves), before, session.steps())
        [event] = self.world.events(both, actions)
        judged = bool(episode.task) and bool(session.judge(self.world.asked([episode.task]))[0].all())
        episode.seen = _only(session.observe())
        episode.note(event, done=sane and judged, broken=not sane)
        return Move(both, actions, event)

    def _done(self, episodes: Sequence[Episode]) -> list[Any]:
        """What the agent makes of each episode so far."""
        values = self.encode(*_stack([(episode.first, episode.seen) for episode in episodes]))
        return [jax.tree.map(lambda leaf, lane=lane: leaf[lane], values) for lane in range(len(episodes))]

    def _show(self, episode: Episode, move: Move | None) -> Step:
        """What there is to see of a move; nothing, and the end, where it has failed."""
        pictures = move and _tried(frames.after, self.world, move.steps, move.action)
        if pictures is None:
            episode.over, episode.success = True, False
            return Step(episode.time, [], None, None, over=True)
        return Step(episode.time, pictures, move.event, self._left(episode, episode.done), episode.over)

    def _map(self, *arguments: Any) -> Any:
        """In threads, where pictures are drawn by processes of their own; elsewhere in this one, as simulators want."""
        return self._painters.map(*arguments) if self._painters else map(*arguments)

    def _set(self, episode: Episode, scene: Any) -> Episode:
        episode.now = self.world.start(scene).__enter__()
        episode.first = episode.seen = _only(episode.now.observe())
        episode.done = self._encode_one(episode.first, episode.first)
        return episode

    def end(self, episode: Episode) -> None:
        episode.now.__exit__(None, None, None)


def make_actor(agent: Agent, world: World) -> Actor:
    return (HostedActor if is_hosted(world) else PureActor)(agent, world)


def _only(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[0], tree)


def _stack(rows: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *rows)


def _fill(tree: Any, lanes: Sequence[int]) -> Any:
    """Repeat the last row up to the next number of lanes."""
    count = len(jax.tree.leaves(tree)[0])
    empty = min(lane for lane in lanes if lane >= count) - count
    return jax.tree.map(lambda leaf: np.pad(leaf, ((0, empty), *[(0, 0)] * (np.ndim(leaf) - 1)), "edge"), tree)


def _tried(function: Callable[..., Result], *arguments: Any) -> Result | None:
    """What a function gives; None where it fails."""
    try:
        return function(*arguments)
    except Exception:  # one episode's trouble must not be everybody's
        log.exception("acting has failed")
        return None


@eqx.filter_jit
def _encode(agent: Agent, first: Any, last: Any) -> Any:
    return agent.encode(first, last)


@eqx.filter_jit
def _observe(world: PureWorld, states: Any) -> Any:
    return jax.vmap(world.observe)(states)


@eqx.filter_jit
def _choose(agent: Agent, first: Any, now: Any, plans: Any, done: Any, seeds: Array, times: Array) -> Array:
    """An action in each episode, by a key of its own."""
    outputs = agent.outputs(first, now, plans, done)
    keys = jax.vmap(lambda seed, time: jax.random.fold_in(jax.random.key(seed), time))(seeds, times)
    return jax.vmap(agent.policy.head.sample)(outputs, keys)


@eqx.filter_jit
def _step(agent: Agent, world: PureWorld, moments: Moment) -> tuple[Moment, Array]:
    """One step of each episode, and the number of the skill that was done."""
    first, now = jax.vmap(world.observe)(moments.first), jax.vmap(world.observe)(moments.state)
    actions = _choose(agent, first, now, moments.plan, moments.done, moments.seed, moments.time)
    states, skills = jax.vmap(world.step)(moments.state, actions)
    done = agent.encode(first, jax.vmap(world.observe)(states))
    return moments._replace(state=states, done=done, time=moments.time + 1), skills
