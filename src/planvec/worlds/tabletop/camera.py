# pyright: reportAttributeAccessIssue=false
# (mujoco has no stubs)
"""Pictures of the table, with a display or without one."""

import ctypes
import os
import sys
from importlib import import_module
from typing import Any

import numpy as np

from planvec.errors import InputError
from planvec.worlds.tabletop.engine import mujoco

WAYS = ("egl", "osmesa", "glfw", "cgl")  # of drawing, each a module of mujoco's
MAX_GEOMS = 1000

_CANNOT_DRAW = (
    "MuJoCo cannot draw here by way of {way} ({error}). Without a display it needs EGL: "
    "on Debian or Ubuntu, apt install libegl1; and MUJOCO_GL, if it is set, must be egl"
)


class Camera:
    """Draws pictures of one size. MuJoCo's own renderer would have to know the way to draw when it is imported."""

    def __init__(self, model: "mujoco.MjModel", width: int, height: int) -> None:
        most = model.vis.global_
        if not (0 < width <= most.offwidth and 0 < height <= most.offheight):
            raise InputError(f"a picture is at most {most.offwidth}×{most.offheight}, not {width}×{height}")
        self.size = (width, height)
        self._model = model
        self._context, self._drawing = _contexts(model, width, height)
        self._scene = mujoco.MjvScene(model, maxgeom=MAX_GEOMS)
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = False  # five times faster

    def picture(self, data: "mujoco.MjData", view: str) -> np.ndarray:
        """uint8 [height, width, 3]"""
        picture = np.empty((self.size[1], self.size[0], 3), np.uint8)
        rectangle = mujoco.MjrRect(0, 0, *self.size)
        self._context.make_current()
        mujoco.mjv_updateScene(
            self._model,
            data,
            mujoco.MjvOption(),
            None,
            self._viewpoint(view),
            mujoco.mjtCatBit.mjCAT_ALL.value,
            self._scene,
        )
        mujoco.mjr_render(rectangle, self._scene, self._drawing)
        mujoco.mjr_readPixels(picture, None, rectangle, self._drawing)
        return picture[::-1].copy()  # OpenGL begins at the bottom

    def close(self) -> None:
        self._context.make_current()
        self._drawing.free()
        self._context.free()

    def _viewpoint(self, view: str) -> "mujoco.MjvCamera":
        views = [self._model.camera(number).name for number in range(self._model.ncam)]
        if view not in views:
            raise InputError(f"the table is seen from {' or '.join(views)}, not '{view}'")
        viewpoint = mujoco.MjvCamera()
        viewpoint.type = mujoco.mjtCamera.mjCAMERA_FIXED
        viewpoint.fixedcamid = views.index(view)
        return viewpoint


def _contexts(model: "mujoco.MjModel", width: int, height: int) -> tuple[Any, "mujoco.MjrContext"]:
    """What OpenGL draws into, and what MuJoCo draws with."""
    way = _way()
    os.environ["MUJOCO_GL"] = way  # where MuJoCo looks for OpenGL's functions
    try:
        context = import_module(f"mujoco.{way}").GLContext(width, height)
        context.make_current()
        drawing = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100.value)
    except Exception as error:  # every way has errors of its own
        raise InputError(_CANNOT_DRAW.format(way=way, error=error)) from error
    mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, drawing)
    return context, drawing


def _way() -> str:
    """How to draw: as MUJOCO_GL says, or else off screen, which needs no display, where that can be."""
    asked = os.environ.get("MUJOCO_GL", "").lower()
    if asked in WAYS:
        return asked
    if sys.platform == "darwin":
        return "cgl"
    if sys.platform != "linux":
        return "glfw"
    offered = (("egl", "libEGL.so.1"), ("osmesa", "libOSMesa.so.8"))
    off_screen = [way for way, library in offered if _loads(library)]
    return (*off_screen, "glfw" if os.environ.get("DISPLAY") else "egl")[0]


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
