"""What a world must offer to collecting, training and evaluation."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from planvec.demos import Demonstration
from planvec.errors import InputError
from planvec.tasks import Task

PyTree = Any
EXTRAS = ("discard", "keep")  # what becomes of demonstrations that did more than their task


def check_recording(noise: float, extras: str) -> None:
    """Complain about options that no expert can follow."""
    if not 0 <= noise < 1:
        raise InputError(f"noise is the share of random actions, from 0 to below 1; got {noise}")
    if extras not in EXTRAS:
        raise InputError(f"extras are either {' or '.join(EXTRAS)}, not '{extras}'")


class Recording(NamedTuple):
    """Demonstrations as an expert left them, laid end to end, NumPy arrays throughout."""

    stored: dict[str, np.ndarray]  # what the world needs to rebuild every step
    actions: np.ndarray  # [all actions, …]
    lengths: np.ndarray  # int32 [demonstration], the number of actions
    extras: np.ndarray  # int32 [demonstration], skills done that were not asked for
    attempts: np.ndarray  # int64 [demonstration, 3]: attempts that did it, did more than it, failed


class World(Protocol):
    """An environment with its skills, its expert and its success test."""

    name: str
    observation_shape: tuple[int, ...]
    actions: int

    @property
    def skills(self) -> tuple[str, ...]:
        """Everything that a task can ask for."""

    @property
    def fingerprint(self) -> str:
        """Changes when stored data would no longer mean the same."""

    def sample_tasks(self, seed: Sequence[int], count: int, low: int, high: int) -> list[Task]:
        """Random tasks of `low` to `high` skills."""

    def record(
        self,
        tasks: Sequence[Task],
        seed: Sequence[int],
        noise: float,
        extras: str,
        progress: Callable[[int], None],
    ) -> Recording:
        """A demonstration of each task, each in a scene of its own."""

    def replay(self, recording: Recording) -> PyTree:
        """All stored steps of the demonstrations, end to end: one more than actions for each. [all steps, …]"""

    def decode(self, step: PyTree) -> PyTree:
        """What an agent observes at a stored step: pure and jittable."""

    def ends(self, recording: Recording) -> tuple[PyTree, PyTree, np.ndarray]:
        """First and last observation of each demonstration, and how often each skill was done. int32 [demo, skill]"""

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

    def horizon(self, skills: int) -> int:
        """How many steps a task of so many skills may take."""
