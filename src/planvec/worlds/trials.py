"""Trials: what a set of episodes begins with, and what is asked of it.

A condition names what the plan is made of: "4" is one reference of four skills, "2+2" the sum of two references
of two skills each.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from planvec.errors import InputError
from planvec.tasks import FRESH, Task, parse_condition
from planvec.worlds.protocol import World


class Trial(NamedTuple):
    """What a set of episodes begins with, and what is asked of it."""

    shown: tuple[tuple[Any, Any], ...]  # for each part of the sum, the references' (first, last) [episode, …]
    scenes: Any  # world states [episode]
    wanted: np.ndarray  # int32 [episode, …], what came about in the references: how often each skill was done, say
    horizon: int
    tasks: Sequence[Task]  # of all parts together


@lru_cache(maxsize=16)
def random_trial(world: World, condition: str, episodes: int, seed: int, extras: str) -> Trial:
    """Random tasks under a condition."""
    if episodes < 1:
        raise InputError(f"evaluate at least one episode; got {episodes}")
    return make_trial(world, world.sample_parts((seed, FRESH + 2), episodes, parse_condition(condition)), seed, extras)


def make_trial(
    world: World, parts: Sequence[Sequence[Task]], seed: int, extras: str = "discard", apart: int = 0
) -> Trial:
    """Fresh references by the expert, without noise: for each part of the sum, a task for each episode. `apart`: sets
    of episodes with other numbers share no reference and no scene."""
    if not parts[0]:
        raise InputError("evaluate at least one episode")
    shown = []
    wanted = []
    for i, tasks in enumerate(parts):
        first, last, done = world.ends(world.record(tasks, (seed, FRESH + apart + 3, i), 0.0, extras))
        shown.append((first, last))
        wanted.append(done)
    whole = [sum(tasks, ()) for tasks in zip(*parts, strict=True)]
    horizon = world.horizon([max(map(len, tasks)) for tasks in parts])
    scenes = world.scenes(whole, (seed, FRESH + apart + 4))
    return Trial(tuple(shown), scenes, np.stack(wanted).sum(axis=0, dtype=np.int32), horizon, whole)


class OneTask(InputError):
    """There can be no control where all episodes are of the same task."""


def strangers(tasks: Sequence[Task]) -> list[int]:
    """For each task where the next one of other skills is."""
    skills = list(map(sorted, tasks))
    if skills.count(skills[0]) == len(skills):
        raise OneTask("all episodes are of one task: there is no other to show in its place")
    places = list(range(len(skills)))
    return [next(i for i in (*places[here:], *places) if skills[i] != own) for here, own in enumerate(skills)]
