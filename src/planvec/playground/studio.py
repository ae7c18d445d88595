"""A world with its agents, shared by everybody who plays in it. What takes time happens in its threads."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import numpy as np

from planvec.agents.agent import EmbeddingAgent
from planvec.errors import InputError
from planvec.plans import Plan
from planvec.playground import frames
from planvec.playground.actors import LANES, Actor, Episode, Step, make_actor
from planvec.playground.recorder import Recorder
from planvec.tasks import Task
from planvec.training.loading import find, load, shipped
from planvec.training.runs import read_config
from planvec.worlds import VARIANTS, WORLDS, make
from planvec.worlds.protocol import World, is_hosted

Result = TypeVar("Result")
log = logging.getLogger(__name__)

EXAMPLES: dict[str, tuple[Task, ...]] = {  # one thing, another, and both: to add, and to take away
    "crafting": (("ChopTree",), ("MakeBread", "EatBread"), ("ChopTree", "MakeBread", "EatBread")),
    "tabletop": (("Stack(red,blue)",), ("PlaceInBox(green)",), ("Stack(red,blue)", "PlaceInBox(green)")),
    "doom": (("A",), ("C",), ("A", "C")),
}
TOO_MUCH = {"crafting": "8*{0}", "tabletop": "{1} - {0}", "doom": "-{0}"}  # fails in two scenes of three, or more
ROUND = 0.4  # seconds that a round of steps may take, as in a simulator everything else has to wait for it
POINTS = 6 * LANES  # demonstrations on the map
FAN = 10  # degrees between the map's outermost skills and the horizontal


class Map(NamedTuple):
    """Plan vectors of many demonstrations, projected onto a plane. The zero plan is at its origin; sums are sums."""

    tasks: list[Task]
    points: np.ndarray  # [demonstration, 2]
    axes: np.ndarray  # [embedding, 2]

    def place(self, plan: Plan) -> list[float]:
        return np.round(np.asarray(plan.vector, float) @ self.axes, 3).tolist()

    def as_dict(self) -> dict[str, Any]:
        return {"tasks": self.tasks, "points": np.round(self.points.astype(float), 3).tolist()}


class Studio:
    """One world, its agents, and the episodes that are being watched."""

    def __init__(self, name: str, runs: Sequence[str] = ()) -> None:
        """`runs`: folders of further agents, besides those that are shipped; those of other worlds are left out."""
        self.name, self.cast = name, agents_of(name, runs)
        self._open: asyncio.Task[None] | None = None
        self.world: World
        self.actors: dict[str, Actor] = {}
        self.audiences: dict[str, dict[Episode, Callable[[Step], None]]] = {}
        self._wanted: dict[str, asyncio.Event] = {}
        self._maps: dict[str, asyncio.Task[Map]] = {}
        self._conductors: list[asyncio.Task[None]] = []
        self._jobs = self._steps = ThreadPoolExecutor(1, f"{name}-jobs")

    async def open(self) -> None:
        """Load the world and its agents, once."""
        if self._open is None or (self._open.done() and self._open.exception()):
            self._open = asyncio.create_task(self._load())
        await asyncio.shield(self._open)

    async def _load(self) -> None:
        self.world = await self.do(make, self.name)
        if not is_hosted(self.world):  # a simulator wants to be used from one thread only
            self._steps = ThreadPoolExecutor(1, f"{self.name}-steps")
        self._canvas = await self.do(frames.canvas, self.world)
        agents = {name: await self.do(load, name) for name in self.cast}
        for name, agent in agents.items():
            self.actors[name] = make_actor(agent, self.world)
            self.audiences[name], self._wanted[name] = {}, asyncio.Event()
            self._conductors.append(asyncio.create_task(self._conduct(name)))

    async def do(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function in the thread for what takes time; one call after the other."""
        return await asyncio.get_running_loop().run_in_executor(self._jobs, function, *arguments)

    async def warm_up(self) -> None:
        """Compile what the first visitor will need."""
        with suppress(InputError):  # told to whoever opens the world
            await self.open()
            demo = await self.do(self.world.demonstrate, self.examples[0])
            for actor in self.actors.values():
                await self.do(actor.warm_up, demo)
            if self._canvas["kind"] == "cells":
                await self.do(Recorder, self.world, 0)

    @property
    def examples(self) -> tuple[Task, ...]:
        """Tasks to begin with: demonstrated in the scenes 0, 1, 2."""
        return EXAMPLES[self._kind]

    @property
    def _kind(self) -> str:
        """The world that this is, or is a variant of."""
        return self.name.partition("-")[0]

    def describe(self) -> dict[str, Any]:
        """For the page."""
        return {
            "name": self.name,
            "skills": self.world.skills,
            "twice": _may_repeat(self.world),
            "canvas": self._canvas,
            "examples": self.examples,
            "too_much": TOO_MUCH[self._kind],
            "agents": [{"name": name, "model": model} for name, model in self.cast.items()],
        }

    def actor(self, name: str) -> Actor:
        if name not in self.actors:
            there = ", ".join(self.actors) or "none yet: train one, and name it with planvec play --agent RUN/"
            raise InputError(f"no agent of {self.name} is called '{name}'; there is {there}")
        return self.actors[name]

    def watch(self, name: str, episode: Episode, show: Callable[[Step], None]) -> None:
        """Let an agent's episode go on, as far as it is wanted."""
        self.audiences[name][episode] = show

    def want(self, name: str, episode: Episode, steps: int) -> None:
        """So many steps of an episode should be done."""
        episode.wanted = steps
        self._wanted[name].set()

    def leave(self, name: str, episode: Episode) -> None:
        """Nobody watches an episode any more: it ends here."""
        if self.audiences[name].pop(episode, None):
            self._steps.submit(self.actors[name].end, episode)

    async def map(self, name: str) -> Map | None:
        """The map of an agent's plans, made once; None where there is none."""
        if not isinstance(self.actor(name).agent, EmbeddingAgent):
            return None
        if name not in self._maps:
            self._maps[name] = asyncio.create_task(self._draw_map(name))
        try:
            return await asyncio.shield(self._maps[name])
        except Exception:  # there is a playground without it
            log.exception("the map cannot be drawn")
            return None

    def map_of(self, name: str) -> Map | None:
        """The map, if there is one by now."""
        task = self._maps.get(name)
        return task.result() if task and task.done() and not task.exception() else None

    async def _draw_map(self, name: str) -> Map:
        call = self.do if is_hosted(self.world) else asyncio.to_thread
        return await call(draw_map, self.actors[name])

    async def _conduct(self, name: str) -> None:
        """Step the episodes of an agent that are due, again and again: as many at once as take no longer than a round
        may. Those that waited longest come first."""
        audience, wanted = self.audiences[name], self._wanted[name]
        loop, most = asyncio.get_running_loop(), LANES
        while True:
            await wanted.wait()
            due = [episode for episode in audience if episode.due][:most]
            if not due:
                wanted.clear()
                continue
            began = loop.time()
            try:
                steps = await loop.run_in_executor(self._steps, self.actors[name].advance, due)
            except Exception:  # one episode's trouble must not be everybody's
                log.exception("acting has failed")
                steps = [Step(episode.time, [], None, None, over=True) for episode in due]
            most = max(1, len(due) // 2) if loop.time() - began > ROUND else min(LANES, 2 * most)
            for episode, step in zip(due, steps, strict=True):
                if show := audience.pop(episode, None):  # not if its watcher has left meanwhile
                    audience[episode] = show
                    show(step)

    def close(self) -> None:
        for task in [*self._conductors, *self._maps.values()]:
            task.cancel()
        for threads in {self._jobs, self._steps}:
            threads.shutdown(wait=False, cancel_futures=True)


def agents_of(world: str, runs: Sequence[str] = ()) -> dict[str, str]:
    """Which model each agent of a world is: the shipped ones by name, and runs by their folders."""
    names = sorted(shipped(), key=lambda name: (name != world, name)) + list(runs)
    configs = {name: read_config(find(name)) for name in names}
    return {name: config.agent for name, config in configs.items() if config.world == world}


def draw_map(actor: Actor) -> Map:
    """Demonstrations of one and two skills, projected so that each skill points its own way."""
    tasks = actor.world.sample_tasks((0, 7), POINTS, 1, 2)
    demos = actor.world.record(tasks, (0, 8))
    first, last, _ = actor.world.ends(demos)
    vectors = actor.encode(first, last)
    axes = plane(actor, vectors)
    return Map(tasks, vectors @ axes, axes)


def plane(actor: Actor, vectors: np.ndarray) -> np.ndarray:
    """The directions of plan vectors that are drawn, along x and along y (down). [embedding, 2]

    Where plans can be read, what is read off them is laid out like a fan that opens upwards, a direction for each
    skill: no two pairs of a few skills add up to the same. Elsewhere it is the plane in which the vectors differ most.
    """
    if actor.probe is None:
        axes = np.linalg.svd(vectors, full_matrices=False)[2][:2].T
        return axes / np.abs(vectors @ axes).max()
    angles = np.pi + np.deg2rad(np.linspace(FAN, 180 - FAN, len(actor.probe.skills)))
    return np.asarray(actor.probe.weights) @ np.stack([np.cos(angles), np.sin(angles)], axis=1)


def open_studios(world: str = "crafting", runs: Sequence[str] = ()) -> dict[str, Studio]:
    """A studio for each world, and for the variants that are asked for or that runs live in. Nothing is loaded yet."""
    names = dict.fromkeys([*WORLDS, world, *(read_config(find(run)).world for run in runs)])
    unknown = [name for name in names if name not in WORLDS | VARIANTS]
    if unknown:
        raise InputError(f"no world is called '{unknown[0]}'; there is {', '.join(WORLDS | VARIANTS)}")
    return {name: Studio(name, runs) for name in names}


def _may_repeat(world: World) -> bool:
    """Whether a task may ask for a skill twice, and asks for more then."""
    once, twice = ((world.skills[0],) * count for count in (1, 2))
    try:
        return not np.array_equal(world.asked([once]), world.asked([twice]))
    except InputError:
        return False
