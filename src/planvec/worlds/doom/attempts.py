"""The expert at work: many attempts at once, each at a task of its own in a scene of its own."""

from typing import NamedTuple

import numpy as np

from planvec.data.recordings import starts_of
from planvec.tasks import NO_SKILL
from planvec.worlds.doom.expert import choose
from planvec.worlds.doom.level import WAYPOINTS, Level
from planvec.worlds.doom.motion import ACTIONS, State, beginning, step
from planvec.worlds.doom.scenes import random_scene
from planvec.worlds.retrying import DONE, EXTRAS, FAILED

PATIENCE = 100  # actions for each waypoint, before an attempt is given up


class Attempts(NamedTuple):
    """Attempts in arrays of one size, padded."""

    agent: np.ndarray  # int32 [attempt, 3], as in the first State
    markers: np.ndarray  # int32 [attempt, 4, 2]
    actions: np.ndarray  # uint8 [attempt, most]
    lengths: np.ndarray  # int32 [attempt], actions
    status: np.ndarray  # int32 [attempt]
    extras: np.ndarray  # int32 [attempt], waypoints that were not asked for


def attempt(level: Level, codes: np.ndarray, seeds: np.ndarray, noise: float) -> Attempts:
    """Try the encoded tasks, waypoints in their order; `noise` is the share of random actions. [attempt, skill]

    Everything random about an attempt follows from its seed. [attempt, words]
    """
    agent, markers, wild = _draw(level, seeds, noise)
    actions = np.zeros(wild.shape, np.uint8)
    lengths = np.zeros(len(codes), np.int32)
    visited = np.zeros(markers.shape[:2], bool)
    going = np.arange(len(codes))  # the attempts that go on; `state` and `targets` are theirs
    state = beginning(agent, markers)
    limits = PATIENCE * np.sum(codes != NO_SKILL, axis=1)
    for time in range(limits.max()):
        targets = _targets(codes[going], state.visited)
        left = np.flatnonzero((targets != NO_SKILL) & (time < limits[going]))
        if not len(left):
            break
        going = going[left]
        state = state.take(left)
        targets = targets[left]
        chance = wild[going, time]
        actions[going, time] = np.where(chance < 0, choose(level, state, targets), chance)
        state = step(level, state, actions[going, time])
        visited[going] = state.visited
        lengths[going] = time + 1
    return Attempts(agent, markers, actions, lengths, *_verdicts(visited, codes))


def retrace(level: Level, begin: State, actions: np.ndarray, lengths: np.ndarray) -> State:
    """All states of episodes whose actions lie end to end, end to end as well: one more than actions for each."""
    first_actions = starts_of(lengths)
    first_steps = starts_of(lengths + 1)
    every = State._make(np.repeat(part, lengths + 1, axis=0) for part in begin)
    state = begin
    going = np.arange(len(lengths))
    for time in range(lengths.max(initial=0)):
        left = np.flatnonzero(lengths[going] > time)
        going = going[left]
        state = step(level, state.take(left), actions[first_actions[going] + time])
        rows = first_steps[going] + time + 1
        every.agent[rows] = state.agent
        every.visited[rows] = state.visited
    return every


def _draw(level: Level, seeds: np.ndarray, noise: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scenes, and the random actions in between: -1 where the expert decides. int8 [attempt, most]

    As many for every task, so that an attempt does not depend on what is tried beside it.
    """
    most = PATIENCE * len(WAYPOINTS)
    agents = []
    markers = []
    wild = np.full((len(seeds), most), -1, np.int8)
    for row, seed in zip(wild, seeds.tolist(), strict=True):
        rng = np.random.default_rng(seed)
        agent, there = random_scene(rng, level)
        agents.append(agent)
        markers.append(there)
        if noise:
            row[:] = np.where(rng.random(most) < noise, rng.integers(len(ACTIONS), size=most), -1)
    return np.array(agents, np.int32), np.array(markers, np.int32), wild


def _targets(codes: np.ndarray, visited: np.ndarray) -> np.ndarray:
    """The first of each task's waypoints that was not visited yet; NO_SKILL where all were. [attempt]"""
    left = (codes != NO_SKILL) & ~np.take_along_axis(visited, np.maximum(codes, 0), axis=1)
    first = codes[np.arange(len(codes)), left.argmax(axis=1)]
    return np.where(left.any(axis=1), first, NO_SKILL).astype(int)


def _verdicts(visited: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How attempts ended, and how many waypoints they visited beyond their tasks'."""
    asked = (codes[:, :, None] == np.arange(len(WAYPOINTS))).any(axis=1)
    extras = (visited & ~asked).sum(axis=1)
    status = np.where((asked & ~visited).any(axis=1), FAILED, np.where(extras > 0, EXTRAS, DONE))
    return status.astype(np.int32), extras.astype(np.int32)
