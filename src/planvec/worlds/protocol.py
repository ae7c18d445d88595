"""What a world must offer to collecting, training and evaluation."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, Self, TypeGuard

import numpy as np
from jax import Array

from planvec.data.demonstrations import Demonstration
from planvec.data.recordings import Recording
from planvec.tasks import Task
from planvec.worlds.spaces import Space

PyTree = Any


class World(Protocol):
    """An environment with its skills, its expert and its success test. Whoever brings one also says how it is stepped:
    as a `PureWorld` or as a `HostedWorld`."""

    name: str
    space: Space
    conditions: tuple[str, ...]  # the columns of its results table
    glance: tuple[str, ...]  # those that are scored while an agent is trained
    pairs: int  # demonstrations to train on, unless told otherwise …
    sizes: tuple[int, int]  # … and how many skills their tasks have
    fps: int  # pictures a second, in films

    @property
    def skills(self) -> tuple[str, ...]:
        """Everything that a task can ask for."""

    @property
    def fingerprint(self) -> str:
        """Changes when stored data would no longer mean the same."""

    def sample_tasks(self, seed: Sequence[int], count: int, low: int, high: int) -> list[Task]:
        """Random tasks of `low` to `high` skills."""

    def sample_parts(self, seed: Sequence[int], count: int, sizes: Sequence[int]) -> list[list[Task]]:
        """For each size, random tasks of so many skills. The first of all parts can be done together, and so on."""

    def record(
        self,
        tasks: Sequence[Task],
        seed: Sequence[int],
        noise: float,
        extras: str,
        progress: Callable[[int], None],
    ) -> Recording:
        """A demonstration of each task, each in a scene of its own."""

    def replay(self, recording: Recording, progress: Callable[[int], None]) -> PyTree:
        """All stored steps of the demonstrations, end to end: one more than actions for each. [all steps, …]

        Where this takes long, `progress` is told how many there are.
        """

    def decode(self, step: PyTree) -> PyTree:
        """What an agent observes at a stored step: pure and jittable. An image may be `Tiled`."""

    def ends(self, recording: Recording) -> tuple[PyTree, PyTree, np.ndarray]:
        """First and last observation of each demonstration, and what it asks for, as in `asked`."""

    def asked(self, tasks: Sequence[Task]) -> np.ndarray:
        """What must come about for a task to be done, as counts that add up where plans do. int32 [task, …]"""

    def scenes(self, tasks: Sequence[Task], seed: Sequence[int]) -> PyTree:
        """Where an episode of each task begins. [task]"""

    def demonstrate(
        self, task: str | Iterable[str], seed: int = 0, noise: float = 0.0, extras: str = "discard"
    ) -> Demonstration:
        """One demonstration, for people."""

    def events(self, steps: PyTree, actions: np.ndarray) -> list[str | None]:
        """Which skill each action of a demonstration did, if any."""

    def draw(self, step: PyTree) -> np.ndarray:
        """A picture of a step for people. uint8 [height, width, 3]"""

    def film(self, steps: PyTree, actions: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Pictures of an episode, each with the number of actions done by then."""

    def horizon(self, sizes: Sequence[int]) -> int:
        """How many steps a sum of tasks of so many skills may take."""


class PureWorld(World, Protocol):
    """A world that is a function of its state: episodes run on the accelerator, with the policy inside."""

    def observe(self, state: PyTree) -> PyTree:
        """What an agent sees of one state."""

    def step(self, state: PyTree, action: PyTree) -> tuple[PyTree, Array]:
        """One action in one state: the next one, and the number of the skill that was done."""


class HostedWorld(World, Protocol):
    """A world that is a simulator: many episodes at once, stepped from outside."""

    def start(self, scenes: PyTree) -> "Session":
        """Begin an episode in each scene."""


class Session(Protocol):
    """Episodes under way in a hosted world, to be used in a `with` block."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def observe(self) -> PyTree:
        """What the agents see. NumPy, [episode, …]"""

    def step(self, actions: np.ndarray) -> np.ndarray:
        """One action in each episode; whether its simulator survived it. bool [episode]"""

    def judge(self, asked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whether all that is asked for has come about, and whether nothing else has. bool [episode] each"""

    def steps(self) -> PyTree:
        """The episodes as they are, for `draw` and `film`. NumPy, [episode, …]"""


def is_hosted(world: World) -> TypeGuard[HostedWorld]:
    return hasattr(world, "start")
