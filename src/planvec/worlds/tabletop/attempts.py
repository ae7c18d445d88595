"""The expert at work: attempts at tasks, each in a scene of its own. Runs in the pool's workers: NumPy alone."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from planvec.tasks import NO_SKILL, Task
from planvec.worlds.retrying import DONE, EXTRAS, FAILED
from planvec.worlds.tabletop.expert import follow
from planvec.worlds.tabletop.geometry import CUBE, OBJECTS
from planvec.worlds.tabletop.layouts import random_layout
from planvec.worlds.tabletop.simulator import Simulator, positions
from planvec.worlds.tabletop.skills import LID_ON, SKILLS, closed, goals, outcome

PATIENCE = 8  # actions for each skill, before an attempt is given up


class Attempt(NamedTuple):
    states: np.ndarray  # [step, state]
    actions: np.ndarray  # float32 [action, 4]
    status: int
    extras: int  # relations that were not asked for


def attempt(simulator: Simulator, task: Task, seed: Sequence[int], noise: float) -> Attempt:
    """One try at a task in a random scene; `noise` is the error of the hand, a share of a cube's side.

    Everything random about it follows from the seed.
    """
    rng = np.random.default_rng(seed)
    states = [simulator.place(random_layout(rng, task))]
    actions = []
    index = 0
    while len(actions) < PATIENCE * len(task):
        action, index = follow(positions(states[-1]), task, index)
        if action is None:
            break
        actions.append((action + noise * 2 * CUBE * rng.standard_normal(4)).astype(np.float32))
        state, sane = simulator.pick_and_place(states[-1], actions[-1])
        if not sane:
            break
        states.append(state)
    done = np.array(actions, np.float32).reshape(-1, 4)[: len(states) - 1]  # without one that broke the simulator
    states = np.stack(states)
    return Attempt(states, done, *_verdict(positions(states), task))


def _verdict(steps: np.ndarray, task: Task) -> tuple[int, int]:
    """How an attempt ended, and how many relations it brought about beyond its task's."""
    asked = np.isin(SKILLS, outcome(task))
    brought = goals(steps)[:LID_ON] if len(steps) > 1 else np.zeros(LID_ON, bool)
    if not closed(steps[-1]) or (asked & ~brought).any():
        return FAILED, 0
    extras = int((brought & ~asked).sum())
    return (EXTRAS if extras else DONE), extras


class Attempts(NamedTuple):
    """Many attempts in arrays of one size, padded."""

    steps: np.ndarray  # float32 [attempt, step, 18]
    actions: np.ndarray  # float32 [attempt, action, 4]
    lengths: np.ndarray  # int32 [attempt], actions
    status: np.ndarray  # int32 [attempt]
    extras: np.ndarray  # int32 [attempt]


def make_attempts(simulator: Simulator, codes: np.ndarray, seeds: np.ndarray, noise: np.ndarray) -> Attempts:
    """An attempt at each encoded task. [attempt, skill], [attempt, words], [attempt]"""
    most = PATIENCE * codes.shape[1]
    results = []
    for code, seed, error in zip(codes, seeds, noise, strict=True):
        task = tuple(SKILLS[skill] for skill in code if skill != NO_SKILL)
        steps, actions, status, extras = _try(simulator, task, seed.tolist(), float(error))
        results.append((_pad(steps, most + 1), _pad(actions, most), len(actions), status, extras))
    steps, actions, lengths, status, extras = zip(*results, strict=True)
    return Attempts(
        steps=np.stack(steps),
        actions=np.stack(actions),
        lengths=np.array(lengths, np.int32),
        status=np.array(status, np.int32),
        extras=np.array(extras, np.int32),
    )


def _try(
    simulator: Simulator, task: Task, seed: Sequence[int], noise: float
) -> tuple[np.ndarray, np.ndarray, int, int]:
    """An attempt with positions in place of states. Where the simulator breaks down over it, it has failed."""
    try:
        made = attempt(simulator, task, seed, noise)
    except Exception:
        return np.zeros((0, 3 * len(OBJECTS)), np.float32), np.zeros((0, 4), np.float32), FAILED, 0
    return positions(made.states), *made[1:]


def _pad(rows: np.ndarray, length: int) -> np.ndarray:
    return np.pad(rows, ((0, length - len(rows)), (0, 0)))
