"""The tabletop world: a robot arm that picks and places, four cubes, a box with a lid. Physics by MuJoCo."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np

from planvec.data.demonstrations import Demonstration
from planvec.data.recordings import Recording, check_recording
from planvec.errors import InputError
from planvec.tasks import Task, encode_tasks, parse_task, show_task
from planvec.worlds.protocol import HostedWorld, Painter, Progress, Session, no_progress
from planvec.worlds.retrying import DONE, EXTRAS, TRIES, generator, keep_trying, seed_words
from planvec.worlds.spaces import Objects
from planvec.worlds.tabletop import layouts, painter, skills
from planvec.worlds.tabletop.attempts import attempt
from planvec.worlds.tabletop.geometry import CORNERS, CUBE, OBJECTS
from planvec.worlds.tabletop.pool import Pool
from planvec.worlds.tabletop.scene import scene
from planvec.worlds.tabletop.simulator import Simulator, positions
from planvec.worlds.tabletop.skills import LID_ON, SKILLS, closed, compatible, goals, met, outcome, relations

# Three times the expert's mean number of actions, rounded up: 1.8 for a skill, 3.7 for a task of two, 3.2 for two that
# can hold together.
HORIZONS = {(1,): 6, (2,): 12, (1, 1): 10}
DRAWS = 100  # of parts for sums, before giving up
LEAST_DRAW = 64  # parts that are drawn at once, at least
ATTEMPTS = 256  # made at once: a second or two of work
PICTURE = (320, 240)  # width and height
SKIPPED = 2  # of so many pictures that the simulator offers, one is in a film


class Tabletop(HostedWorld):
    """The world; its simulators start when they are first needed."""

    name = "tabletop"
    space = Objects(len(OBJECTS), tuple(CORNERS.values()), 2 * CUBE)
    conditions: tuple[str, ...] = ("1", "2", "1+1")
    sums: tuple[str, ...] = ("1", "2", "1+1", "1+1+1")
    glance: tuple[str, ...] = ("1", "1+1")
    pairs = 90_000
    fps = 12
    skills = SKILLS
    examples: tuple[Task, Task] = (("Stack(red,blue)",), ("PlaceInBox(green)",))
    too_much: str | None = "{1} - {0}"
    painter: Painter | None = Painter(painter.start)

    def __init__(self, workers: int | None = None) -> None:
        """`workers`: processes that simulate, as many as there are cores unless told. It changes no result."""
        self._workers = workers

    @cached_property
    def pool(self) -> Pool:
        return Pool(self._workers)

    @cached_property
    def simulator(self) -> Simulator:
        """For one scene at a time, and for pictures."""
        return Simulator()

    @cached_property
    def fingerprint(self) -> str:
        limits = [value for name, value in vars(skills).items() if name.endswith("TOLERANCE") or name == "MOVED"]
        return hashlib.sha256(repr((scene(), SKILLS, limits)).encode()).hexdigest()[:16]

    def sample_tasks(self, seed: Sequence[int], count: int, low: int, high: int) -> list[Task]:
        """Each number of skills as likely as any other, and each skill too."""
        rng = generator(seed)
        sizes = rng.integers(low, high + 1, count)
        return [tuple(SKILLS[skill] for skill in rng.integers(len(SKILLS), size=size)) for size in sizes]

    def sample_parts(self, seed: Sequence[int], count: int, sizes: Sequence[int]) -> list[list[Task]]:
        """What the parts of a sum bring about can hold together: other draws are thrown away."""
        drawn: list[tuple[Task, ...]] = []
        many = max(count, LEAST_DRAW)
        for turn in range(DRAWS):
            parts = [self.sample_tasks((*seed, turn, part), many, size, size) for part, size in enumerate(sizes)]
            drawn += [tasks for tasks in zip(*parts, strict=True) if len(sizes) == 1 or _add_up(tasks)]
            if len(drawn) >= count:
                return [list(tasks) for tasks in zip(*drawn[:count], strict=True)]
        raise InputError(f"tasks of {'+'.join(map(str, sizes))} skills can hardly ever be done together; add up fewer")

    def record(
        self,
        tasks: Sequence[Task],
        seed: Sequence[int],
        noise: float = 0.0,
        extras: str = "discard",
        progress: Progress = no_progress,
    ) -> Recording:
        """A demonstration of each task by the expert; `noise` is the error of its hand, a share of a cube's side.

        What comes out depends on (seed, demonstration, attempt) alone, not on the number of workers.
        """
        check_recording(noise, extras)
        codes = encode_tasks(tasks, SKILLS)
        rows, attempts = keep_trying(
            tasks,
            seed,
            noise,
            keep_extras=extras == "keep",
            attempt=lambda which, seeds: self.pool.attempt(codes[which], seeds, noise),
            progress=progress,
            block_size=ATTEMPTS,
        )
        return Recording(
            stored={"steps": np.concatenate([row.steps[: row.lengths + 1] for row in rows])},
            actions=np.concatenate([row.actions[: row.lengths] for row in rows]),
            lengths=np.array([row.lengths for row in rows], np.int32),
            extras=np.array([row.extras for row in rows], np.int32),
            attempts=attempts,
        )

    def ends(self, demos: Recording) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        steps = demos.stored["steps"]
        first = demos.first_steps
        last = demos.last_steps
        padded = np.minimum(first[:, None] + np.arange(demos.lengths.max() + 1), last[:, None])
        return steps[first], steps[last], goals(steps[padded]).astype(np.int32)

    def asked(self, tasks: Sequence[Task]) -> np.ndarray:
        """All of the skills' relations where they can hold together, else what is left of them when they are done in
        order; and the box closed. int32 [task, 21]"""
        wanted = [set(task) if compatible(task) else set(outcome(task)) for task in tasks]
        return np.array([[skill in names for skill in SKILLS] + [True] for names in wanted], np.int32)

    def scenes(self, tasks: Sequence[Task], seed: Sequence[int]) -> np.ndarray:
        """States of the simulator. [task, state]"""
        drawn = [layouts.random_layout(generator((*seed, i)), task) for i, task in enumerate(tasks)]
        return self.pool.place(np.stack(drawn))

    def start(self, scenes: np.ndarray) -> "TabletopSession":
        return TabletopSession(self.pool, scenes)

    def demonstrate(
        self, task: str | Iterable[str], seed: int = 0, noise: float = 0.0, extras: str = "discard"
    ) -> Demonstration:
        """The expert doing one task in a random scene."""
        task = parse_task(task, SKILLS)
        check_recording(noise, extras)
        for number in range(TRIES):
            states, actions, status, _ = attempt(self.simulator, task, (*seed_words((seed,)), number), noise)
            if status == DONE or (status == EXTRAS and extras == "keep"):
                return Demonstration(task, positions(states), actions, states)
        raise InputError(f"the expert failed {TRIES} times at {show_task(task)}; noise {noise} may be too much for it")

    def events(self, steps: np.ndarray, actions: np.ndarray) -> list[str | None]:
        """Which relation each action brought about, if any; the first where there are several."""
        holds = relations(_positions(steps))
        fresh = holds[1:] & ~holds[:-1]
        return [SKILLS[row.argmax()] if row.any() else None for row in fresh]

    def draw(self, step: np.ndarray) -> np.ndarray:
        """A picture of a state of the simulator, or of positions alone."""
        state = self.simulator.place(step.reshape(len(OBJECTS), 3)) if step.shape == (3 * len(OBJECTS),) else step
        return self.simulator.render(state, *PICTURE)

    def film(self, states: np.ndarray, actions: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """The arm on its way: every action is simulated again, which gives exactly what it gave before."""
        yield 0, self.draw(states[0])
        for time, (state, action) in enumerate(zip(states[:-1], actions, strict=True)):
            seen: list[np.ndarray] = []
            watch = _every(SKIPPED, lambda simulator, seen=seen: seen.append(simulator.render(None, *PICTURE)))
            self.simulator.pick_and_place(state, action, watch)
            yield from ((time, picture) for picture in seen)
            yield time + 1, self.draw(states[time + 1])

    def horizon(self, sizes: Sequence[int]) -> int:
        return HORIZONS.get(tuple(sizes), HORIZONS[1,] * sum(sizes))


class TabletopSession(Session):
    """Episodes under way. The simulator remembers nothing, so a state is all there is to keep of each."""

    def __init__(self, pool: Pool, states: np.ndarray) -> None:
        self._pool = pool
        self._states = states
        self._at_first = relations(positions(states))

    def observe(self) -> np.ndarray:
        return positions(self._states)

    def step(self, actions: np.ndarray, going: np.ndarray) -> np.ndarray:
        self._states = self._states.copy()
        sane = np.ones(len(going), bool)
        self._states[going], sane[going] = self._pool.step(self._states[going], actions[going])
        return sane

    def judge(self, asked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Nothing else: no relation that was neither asked for nor there at first, and the box closed."""
        now = self.observe()
        wanted = asked.astype(bool)
        unasked = relations(now) & ~wanted[:, :LID_ON] & ~self._at_first
        return met(wanted, now), closed(now) & ~np.any(unasked, axis=1)

    def steps(self) -> np.ndarray:
        return self._states


def _add_up(tasks: Sequence[Task]) -> bool:
    """Whether what all the tasks bring about can hold together."""
    return compatible({skill for task in tasks for skill in outcome(task)})


def _positions(steps: np.ndarray) -> np.ndarray:
    """Of states of the simulator, or of positions as they are."""
    return steps if steps.shape[-1] == 3 * len(OBJECTS) else positions(steps)


def _every(count: int, do: Callable[[Simulator], None]) -> Callable[[Simulator], None]:
    """A function that does it every so many calls."""
    calls = 0

    def maybe(simulator: Simulator) -> None:
        nonlocal calls
        if calls % count == 0:
            do(simulator)
        calls += 1

    return maybe
