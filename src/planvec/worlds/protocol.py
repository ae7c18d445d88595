"""What a world offers to collecting, training, evaluation and the playground.

Whoever brings a world derives it from `PureWorld` or `HostedWorld`. What is abstract here must be written; all the rest
has a default, which a world replaces where it knows better. `check_world` says whether promises are kept.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeGuard

import jax
import numpy as np
from jax import Array

from planvec.data.demonstrations import Demonstration
from planvec.data.recordings import Recording, check_recording, ends_of
from planvec.data.tiles import draw_tiles
from planvec.errors import InputError
from planvec.tasks import FRESH, Task, parse_task
from planvec.worlds.retrying import DONE, EXTRAS, FAILED, generator, keep_trying
from planvec.worlds.spaces import Space

PyTree = Any
Progress = Callable[[int], None]  # told how much is done

MEASURED = 32  # demonstrations that tell how long tasks take


def no_progress(done: int) -> None:
    """Tells nobody."""


class World(ABC):
    """An environment with its skills, its expert and its success test."""

    name: str
    space: Space  # what agents see and do: networks are built for it
    skills: tuple[str, ...]  # everything that a task can ask for

    pairs: int = 10_000  # demonstrations to train on, unless told otherwise …
    sizes: tuple[int, int] = (1, 2)  # … and the fewest and the most skills of their tasks
    shard: int = 512  # pairs in a file: what is whole is never lost, and a simulator takes long
    fps: int = 8  # pictures a second, in films

    # What must be written, besides how it is stepped.

    @abstractmethod
    def scenes(self, tasks: Sequence[Task], seed: Sequence[int]) -> PyTree:
        """Where an episode of each task begins. [task]"""

    @abstractmethod
    def start(self, scenes: PyTree) -> "Session":
        """Begin an episode in each scene."""

    @abstractmethod
    def events(self, steps: PyTree, actions: np.ndarray) -> list[str | None]:
        """Which skill each action of a demonstration did, if any."""

    def attempt(self, task: Task, rng: np.random.Generator, noise: float) -> tuple[PyTree, np.ndarray]:
        """The expert's try at a task in a random scene: all steps, an array or a dict of arrays, and the actions, one
        fewer. What `noise` is, a world decides. Not needed where `record` is written."""
        raise InputError(f"the world '{self.name}' has no expert: give it an `attempt`, or a `record`")

    def draw(self, step: PyTree) -> np.ndarray:
        """A picture of a step for people. uint8 [height, width, 3]"""
        raise InputError(f"the world '{self.name}' draws no pictures: give it a `draw`")

    # What it says of itself.

    @property
    def conditions(self) -> tuple[str, ...]:
        """The columns of its results table."""
        low, high = self.sizes
        return *map(str, range(low, high + 1)), "1+1"

    @property
    def sums(self) -> tuple[str, ...]:
        """What agents practise: single plans and sums, written as conditions are."""
        return self.conditions

    @property
    def glance(self) -> tuple[str, ...]:
        """The conditions that are scored while an agent is trained."""
        return self.conditions[0], self.conditions[-1]

    @property
    def fingerprint(self) -> str:
        """Changes when stored data would no longer mean the same."""
        return f"{self.name} 1"

    def horizon(self, sizes: Sequence[int]) -> int:
        """How many actions a sum of tasks of so many skills may take: three times the expert's mean."""
        skills = sum(sizes)
        if skills not in self._horizons:
            tasks = self.sample_tasks((0, FRESH + 41), MEASURED, skills, skills)
            self._horizons[skills] = int(np.ceil(3 * self.record(tasks, (0, FRESH + 42)).lengths.mean()))
        return self._horizons[skills]

    @cached_property
    def _horizons(self) -> dict[int, int]:
        return {}

    # Tasks.

    def sample_tasks(self, seed: Sequence[int], count: int, low: int, high: int) -> list[Task]:
        """Random tasks of `low` to `high` skills, each number as likely as any other; no skill twice."""
        self.check_size(high)
        rng = generator(seed)
        return [self._some_skills(rng, int(size)) for size in rng.integers(low, high + 1, count)]

    def sample_parts(self, seed: Sequence[int], count: int, sizes: Sequence[int]) -> list[list[Task]]:
        """For each size, random tasks of so many skills. The first of all parts can be done together, and so on."""
        self.check_size(sum(sizes))
        rng = generator(seed)
        wholes = [self._some_skills(rng, sum(sizes)) for _ in range(count)]
        ends = ends_of(sizes)
        return [[whole[end - size : end] for whole in wholes] for size, end in zip(sizes, ends, strict=True)]

    def _some_skills(self, rng: np.random.Generator, size: int) -> Task:
        return tuple(self.skills[i] for i in rng.permutation(len(self.skills))[:size])

    def check_size(self, size: int) -> None:
        """Complain about a number of skills that no random task can have."""
        if size > len(self.skills):
            raise InputError(f"{self.name} has {len(self.skills)} skills, each to be done once; {size} are too many")

    def asked(self, tasks: Sequence[Task]) -> np.ndarray:
        """What must come about for a task to be done, as counts that add up where plans do: how often each skill is
        done, unless a world counts something else. int32 [task, …]"""
        return np.array([[task.count(skill) for skill in self.skills] for task in tasks], np.int32)

    # Demonstrations.

    def record(
        self,
        tasks: Sequence[Task],
        seed: Sequence[int],
        noise: float = 0.0,
        extras: str = "discard",
        progress: Progress = no_progress,
    ) -> Recording:
        """A demonstration of each task by the expert, each in a scene of its own. Where an attempt fails, or does more
        than its task and extras are discarded, the expert tries again in another scene."""
        check_recording(noise, extras)

        def attempts(which: np.ndarray, seeds: np.ndarray) -> _Attempts:
            rngs = map(np.random.default_rng, seeds.tolist())
            return _Attempts.of([self._tried(tasks[i], rng, noise) for i, rng in zip(which, rngs, strict=True)])

        kept = keep_trying(tasks, seed, noise, extras == "keep", attempts, progress)
        stored = [_named(row.steps) for row in kept.rows]
        return Recording(
            stored={name: np.concatenate([part[name] for part in stored]) for name in stored[0]},
            actions=np.concatenate([row.actions for row in kept.rows]),
            lengths=np.array([len(row.actions) for row in kept.rows], np.int32),
            extras=np.array([row.extras for row in kept.rows], np.int32),
            attempts=kept.attempts,
        )

    def _tried(self, task: Task, rng: np.random.Generator, noise: float) -> tuple[PyTree, np.ndarray, int, int]:
        """An attempt, how it ended, and how many skills it did beyond its task."""
        steps, actions = self.attempt(task, rng, noise)
        done = Counter(filter(None, self.events(steps, actions)))
        extras = (done - Counter(task)).total()
        failed = bool(Counter(task) - done) or len(actions) == 0
        return steps, actions, FAILED if failed else EXTRAS if extras else DONE, extras

    def replay(self, recording: Recording, progress: Progress = no_progress) -> PyTree:
        """All steps of the demonstrations, end to end: one more than actions for each. [all steps, …]

        Where this takes long, `progress` is told how many there are.
        """
        return recording.stored["steps"] if recording.stored.keys() == {"steps"} else recording.stored

    def decode(self, step: PyTree) -> PyTree:
        """What an agent observes at a step: pure and jittable. An image may be `Tiled`."""
        return step

    def ends(self, recording: Recording) -> tuple[PyTree, PyTree, np.ndarray]:
        """First and last observation of each demonstration, and what came about in it, counted as in `asked`."""
        steps = self.replay(recording)
        first = self._observations(take(steps, recording.first_steps))
        last = self._observations(take(steps, recording.last_steps))
        done = [
            self.events(take(steps, recording.steps_of(demo)), recording.actions_of(demo))
            for demo in range(recording.demonstrations)
        ]
        return first, last, np.array([[events.count(skill) for skill in self.skills] for events in done], np.int32)

    def demonstrate(
        self, task: str | Iterable[str], seed: int = 0, noise: float = 0.0, extras: str = "discard"
    ) -> Demonstration:
        """One demonstration, for people."""
        task = parse_task(task, self.skills)
        recording = self.record([task], (seed,), noise, extras)
        steps = self.replay(recording)
        return Demonstration(task, self._observations(steps), recording.actions, steps)

    def _observations(self, steps: PyTree) -> PyTree:
        """What an agent sees of many steps. NumPy, [step, …]"""
        return jax.tree.map(np.asarray, draw_tiles(jax.vmap(self.decode)(steps)))

    # For people to look at, and to play.

    def film(self, steps: PyTree, actions: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Pictures of an episode, each with the number of actions done by then."""
        for time in range(len(actions) + 1):
            yield time, self.draw(take(steps, time))

    @property
    def board(self) -> "Board | None":
        """For a world whose pictures a page can put together by itself, from far less than pixels."""
        return None

    @property
    def painter(self) -> "Painter | None":
        """For a world whose pictures take longer to draw than an agent takes to act: processes draw them."""
        return None

    @property
    def examples(self) -> tuple[Task, Task]:
        """Two tasks that go well together, to begin with."""
        [first], [second] = self.sample_parts((0, FRESH + 43), 1, (1, 1))
        return first, second

    @property
    def showcase(self) -> tuple[Task, Task]:
        """Two tasks whose sum makes a good film."""
        return self.examples

    @property
    def too_much(self) -> str | None:
        """An expression of the examples, {0} and {1}, at which trained agents mostly fail."""
        return None

    def play(self, task: str | Iterable[str] | None, seed: int = 0) -> None:
        """Let a person do a task in the terminal."""
        raise InputError(f"{self.name} cannot be played with the keyboard; write --gif out.gif instead")

    def player(self, seed: int) -> "Player":
        """A scene in which a person can do everything, action by action."""
        raise InputError(f"{self.name} cannot be played with the keyboard")


class PureWorld(World):
    """A world that is a function of its state: episodes run on the accelerator, with the policy inside. Steps, as they
    are stored and drawn, are states."""

    shard = 8192

    @abstractmethod
    def observe(self, state: PyTree) -> PyTree:
        """What an agent sees of one state."""

    @abstractmethod
    def step(self, state: PyTree, action: PyTree) -> tuple[PyTree, Array]:
        """One action in one state: the next one, and the number of the skill that was done; any other for none."""

    def start(self, scenes: PyTree) -> "Session":
        from planvec.worlds.sessions import PureSession  # which is for the pure worlds of this file

        return PureSession(self, scenes)

    def decode(self, step: PyTree) -> PyTree:
        return self.observe(step)

    def events(self, steps: PyTree, actions: np.ndarray) -> list[str | None]:
        _, skills = jax.vmap(self.step)(take(steps, slice(-1)), actions)
        return [self.skills[skill] if 0 <= skill < len(self.skills) else None for skill in np.asarray(skills)]


class HostedWorld(World):
    """A world that is a simulator, a robot, any environment: many episodes at once, stepped from outside."""


class Session(ABC):
    """Episodes under way, to be used in a `with` block."""

    @abstractmethod
    def observe(self) -> PyTree:
        """What the agents see. [episode, …]"""

    @abstractmethod
    def step(self, actions: np.ndarray, going: np.ndarray) -> np.ndarray:
        """One action in each episode that is `going` on; the others have ended, and stay as they are. Whether each
        simulator survived it. bool [episode]"""

    @abstractmethod
    def judge(self, asked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whether all that is asked for has come about, and whether nothing else has. bool [episode] each"""

    @abstractmethod
    def steps(self) -> PyTree:
        """The episodes as they are, for `draw` and `film`. NumPy, [episode, …]"""

    def close(self) -> None:
        """Let go of what it holds; nothing, unless a world says otherwise."""
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Board(NamedTuple):
    """How a page draws states itself: a sheet of little pictures, and a row of bytes for each state."""

    sheet: np.ndarray  # uint8 [5 · cell, n · cell, 4], RGBA: grounds; things alone, underfoot, in hand; the agent
    cell: int  # pixels of one of them
    size: int  # cells along a side
    ground: list[int]  # which ground each cell has
    things: tuple[str, ...]
    actions: tuple[str, ...]
    encode: Callable[[PyTree], np.ndarray]  # states to bytes: each cell's thing, the agent's cell, what it holds


class Painter(NamedTuple):
    """What draws moves in processes of its own: a function of a module, called there with the options, gives one from
    a move (the steps before and after an action, and the action) to the pictures that it adds to a film."""

    start: Callable[..., Callable[[tuple[PyTree, np.ndarray]], list[np.ndarray]]]
    options: tuple[str, ...] = ()


class Player(ABC):
    """A person in a world, doing one action after the other."""

    steps: list[PyTree]  # [1, …] each
    actions: list[int]
    events: list[str | None]  # the skill that each action did

    @abstractmethod
    def move(self, action: int) -> None:
        """Do one action."""

    @abstractmethod
    def demonstration(self) -> Demonstration:
        """All of it as a demonstration, whose task is what was done."""


class _Attempts(NamedTuple):
    """Attempts by a world's own `attempt`, as `keep_trying` wants them: a row each."""

    steps: Sequence[PyTree]
    actions: Sequence[np.ndarray]
    status: np.ndarray
    extras: Sequence[int]

    @staticmethod
    def of(rows: Sequence[tuple[PyTree, np.ndarray, int, int]]) -> "_Attempts":
        steps, actions, status, extras = zip(*rows, strict=True)
        return _Attempts(steps, actions, np.array(status), extras)


def _named(steps: Any) -> dict[str, np.ndarray]:
    """Steps as they are stored: arrays by name."""
    named = steps if isinstance(steps, dict) else {"steps": steps}
    if not all(hasattr(part, "shape") for part in named.values()):
        raise InputError("`attempt` gives all steps as an array, or as a dict of arrays by name")
    return named


def take(tree: PyTree, which: Any) -> PyTree:
    """Rows of a tree of arrays."""
    return jax.tree.map(lambda leaf: leaf[which], tree)


def is_hosted(world: World) -> TypeGuard[HostedWorld]:
    return isinstance(world, HostedWorld)
