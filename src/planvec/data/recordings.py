"""Recordings: many demonstrations as an expert left them, laid end to end, and where each of them lies."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from planvec.errors import InputError

EXTRAS = ("discard", "keep")  # what becomes of demonstrations that did more than their task


def check_recording(noise: float, extras: str) -> None:
    """Complain about options that no expert can follow."""
    if not 0 <= noise < 1:
        raise InputError(f"noise is a share, from 0 to below 1 (see planvec collect --help); got {noise}")
    if extras not in EXTRAS:
        raise InputError(f"extras are either {' or '.join(EXTRAS)}, not '{extras}'")


def ends_of(sizes: Sequence[int] | np.ndarray) -> np.ndarray:
    """Where each of some stretches ends that lie end to end. [stretch]"""
    return np.cumsum(sizes)


def starts_of(sizes: Sequence[int] | np.ndarray) -> np.ndarray:
    """Where each of them begins. [stretch]"""
    return ends_of(sizes) - sizes


class Recording(NamedTuple):
    """Demonstrations laid end to end, NumPy arrays throughout: one step more than actions for each."""

    stored: dict[str, np.ndarray]  # what the world needs to rebuild every step: [demonstration, …] or [all steps, …]
    actions: np.ndarray  # [all actions, …]
    lengths: np.ndarray  # int32 [demonstration], the number of actions
    extras: np.ndarray  # int32 [demonstration], skills done that were not asked for
    attempts: np.ndarray  # int64 [demonstration, 3]: attempts that did it, did more than it, failed

    @property
    def demonstrations(self) -> int:
        """How many there are. (`len` would be that of the tuple.)"""
        return len(self.lengths)

    @property
    def first_actions(self) -> np.ndarray:
        """The number of each demonstration's first action. [demonstration]"""
        return starts_of(self.lengths)

    @property
    def first_steps(self) -> np.ndarray:
        """The number of each demonstration's first step. [demonstration]"""
        return starts_of(self.lengths + 1)

    @property
    def last_steps(self) -> np.ndarray:
        """The number of each demonstration's last step. [demonstration]"""
        return self.first_steps + self.lengths

    def steps_of(self, demo: int) -> slice:
        """Where one demonstration's steps are among all."""
        return slice(self.first_steps[demo], self.last_steps[demo] + 1)

    def actions_of(self, demo: int) -> np.ndarray:
        """One demonstration's actions. [action, …]"""
        first = self.first_actions[demo]
        return self.actions[first : first + self.lengths[demo]]

    def take(self, which: np.ndarray | slice) -> "Recording":
        """Some of the demonstrations."""
        return self._beginnings(np.arange(self.demonstrations)[which], self.lengths[which])

    def cut(self, lengths: np.ndarray) -> "Recording":
        """The beginnings of all demonstrations: so many actions of each."""
        return self._beginnings(np.arange(self.demonstrations), lengths)

    def _beginnings(self, which: np.ndarray, lengths: np.ndarray) -> "Recording":
        """So many actions of each of these demonstrations. What a world stores lies by demonstration or by step."""
        steps = _rows(self.first_steps[which], lengths + 1)
        stored = {
            name: part[which] if len(part) == self.demonstrations else part[steps] for name, part in self.stored.items()
        }
        return Recording(
            stored=stored,
            actions=self.actions[_rows(self.first_actions[which], lengths)],
            lengths=lengths.astype(np.int32),
            extras=self.extras[which],
            attempts=self.attempts[which],
        )


def _rows(firsts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The numbers of rows: so many from each first one on."""
    return np.repeat(firsts - starts_of(counts), counts) + np.arange(counts.sum())
