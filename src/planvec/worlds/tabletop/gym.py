"""The tabletop world as a gymnasium environment."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from planvec.errors import InputError
from planvec.tasks import Task, parse_range, parse_task
from planvec.worlds.tabletop.geometry import OBJECTS, TABLE
from planvec.worlds.tabletop.layouts import random_layout
from planvec.worlds.tabletop.simulator import OFF_TABLE, check_action, positions
from planvec.worlds.tabletop.skills import LID_ON, closed, relations
from planvec.worlds.tabletop.world import Tabletop

HIGHEST = 0.3  # metres; all things on top of each other are lower


class TabletopEnv(gymnasium.Env):
    """One table. An action is x and y where the gripper closes, x and y where it opens, in metres.

    A task asks for its skills' relations, and for the box to be closed. The reward is how many more of these hold after
    an action than before it: what is undone costs what it gave. Terminated when all hold, truncated at the horizon, or
    if the physics broke down (`info["diverged"]`).
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 2}  # noqa: RUF012
    action_space: Box

    def __init__(
        self, task: str | Sequence[str] | None = None, skills: str = "1-2", render_mode: str | None = None
    ) -> None:
        """`task`: what to do in every episode; without it each episode draws a task of so many `skills`."""
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise InputError(f"render_mode is one of {self.metadata['render_modes']}, not '{render_mode}'")
        self.world = Tabletop()
        self.task = None if task is None else parse_task(task, self.world.skills)
        self.skills = parse_range(skills)
        self.render_mode = render_mode
        self.observation_space = _observations()
        self.action_space = _actions()
        self._state: np.ndarray | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """`options={"task": ["Stack(red,blue)", "PlaceInBox(green)"]}` asks for a task."""
        super().reset(seed=seed)
        wanted = (options or {}).get("task", self.task)
        self._task = self._random_task() if wanted is None else parse_task(wanted, self.world.skills)
        self._asked = self.world.asked([self._task])[0].astype(bool)
        self._time = 0
        self._horizon = self.world.horizon([len(self._task)])
        self._state = self.world.simulator.place(random_layout(self.np_random, self._task))
        return positions(self._state), self._info(self._state, sane=True)

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        action = self._on_table(action)
        before = _holds(self._state)
        self._state, sane = self.world.simulator.pick_and_place(self._state, action)
        self._time += 1
        after = _holds(self._state)
        reward = np.sum(after & self._asked) - np.sum(before & self._asked)
        terminated = bool(np.all(after | ~self._asked))
        truncated = not sane or (self._time >= self._horizon and not terminated)
        return positions(self._state), float(reward), terminated, truncated, self._info(self._state, sane)

    def render(self) -> np.ndarray | None:
        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset() before render()")
        return self.world.simulator.render(self._state) if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        self.world.simulator.close()

    def _on_table(self, action: Any) -> np.ndarray:
        """The action, if it is one."""
        action = check_action(action).astype(np.float32)
        if np.any(np.abs(action) > self.action_space.high):
            x, y = TABLE
            raise InputError(
                f"an action (x0, y0, x1, y1) stays on the table: x from {-x} to {x} and y from {-y} to {y} metres; "
                f"got {action.tolist()}"
            )
        return action

    def _random_task(self) -> Task:
        return self.world.sample_tasks((int(self.np_random.integers(2**32)),), 1, *self.skills)[0]

    def _info(self, state: np.ndarray, sane: bool) -> dict[str, Any]:
        holds = dict(zip(self.world.skills, _holds(state)[:LID_ON].tolist(), strict=True))
        return {"task": self._task, "skills_hold": holds, "diverged": not sane}


def _holds(state: np.ndarray) -> np.ndarray:
    """The skills whose relations hold, and whether the box is closed. bool [21]"""
    seen = positions(state)
    return np.append(relations(seen), closed(seen))


def _observations() -> Box:
    """Where things can be."""
    x, y = np.add(TABLE, OFF_TABLE)
    low = np.tile(np.array([-x, -y, -OFF_TABLE], np.float32), len(OBJECTS))
    high = np.tile(np.array([x, y, HIGHEST], np.float32), len(OBJECTS))
    return Box(low, high, dtype=np.float32)


def _actions() -> Box:
    """Where the hand may be sent."""
    reach = np.array([*TABLE, *TABLE], np.float32)
    return Box(-reach, reach, dtype=np.float32)
