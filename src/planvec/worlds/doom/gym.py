"""The doom world as a gymnasium environment."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete

from planvec.errors import InputError
from planvec.tasks import Task, parse_range, parse_task
from planvec.worlds.doom.level import WAYPOINTS
from planvec.worlds.doom.motion import State, beginning, step
from planvec.worlds.doom.scenes import random_scene
from planvec.worlds.doom.world import Doom, Observation, check_task

FAR = 24.0  # metres; more than from any corner of a level to any other


class DoomEnv(gymnasium.Env):
    """One agent. Actions: turn 15° to the left, turn 15° to the right, go 1 metre forward.

    It sees an image and where the waypoints are: metres ahead, metres to the left, and 1 while a waypoint is there.
    A task asks for waypoints; the reward is how many of them an action visited. Terminated when all were visited,
    truncated at the horizon.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 8}  # noqa: RUF012

    def __init__(
        self,
        task: str | Sequence[str] | None = None,
        skills: str = "1-3",
        level: str = "open",
        flags: bool = True,
        render_mode: str | None = None,
    ) -> None:
        """`task`: what to do in every episode; without it each episode draws a task of so many `skills`."""
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise InputError(f"render_mode is one of {self.metadata['render_modes']}, not '{render_mode}'")
        self.world = Doom(level, flags, workers=1)
        self.task = None if task is None else self._parse(task)
        self.skills = parse_range(skills)
        self.world.check_size(self.skills[1])
        self.render_mode = render_mode
        self.observation_space, self.action_space = _spaces(self.world)
        self._state: State | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict]:
        """`options={"task": ["A", "C"]}` asks for a task."""
        super().reset(seed=seed)
        wanted = (options or {}).get("task", self.task)
        self._task = self._random_task() if wanted is None else self._parse(wanted)
        self._asked = self.world.asked([self._task])[0].astype(bool)
        self._time = 0
        self._horizon = self.world.horizon([len(self._task)])
        agent, markers = random_scene(self.np_random, self.world.level)
        self._state = beginning(agent[None], markers[None])
        self._trail = [self._state.agent[0, :2]]
        return self._observe(self._state), self._info(self._state)

    def step(self, action: int) -> tuple[Observation, float, bool, bool, dict]:
        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        if not self.action_space.contains(action):
            raise InputError(f"an action is 0 (turn left), 1 (turn right) or 2 (go forward), not {action!r}")
        before = self._state.visited[0]
        self._state = step(self.world.level, self._state, np.array([action]))
        self._trail.append(self._state.agent[0, :2])
        self._time += 1
        after = self._state.visited[0]
        terminated = bool(np.all(after | ~self._asked))
        truncated = self._time >= self._horizon and not terminated
        reward = float(np.sum(after & ~before & self._asked))
        return self._observe(self._state), reward, terminated, truncated, self._info(self._state)

    def render(self) -> np.ndarray | None:
        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset() before render()")
        if self.render_mode is None:
            return None
        agent, markers, visited = self._state
        return self.world.draw(State(agent[0], markers[0], visited[0]), np.stack(self._trail))

    def close(self) -> None:
        self.world.close()

    def _parse(self, task: str | Sequence[str]) -> Task:
        task = parse_task(task, WAYPOINTS)
        check_task(task)
        return task

    def _random_task(self) -> Task:
        return self.world.sample_tasks((int(self.np_random.integers(2**32)),), 1, *self.skills)[0]

    def _observe(self, state: State) -> Observation:
        return {name: part[0] for name, part in self.world.observe(state).items()}

    def _info(self, state: State) -> dict[str, Any]:
        visited = dict(zip(WAYPOINTS, state.visited[0].tolist(), strict=True))
        return {"task": self._task, "visited": visited}


def _spaces(world: Doom) -> tuple[Dict, Discrete]:
    low = np.tile(np.array([-FAR, -FAR, 0], np.float32), (world.space.waypoints, 1))
    high = np.tile(np.array([FAR, FAR, 1], np.float32), (world.space.waypoints, 1))
    seen = Dict(image=Box(0, 255, world.space.image, np.uint8), waypoints=Box(low, high, dtype=np.float32))
    return seen, Discrete(world.space.actions)
