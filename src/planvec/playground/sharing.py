"""A world with its agents, shared by everybody who plays in it. What takes time happens in its threads."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np

from planvec.agents.agent import EmbeddingAgent
from planvec.errors import InputError
from planvec.playground import pictures
from planvec.playground.actors import Actor
from planvec.playground.maps import Map, draw_map
from planvec.playground.scheduling import Rounds
from planvec.tasks import Task
from planvec.training.loading import find, load, shipped
from planvec.training.runs import read_config
from planvec.worlds import make, registrations
from planvec.worlds.protocol import World, is_hosted
from planvec.worlds.registry import check_name

Result = TypeVar("Result")
log = logging.getLogger(__name__)


class SharedWorld:
    """One world, its agents, and the episodes that are being watched."""

    def __init__(self, name: str, runs: Sequence[str] = ()) -> None:
        """`runs`: folders of further agents, besides those that are shipped; those of other worlds are left out."""
        self.name = name
        self.cast = agents_of(name, runs)
        self._open: asyncio.Task[None] | None = None
        self.world: World
        self.rounds: Rounds | None = None
        self.actors: dict[str, Actor] = {}
        self._maps: dict[str, asyncio.Task[Map]] = {}
        self._jobs = ThreadPoolExecutor(1, f"{name}-jobs")
        self._steps = ThreadPoolExecutor(1, f"{name}-steps")

    async def open(self) -> None:
        """Load the world and its agents, once."""
        if self._open is None or (self._open.done() and self._open.exception()):
            self._open = asyncio.create_task(self._load())
        await asyncio.shield(self._open)

    async def _load(self) -> None:
        self.world = await self.do(make, self.name)
        self._canvas = await self.do(pictures.canvas, self.world)
        self.actors = {name: Actor(await self.do(load, name), self.world) for name in self.cast}
        thread = self._jobs if is_hosted(self.world) else self._steps  # a simulator wants to be used from one alone
        self.rounds = Rounds(self.world, thread)

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
            if self.world.board is not None:
                await self.do(self.world.player, 0)

    @property
    def examples(self) -> tuple[Task, Task, Task]:
        """Tasks to begin with, demonstrated in the scenes 0, 1, 2: one thing, another, and both."""
        one, other = self.world.examples
        return one, other, one + other

    def describe(self) -> dict[str, Any]:
        """For the page."""
        return {
            "name": self.name,
            "skills": self.world.skills,
            "twice": _may_repeat(self.world),
            "canvas": self._canvas,
            "examples": self.examples,
            "too_much": self.world.too_much,
            "agents": [{"name": name, "model": model} for name, model in self.cast.items()],
        }

    def actor(self, name: str) -> Actor:
        if name not in self.actors:
            there = ", ".join(self.actors) or "none yet: train one, and name it with planvec play --agent RUN/"
            raise InputError(f"no agent of {self.name} is called '{name}'; there is {there}")
        return self.actors[name]

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

    def close(self) -> None:
        for task in self._maps.values():
            task.cancel()
        if self.rounds:
            self.rounds.close()
        for threads in (self._jobs, self._steps):
            threads.shutdown(wait=False, cancel_futures=True)


def agents_of(world: str, runs: Sequence[str] = ()) -> dict[str, str]:
    """Which model each agent of a world is: the shipped ones by name, and runs by their folders."""
    names = sorted(shipped(), key=lambda name: (name != world, name)) + list(runs)
    configs = {name: read_config(find(name)) for name in names}
    return {name: config.agent for name, config in configs.items() if config.world == world}


def shared_worlds(world: str, runs: Sequence[str] = ()) -> dict[str, SharedWorld]:
    """Each world; of variants those that are asked for, or that runs live in. Nothing is loaded yet."""
    usual = [name for name, one in registrations().items() if not one.variant]
    homes = [read_config(find(run)).world for run in runs]
    names = dict.fromkeys([*usual, world, *homes])
    for name in names:
        check_name(name)
    return {name: SharedWorld(name, runs) for name in names}


def _may_repeat(world: World) -> bool:
    """Whether a task may ask for a skill twice, and asks for more then."""
    once = world.skills[:1]
    try:
        return not np.array_equal(world.asked([once]), world.asked([once + once]))
    except InputError:
        return False
