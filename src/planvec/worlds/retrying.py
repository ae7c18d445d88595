"""Demonstrations by an expert that may fail: attempts in blocks, and those that failed made again in another scene."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from planvec.errors import InputError
from planvec.tasks import Task, check_seed, show_task

DONE, EXTRAS, FAILED = range(3)  # how an attempt ends; EXTRAS: something came about that the task did not ask for
TRIES = 50  # attempts at one demonstration before giving up
BLOCK = 1024  # attempts between two words of progress, unless told


class Kept(NamedTuple):
    """What became of all attempts."""

    rows: list[Any]  # [demonstration], of what `attempt` gave for the one that was kept
    attempts: np.ndarray  # int64 [demonstration, 3], as in a Recording


def keep_trying(
    tasks: Sequence[Task],
    seed: Sequence[int],
    noise: float,
    keep_extras: bool,
    attempt: Callable[[np.ndarray, np.ndarray], Any],
    progress: Callable[[int], None],
    block_size: int = BLOCK,
) -> Kept:
    """A good attempt at every task.

    `attempt(which, seeds)` tries some tasks by their numbers, each with the words of a seed of its own, and gives a
    NamedTuple of arrays with a row for each, `status` among them. A row depends on (seed, number, try) alone.
    """
    kept: dict[int, Any] = {}
    counts = np.zeros((len(tasks), 3), np.int64)
    left = np.arange(len(tasks))
    words = seed_words(seed)
    progress(0)
    while len(left):
        block = left[:block_size]
        tries = counts[block].sum(axis=1)
        if tries.max() >= TRIES:
            task = show_task(tasks[int(block[tries.argmax()])])
            raise InputError(f"the expert failed {TRIES} times at {task}; noise {noise} may be too much for it")
        made = attempt(block, np.column_stack([np.tile(words, (len(block), 1)), block, tries]))
        good = (made.status == DONE) | ((made.status == EXTRAS) & keep_extras)
        counts[block, np.where(good, DONE, made.status)] += 1
        for row in np.flatnonzero(good):
            kept[int(block[row])] = type(made)._make(column[row] for column in made)
        left = np.concatenate([block[~good], left[block_size:]])
        progress(len(kept))
    return Kept([kept[i] for i in range(len(tasks))], counts)


def generator(seed: Sequence[int]) -> np.random.Generator:
    """A source of randomness that depends on all the numbers, the first of which is a seed."""
    return np.random.default_rng(seed_words(seed))


def seed_words(seed: Sequence[int]) -> list[int]:
    check_seed(seed[0])
    return [int(word) for word in seed]
