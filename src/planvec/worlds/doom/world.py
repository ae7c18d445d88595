"""The doom world: a first-person view of rooms in which four waypoints are to be reached. Drawn by ViZDoom."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from planvec.data.demonstrations import Demonstration
from planvec.data.recordings import Recording, check_recording
from planvec.errors import InputError
from planvec.tasks import Task, encode_tasks, parse_task, show_task
from planvec.worlds.doom import motion, painter
from planvec.worlds.doom.attempts import attempt, retrace
from planvec.worlds.doom.level import LEVELS, WAYPOINTS
from planvec.worlds.doom.motion import ACTIONS, State, beginning, step, waypoints
from planvec.worlds.doom.pictures import beside_map, draw_map
from planvec.worlds.doom.pool import IMAGE, Pool, check_installed
from planvec.worlds.doom.scenes import random_scene
from planvec.worlds.doom.sprites import COLOURS
from planvec.worlds.protocol import HostedWorld, Painter, Progress, Session, no_progress
from planvec.worlds.retrying import generator, keep_trying
from planvec.worlds.spaces import View

# Three times the mean number of actions in demonstrations of 1 to 4 waypoints with a noise of 10%, rounded up: in the
# open room 14.2, 29.3, 44.5, 60.4.
HORIZONS = {"open": (43, 88, 134, 182), "rooms": (66, 138, 208, 274)}

Observation = dict[str, np.ndarray]  # "image" uint8 [60, 80, 3], "waypoints" float32 [4, 3]


class Doom(HostedWorld):
    """The world; its engines start when they are first needed.

    A demonstration is kept as its scene and its actions: all states follow from them, and the images from the states.
    """

    space: ClassVar[View] = View(IMAGE, len(WAYPOINTS), len(ACTIONS))
    conditions: tuple[str, ...] = ("1", "2", "1+1", "2+2")
    sums: tuple[str, ...] = ("1", "2", "1+1", "2+2", "1+1+1")
    glance: tuple[str, ...] = ("1", "1+1")
    pairs = 20_000
    sizes = (1, 3)
    skills = WAYPOINTS
    examples: tuple[Task, Task] = (("A",), ("C",))
    too_much: str | None = "-{0}"

    def __init__(self, level: str = "open", flags: bool = True, workers: int | None = None) -> None:
        """`level`: "open" is one room of 12 metres, "rooms" are four of 8. `flags`: whether agents are told outright
        which waypoints are left. `workers`: how many engines, if not a number that suits the cores; it changes no
        result."""
        if level not in LEVELS:
            raise InputError(f"the levels are {' and '.join(LEVELS)}; there is no '{level}'")
        check_installed()
        self.level = LEVELS[level]
        self.flags = flags
        self._workers = workers
        self.name = "doom" + "-rooms" * (level == "rooms") + "-noflags" * (not flags)
        self._told = np.array([1, 1, flags], np.float32)

    @cached_property
    def pool(self) -> Pool:
        return Pool(self.level.name, self._workers)

    @cached_property
    def camera(self) -> Pool:
        """For pictures that people look at."""
        return Pool(self.level.name, 1, large=True)

    def close(self) -> None:
        """End the engines; they start anew when needed."""
        for name in ("pool", "camera"):
            if name in vars(self):
                vars(self).pop(name).close()

    @cached_property
    def fingerprint(self) -> str:
        rules = (self.level.textmap, self.level.solids.tolist(), WAYPOINTS, COLOURS)
        numbers = (motion.HEADINGS, motion.REACH, motion.RADIUS, motion.STRIDES)
        return hashlib.sha256(repr((rules, numbers)).encode()).hexdigest()[:16]

    @property
    def painter(self) -> Painter:
        return Painter(painter.start, (self.level.name,))

    def record(
        self,
        tasks: Sequence[Task],
        seed: Sequence[int],
        noise: float = 0.0,
        extras: str = "discard",
        progress: Progress = no_progress,
    ) -> Recording:
        """A demonstration of each task by the expert; `noise` is the share of random actions.

        What comes out depends on (seed, demonstration, attempt) alone. No engine is needed.
        """
        check_recording(noise, extras)
        for task in set(tasks):
            check_task(task)
        codes = encode_tasks(tasks, WAYPOINTS)
        rows, attempts = keep_trying(
            tasks,
            seed,
            noise,
            keep_extras=extras == "keep",
            attempt=lambda which, seeds: attempt(self.level, codes[which], seeds, noise),
            progress=progress,
        )
        return Recording(
            stored={"agent": np.stack([row.agent for row in rows]), "markers": np.stack([row.markers for row in rows])},
            actions=np.concatenate([row.actions[: row.lengths] for row in rows]),
            lengths=np.array([row.lengths for row in rows], np.int32),
            extras=np.array([row.extras for row in rows], np.int32),
            attempts=attempts,
        )

    def replay(self, demos: Recording, progress: Progress = no_progress) -> dict[str, Any]:
        """What is to be seen, and the State, at every step: the same with and without flags. `progress` is told how
        many images are drawn."""
        states = self._retrace(demos)
        return {"image": self.pool.draw(states, progress), "waypoints": waypoints(states), "state": states}

    def decode(self, step: dict[str, Any]) -> dict[str, Any]:
        return {"image": step["image"], "waypoints": step["waypoints"] * self._told}

    def observe(self, states: State) -> Observation:
        """What agents see of states, drawn by the engines. [state, …]"""
        return self.decode({"image": self.pool.draw(states), "waypoints": waypoints(states)})

    def ends(self, demos: Recording) -> tuple[Observation, Observation, np.ndarray]:
        states = self._retrace(demos)
        first = states.take(demos.first_steps)
        last = states.take(demos.last_steps)
        return self.observe(first), self.observe(last), last.visited.astype(np.int32)

    def asked(self, tasks: Sequence[Task]) -> np.ndarray:
        """The waypoints. int32 [task, 4]"""
        for task in set(tasks):
            check_task(task)
        return np.array([[waypoint in task for waypoint in WAYPOINTS] for task in tasks], np.int32)

    def scenes(self, tasks: Sequence[Task], seed: Sequence[int]) -> State:
        """All four waypoints are in every scene."""
        drawn = [random_scene(generator((*seed, i)), self.level) for i in range(len(tasks))]
        agents, markers = zip(*drawn, strict=True)
        return beginning(np.stack(agents), np.stack(markers))

    def start(self, scenes: State) -> "DoomSession":
        return DoomSession(self, scenes)

    def demonstrate(
        self, task: str | Iterable[str], seed: int = 0, noise: float = 0.0, extras: str = "discard"
    ) -> Demonstration:
        """The expert visiting waypoints in a random scene, in the order of the task."""
        task = parse_task(task, WAYPOINTS)
        demos = self.record([task], (seed,), noise, extras)
        states = self._retrace(demos)
        return Demonstration(task, self.observe(states), demos.actions, states)

    def events(self, steps: Any, actions: np.ndarray) -> list[str | None]:
        """Which waypoint each action visited, if any. No two are near enough to be visited at once."""
        visited = _state(steps).visited
        fresh = visited[1:] & ~visited[:-1]
        return [WAYPOINTS[row.argmax()] if row.any() else None for row in fresh]

    def draw(self, step: Any, trail: np.ndarray | None = None) -> np.ndarray:
        """What the agent sees, in better quality, beside a map; `trail`: where it has been, as in a State."""
        one = _state(step)
        state = State(agent=one.agent[None], markers=one.markers[None], visited=one.visited[None])
        return self._picture(self.camera.draw(state)[0], state, trail)

    def film(self, steps: Any, actions: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        states = _state(steps)
        for time, view in enumerate(self.camera.draw(states)):
            yield time, self._picture(view, states.take(slice(time, time + 1)), states.agent[: time + 1, :2])

    def horizon(self, sizes: Sequence[int]) -> int:
        self.check_size(sum(sizes))
        return HORIZONS[self.level.name][sum(sizes) - 1]

    def _retrace(self, demos: Recording) -> State:
        begin = beginning(demos.stored["agent"], demos.stored["markers"])
        return retrace(self.level, begin, demos.actions, demos.lengths)

    def _picture(self, view: np.ndarray, state: State, trail: np.ndarray | None) -> np.ndarray:
        trail = np.empty((0, 2)) if trail is None else trail
        return beside_map(view, draw_map(self.level, state.agent[0], state.markers[0], state.visited[0], trail))


class DoomSession(Session):
    """Episodes under way. Moving is arithmetic; only observing takes an engine, where something has moved."""

    def __init__(self, world: Doom, states: State) -> None:
        self._world = world
        self._states = states
        self._seen: Observation | None = None
        self._moved = np.ones(len(states.agent), bool)  # since they were seen

    def observe(self) -> Observation:
        if self._seen is None or self._moved.all():
            self._seen = self._world.observe(self._states)
        elif self._moved.any():
            fresh = self._world.observe(self._states.take(self._moved))
            self._seen = {name: _replaced(self._seen[name], self._moved, fresh[name]) for name in fresh}
        self._moved = np.zeros_like(self._moved)
        return self._seen

    def step(self, actions: np.ndarray, going: np.ndarray) -> np.ndarray:
        """Nothing can break down here, as an engine that does is replaced."""
        moved = step(self._world.level, self._states.take(going), np.asarray(actions)[going])
        self._states = State(
            agent=_replaced(self._states.agent, going, moved.agent),
            markers=_replaced(self._states.markers, going, moved.markers),
            visited=_replaced(self._states.visited, going, moved.visited),
        )
        self._moved = self._moved | going
        return np.ones(len(going), bool)

    def judge(self, asked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        visited = self._states.visited
        wanted = asked > 0
        return np.all(visited | ~wanted, axis=1), ~np.any(visited & ~wanted, axis=1)

    def steps(self) -> State:
        return self._states


def _replaced(rows: np.ndarray, which: np.ndarray, by: np.ndarray) -> np.ndarray:
    """A copy in which some rows are others."""
    copy = rows.copy()
    copy[which] = by
    return copy


def _state(step: Any) -> State:
    """Of a stored step, or as it is."""
    return step if isinstance(step, State) else step["state"]


def check_task(task: Task) -> None:
    if len(set(task)) < len(task):
        raise InputError(f"a waypoint is gone once it was visited; '{show_task(task)}' asks for one twice")
