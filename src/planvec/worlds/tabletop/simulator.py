# pyright: reportAttributeAccessIssue=false
# (mujoco has no stubs)
"""Pick-and-place as a pure function of a state and an action: MuJoCo's physics, an arm, a grasp held by friction.

A state is a flat vector: all that the physics needs to go on from it exactly as it would have gone on by itself.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from planvec.errors import InputError
from planvec.worlds.tabletop import arm, motion
from planvec.worlds.tabletop.camera import Camera
from planvec.worlds.tabletop.engine import mujoco
from planvec.worlds.tabletop.geometry import OBJECTS, TABLE
from planvec.worlds.tabletop.motion import STEP, Pose, Solids
from planvec.worlds.tabletop.scene import scene

HOME = Pose(0.0, 0.08, 0.22, 0.0, 0.0)  # where the hand waits at first
SETTLE = 20  # steps after things were set down by nobody's hand
STILL = 0.02  # metres or radians a second that count as rest
LONGEST_WAIT = 200  # steps to wait for it
WATCH = round(1 / (25 * STEP))  # steps from one picture to the next
OFF_TABLE = 0.01  # how far outside the table a thing's middle may be and still be believed

# What else MuJoCo counts as state, such as the time and outside forces, is nought here or does not matter.
_STATE = sum(int(getattr(mujoco.mjtState, f"mjSTATE_{part}")) for part in ("QPOS", "QVEL", "WARMSTART", "CTRL"))
_UPRIGHT = (1.0, 0.0, 0.0, 0.0)
_PLACES = 7 * len(OBJECTS)  # how many of the places are the objects' …
_SPEEDS = 6 * len(OBJECTS)  # … and of the speeds


def check_numbers(values: Any, shape: tuple[int | str, ...], what: str) -> np.ndarray:
    """The values as an array of this shape; complains about any other, and about NaN and infinity.

    A name in the shape stands for any size, as in ("n", 4).
    """
    expected = f"({', '.join(map(str, shape))})"
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what}: numbers of shape {expected} are expected, not {values!r}") from None
    sizes = tuple(size if isinstance(want, str) else want for want, size in zip(shape, array.shape, strict=False))
    if array.ndim != len(shape) or array.shape != sizes:
        raise InputError(f"{what}: shape {expected} is expected, got {array.shape}")
    if not np.isfinite(array).all():
        raise InputError(f"{what}: every number must be finite, got {array[~np.isfinite(array)][0]}")
    return array


def check_action(action: Any) -> np.ndarray:
    """An action: x and y where the gripper closes, x and y where it opens."""
    return check_numbers(action, (4,), "an action (x0, y0, x1, y1)")


def positions(states: np.ndarray) -> np.ndarray:
    """x, y and z of every object, in the order of geometry.OBJECTS. [..., state] to float32 [..., 18]"""
    places = states[..., :_PLACES].reshape(*states.shape[:-1], len(OBJECTS), 7)
    return places[..., :3].reshape(*states.shape[:-1], 3 * len(OBJECTS)).astype(np.float32)


class Simulator:
    """One scene that any state can be put into; it remembers nothing from one call to the next."""

    positions = staticmethod(positions)

    def __init__(self) -> None:
        self.model = mujoco.MjModel.from_xml_string(scene())
        self.data = mujoco.MjData(self.model)
        self.state_size = mujoco.mj_stateSize(self.model, _STATE)
        objects = [self.model.body(name).id for name in OBJECTS]
        self._parts = np.flatnonzero(np.isin(self.model.geom_bodyid, objects))
        self._camera: Camera | None = None

    def place(self, positions: np.ndarray) -> np.ndarray:
        """The state in which the objects stand upright and at rest at these positions, the arm at home. [6, 3]"""
        places = check_numbers(positions, (len(OBJECTS), 3), "positions")
        if _off_table(places):
            raise InputError(f"positions: everything must be on the table, {TABLE} from its middle at most")
        mujoco.mj_resetData(self.model, self.data)
        upright = np.tile(_UPRIGHT, (len(OBJECTS), 1))
        self.data.qpos[:_PLACES] = np.concatenate([places, upright], axis=1).ravel()
        self.data.qpos[_PLACES:] = _controls(np.array([HOME[:5]]))[0]
        self.data.ctrl[:] = self.data.qpos[_PLACES:]
        self._wait(SETTLE)
        if not self._is_sane():
            raise InputError("positions: from there the objects do not stay on the table; do they overlap?")
        return self._state()

    def pick_and_place(
        self, state: np.ndarray, action: np.ndarray, watch: Callable[["Simulator"], None] | None = None
    ) -> tuple[np.ndarray, bool]:
        """The state after an action, and whether the physics stayed sane; where not, the state is the one before.

        `watch` is called 25 times for every second that passes on the table; `render()` then draws what there is.
        """
        state = check_numbers(state, (self.state_size,), "a state")
        action = check_action(action)
        self._restore(state)
        start = Pose(*arm.grip_at(self.data.ctrl[:5]).tolist(), *self.data.ctrl[5:].tolist())
        goals = motion.trajectory(start, motion.plan(self._solids(), start, action))
        self._run(_controls(goals), watch)
        self._come_to_rest(watch)
        return (self._state(), True) if self._is_sane() else (state.copy(), False)

    def render(
        self, state: np.ndarray | None = None, width: int = 480, height: int = 360, view: str = "front"
    ) -> np.ndarray:
        """A picture of a state, or of what is going on now. uint8 [height, width, 3]"""
        if self._camera is None or self._camera.size != (width, height):
            self.close()
            self._camera = Camera(self.model, width, height)
        if state is None:
            return self._camera.picture(self.data, view)
        shown = mujoco.MjData(self.model)
        mujoco.mj_setState(self.model, shown, check_numbers(state, (self.state_size,), "a state"), _STATE)
        mujoco.mj_forward(self.model, shown)
        return self._camera.picture(shown, view)

    def close(self) -> None:
        """Give the camera back."""
        if self._camera is not None:
            self._camera.close()
            self._camera = None

    def _restore(self, state: np.ndarray) -> None:
        mujoco.mj_resetData(self.model, self.data)
        mujoco.mj_setState(self.model, self.data, state, _STATE)
        # What is at rest falls asleep in the first step, not after ten, which would cost as much as fifty do asleep.
        self.data.tree_asleep[: len(OBJECTS)] = -1
        mujoco.mj_kinematics(self.model, self.data)

    def _state(self) -> np.ndarray:
        state = np.empty(self.state_size)
        mujoco.mj_getState(self.model, self.data, state, _STATE)
        return state

    def _solids(self) -> Solids:
        """The upright boxes round the objects' parts, which may be turned or tilted."""
        middle = self.data.geom_xpos[self._parts]
        turn = self.data.geom_xmat[self._parts].reshape(-1, 3, 3)
        half = np.einsum("pij,pj->pi", np.abs(turn), self.model.geom_size[self._parts])
        return Solids(middle - half, middle + half)

    def _run(self, controls: np.ndarray, watch: Callable[["Simulator"], None] | None = None) -> None:
        for step, control in enumerate(controls):
            self.data.ctrl[:] = control
            mujoco.mj_step(self.model, self.data)
            if watch is not None and step % WATCH == 0:
                watch(self)

    def _wait(self, steps: int, watch: Callable[["Simulator"], None] | None = None) -> None:
        self._run(np.tile(self.data.ctrl, (steps, 1)), watch)

    def _come_to_rest(self, watch: Callable[["Simulator"], None] | None) -> None:
        """Wait for what has been knocked over or dropped."""
        for _ in range(LONGEST_WAIT // WATCH):
            if np.abs(self.data.qvel[:_SPEEDS]).max() <= STILL:
                return
            self._wait(WATCH, watch)

    def _is_sane(self) -> bool:
        places = self.data.qpos[:_PLACES].reshape(len(OBJECTS), 7)
        finite = np.isfinite(self.data.qpos).all() and np.isfinite(self.data.qvel).all()
        return bool(finite) and not _off_table(places[:, :3])


def _off_table(places: np.ndarray) -> bool:
    """Whether anything is beside the table or below it. [object, 3]"""
    beside = np.abs(places[:, :2]) > np.array(TABLE) + OFF_TABLE
    return bool(beside.any() or (places[:, 2] < -OFF_TABLE).any())


def _controls(goals: np.ndarray) -> np.ndarray:
    """The goals for grip and fingers as goals for the joints. [step, 5] to [step, 7]"""
    return np.concatenate([arm.joints_for(goals[:, :3]), goals[:, 3:]], axis=1)
