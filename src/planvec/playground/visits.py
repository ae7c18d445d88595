"""One visitor: the shelf of demonstrations, the plan being written, the episodes being watched.

Messages are JSON objects. A page's message says what to `do` and may have a `number`, which comes back with the answer;
an answer says what it `is`. What is wrong with a message comes back as a mistake; it never ends the session.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from planvec.data.demonstrations import Demonstration
from planvec.errors import InputError
from planvec.evaluation.acting import sizes_of
from planvec.expressions import Expression, ExpressionError, parse
from planvec.plans import AnyPlan
from planvec.playground import pictures, terms
from planvec.playground.actors import Actor, Step, Watched
from planvec.playground.scheduling import Rounds
from planvec.playground.sharing import SharedWorld
from planvec.tasks import Task, parse_task
from planvec.worlds.protocol import Player

Message = dict[str, Any]

SHELF = 12  # demonstrations of one visitor
SKILLS = 8  # in a demonstration
AHEAD = 64  # steps that may be asked for before they are seen
AGENTS = 2  # side by side
SEEDS = 2**31
PER_SECOND = 60  # messages, in the long run …
BURST = 180  # … and at once
NAMES = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")


class TooMany(Exception):
    """More messages than any person sends."""


@dataclass(eq=False)
class Kept:
    """A demonstration on the shelf, and what agents make of it."""

    demo: Demonstration
    plans: dict[str, AnyPlan] = field(default_factory=dict)


class Visit:
    """What one page asks for, one message after the other."""

    def __init__(self, worlds: Mapping[str, SharedWorld], send: Callable[[Message], None]) -> None:
        """`send` must not wait."""
        self.worlds = worlds
        self.send = send
        self._entered: SharedWorld | None = None
        self.shelf: dict[str, Kept] = {}
        self.player: Player | None = None
        self.watched: list[tuple[str, Watched]] = []  # agents by name, and what they act in
        self.run = 0  # its number
        self._allowance = float(BURST)
        self._last = time.monotonic()
        self._handlers = {
            "open": self._open,
            "demonstrate": self._demonstrate,
            "replay": self._replay,
            "forget": self._forget,
            "play": self._play,
            "move": self._move,
            "keep": self._keep,
            "read": self._read,
            "run": self._run,
            "want": self._want,
            "stop": self._stop,
            "map": self._map,
        }

    @property
    def shared(self) -> SharedWorld:
        """The world that was entered."""
        if self._entered is None:
            raise InputError("open a world first")
        return self._entered

    @property
    def _rounds(self) -> Rounds:
        assert self.shared.rounds is not None  # it is open
        return self.shared.rounds

    async def handle(self, message: Any) -> None:
        """Answer one message."""
        self._count()
        number = message.get("number") if isinstance(message, dict) else None
        number = number if type(number) is int else None
        try:
            asked = _field(message, "do", str)
            if asked not in self._handlers:
                raise InputError(f"there is nothing called '{asked[:40]}' to do")
            if asked != "open":
                _ = self.shared  # complains where there is none yet
            answer = await self._handlers[asked](message)
            if answer:
                self.send(answer | {"number": number})
        except InputError as error:
            about = message.get("do") if isinstance(message, dict) else None
            where = {"reason": error.reason, "at": error.at} if isinstance(error, ExpressionError) else {}
            told = {"is": "mistake", "about": about, "reason": str(error), "number": number}
            self.send(told | where)

    def close(self) -> None:
        """The page is gone: nothing goes on."""
        for _, episode in self.watched:
            self._rounds.leave(episode)
        self.watched = []

    def _count(self) -> None:
        """Keep to the number of messages allowed."""
        now = time.monotonic()
        self._allowance = min(BURST, self._allowance + (now - self._last) * PER_SECOND) - 1
        self._last = now
        if self._allowance < 0:
            raise TooMany

    async def _open(self, message: Message) -> Message:
        """Enter a world: the shelf is empty then."""
        name = _field(message, "world", str)
        if name not in self.worlds:
            raise InputError(f"no world is called '{name[:40]}'; there is {', '.join(self.worlds)}")
        self.close()
        self._entered = None
        self.shelf = {}
        self.player = None
        await self.worlds[name].open()
        self._entered = self.worlds[name]
        return {"is": "world", **self.shared.describe()}

    async def _demonstrate(self, message: Message) -> Message:
        """A demonstration by the expert."""
        name = self._free_name(message)
        task = self._task(message)
        seed = _whole(message, "seed", SEEDS)
        return await self._put(name, await self.shared.do(self.shared.world.demonstrate, task, seed))

    async def _replay(self, message: Message) -> Message:
        """A demonstration that somebody gave before, from its scene and its actions."""
        name = self._free_name(message)
        seed = _whole(message, "seed", SEEDS)
        moves = _field(message, "moves", str)
        if not moves.isdecimal() or not moves.isascii():
            raise InputError("moves are numbers of actions, a digit each")

        def replay() -> Demonstration:
            player = self.shared.world.player(seed)
            for move in moves:
                player.move(int(move))
            return player.demonstration()

        return await self._put(name, await self.shared.do(replay))

    async def _forget(self, message: Message) -> None:
        self.shelf.pop(_field(message, "name", str), None)

    async def _play(self, message: Message) -> Message:
        """Begin a demonstration by the visitor."""
        self.player = await self.shared.do(self.shared.world.player, _whole(message, "seed", SEEDS))
        return self._recorded()

    async def _move(self, message: Message) -> Message:
        action = _whole(message, "action", 100)
        await self.shared.do(self._own_player().move, action)
        return self._recorded()

    async def _keep(self, message: Message) -> Message:
        """What the visitor did becomes a demonstration."""
        name = self._free_name(message)
        answer = await self._put(name, await self.shared.do(self._own_player().demonstration))
        self.player = None
        return answer

    async def _read(self, message: Message) -> Message:
        """What a plan holds, in words, in numbers and on the map; and what each demonstration does."""
        actor_name = _field(message, "agent", str)
        expression = self._expression(message)
        actor = self.shared.actor(actor_name)
        demos = self._demos()
        task = terms.wanted(expression, demos)
        self.shared.world.asked([task])  # complains where that cannot be asked for
        plan = await self._combined(expression, actor_name)
        plans = {name: await self._plan(name, actor_name) for name in self.shelf}
        map_ = self.shared.map_of(actor_name)
        return {
            "is": "meaning",
            "task": task,
            "counts": terms.counts(expression, demos),
            "terms": terms.terms(expression),
            "plan": _described(actor, map_, plan),
            "parts": {name: _described(actor, map_, part) for name, part in plans.items()},
        }

    async def _run(self, message: Message) -> Message:
        """Let one agent or two act on a plan; how far, `want` will say."""
        names = _field(message, "agents", list)
        seed = _whole(message, "seed", SEEDS)
        expression = self._expression(message)
        if not 1 <= len(names) <= AGENTS or not all(isinstance(name, str) for name in names):
            raise InputError(f"name one agent, or {AGENTS} to compare")
        demos = self._demos()
        task = terms.wanted(expression, demos)
        offered = terms.offered(expression, demos)
        plans = [await self._combined(expression, name) for name in names]
        self.close()
        self.run += 1
        for stage, (name, plan) in enumerate(zip(names, plans, strict=True)):
            begin = self.shared.actor(name).begin
            episode = await self.shared.do(begin, plan, task, offered, seed, sizes_of(expression, demos))
            self.watched.append((name, episode))
            self._rounds.watch(episode, self._show(self.run, stage))
        stages = [await self._stage(name, episode) for name, episode in self.watched]
        asked = {"task": task, "counts": terms.counts(expression, demos), "horizon": episode.horizon}
        return {"is": "begun", "run": self.run, **asked, "stages": stages}

    async def _want(self, message: Message) -> None:
        """How many steps there should be to see. Of a run that is over, nothing is wanted."""
        run = _whole(message, "run", SEEDS)
        upto = _whole(message, "upto", SEEDS)
        if run == self.run:
            for _, episode in self.watched:
                self._rounds.want(episode, min(upto, episode.time + AHEAD))

    async def _stop(self, message: Message) -> None:
        self.close()

    async def _map(self, message: Message) -> Message:
        """Where the plans of many demonstrations lie."""
        name = _field(message, "agent", str)
        found = await self.shared.map(name)
        return {"is": "map", "agent": name, "map": found.as_dict() if found else None}

    async def _stage(self, name: str, episode: Watched) -> Message:
        """An episode before anything has been done."""
        actor = self.shared.actor(name)
        picture = await self.shared.do(episode.picture)
        return {"agent": name, "picture": picture, "left": actor.read(episode.plan)}

    def _show(self, run: int, stage: int) -> Callable[[Step], None]:
        def show(step: Step) -> None:
            told = {"is": "step", "run": run, "stage": stage, **step._asdict()}
            if step.over:
                _, episode = self.watched[stage]
                told["end"] = {
                    "success": episode.success,
                    "exact": episode.exact,
                    "extras": episode.extras,
                    "events": episode.events,
                }
                self._rounds.leave(episode)
            self.send(told)

        return show

    async def _put(self, name: str, demo: Demonstration) -> Message:
        """Put a demonstration onto the shelf."""
        world = self.shared.world
        film = await self.shared.do(pictures.film, world, demo.steps, demo.actions)
        events = await self.shared.do(world.events, demo.steps, demo.actions)
        self.shelf[name] = Kept(demo)
        return {"is": "demonstration", "name": name, "task": demo.task, "film": film, "events": events}

    async def _plan(self, name: str, agent: str) -> AnyPlan:
        kept = self.shelf[name]
        if agent not in kept.plans:
            kept.plans[agent] = await self.shared.do(self.shared.actor(agent).plan, kept.demo)
        return kept.plans[agent]

    async def _combined(self, expression: Expression, agent: str) -> AnyPlan:
        """What an expression stands for, to an agent."""
        plans = {name: await self._plan(name, agent) for name in expression.names}
        return self.shared.actor(agent).combine(expression, plans)

    def _recorded(self) -> Message:
        player = self._own_player()
        done = [event for event in player.events if event]
        return {
            "is": "played",
            "picture": pictures.still(self.shared.world, player.steps[-1]),
            "done": done,
            "steps": len(player.actions),
        }

    def _own_player(self) -> Player:
        if not self.player:
            raise InputError("begin a demonstration of your own first")
        return self.player

    def _demos(self) -> dict[str, Demonstration]:
        return {name: kept.demo for name, kept in self.shelf.items()}

    def _expression(self, message: Message) -> Expression:
        expression = parse(_field(message, "plan", str))
        expression.check(self.shelf)
        return expression

    def _free_name(self, message: Message) -> str:
        """Where on the shelf; what is there already is replaced."""
        name = _field(message, "name", str)
        if name not in NAMES:
            raise InputError("a demonstration is called by a letter from A to Z")
        if len(self.shelf) >= SHELF and name not in self.shelf:
            raise InputError(f"the shelf holds {SHELF} demonstrations; remove one first")
        return name

    def _task(self, message: Message) -> Task:
        skills = _field(message, "task", list)
        if not 1 <= len(skills) <= SKILLS or not all(isinstance(skill, str) for skill in skills):
            raise InputError(f"choose 1 to {SKILLS} skills")
        return parse_task([skill[:60] for skill in skills], self.shared.world.skills)


def _described(actor: Actor, map_: Any, plan: AnyPlan) -> Message:
    return {"counts": actor.read(plan), "place": map_.place(plan) if map_ else None}


def _field(message: Any, name: str, kind: type) -> Any:
    """A field of a message, of the right type."""
    if not isinstance(message, dict):
        raise InputError("a message is a JSON object")
    value = message.get(name)
    if type(value) is not kind:
        raise InputError(f"'{name}' is missing, or not a {kind.__name__}")
    return value


def _whole(message: Any, name: str, limit: int) -> int:
    value = _field(message, name, int)
    if not 0 <= value < limit:
        raise InputError(f"'{name}' is a whole number from 0 to {limit - 1}; got {str(value)[:20]}")
    return value
