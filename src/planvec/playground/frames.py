"""Pictures on their way to a page: a state of the crafting world as its cells, which the page draws itself; a picture
of any other world as a JPEG."""

import base64
from typing import Any

import jax
import numpy as np
from PIL import Image

from planvec.playground.painting import PAINTERS, STARTS, data_url, jpeg, paint
from planvec.worlds.crafting import render
from planvec.worlds.crafting.rules import ACTIONS, SIZE, State
from planvec.worlds.crafting.world import Crafting
from planvec.worlds.protocol import World

CELL = 64  # pixels of a cell on the sheet; the page draws them smaller
LONGEST = 60  # pictures of a demonstration that are sent


def canvas(world: World) -> dict[str, Any]:
    """What the page needs to know before it can show anything of a world."""
    if not isinstance(world, Crafting):
        return {"kind": "pictures"}
    sheet = data_url(Image.fromarray(render.sheet(world.rules, CELL)), "PNG")
    names = {"things": world.rules.names, "actions": ACTIONS}
    return {"kind": "cells", "sheet": sheet, "cell": CELL, "size": SIZE, "ground": render.GROUND.tolist()} | names


def film(world: World, steps: Any, actions: np.ndarray) -> list[dict[str, Any]]:
    """An episode as pictures, each with the number of actions done by then; of a long one, some of them."""
    if isinstance(world, Crafting):
        return [{"time": time, "picture": picture} for time, picture in enumerate(cells(steps))]
    pictures = list(world.film(steps, actions))
    chosen = np.unique(np.linspace(0, len(pictures) - 1, min(len(pictures), LONGEST)).round().astype(int))
    return [{"time": pictures[i][0], "picture": jpeg(pictures[i][1])} for i in chosen]


def after(world: World, steps: Any, action: np.ndarray) -> list[str]:
    """The pictures that one action adds to a film. `steps`: before it and after it."""
    if _kind(world) in STARTS:
        level = [world.level.name] if hasattr(world, "level") else []
        return paint(_kind(world), *level, move=(steps, action))
    return [jpeg(picture) for _, picture in list(world.film(steps, action))[1:]]


def at_once(world: World) -> int:
    """How many actions can be drawn at the same time."""
    return PAINTERS if _kind(world) in STARTS else 1


def first(world: World, step: Any) -> str:
    """The picture of one step."""
    if isinstance(world, Crafting):
        return cells(jax.tree.map(lambda leaf: np.asarray(leaf)[None], step))[0]
    return jpeg(world.draw(step))


def cells(states: State) -> list[str]:
    """States as text: what lies where, the agent's cell, what it holds, a byte each."""
    numbers = np.concatenate([states.cells, states.agent[:, None], states.held[:, None]], axis=1).astype(np.uint8)
    return [base64.b64encode(row.tobytes()).decode() for row in numbers]


def _kind(world: World) -> str:
    """The world that this is, or is a variant of."""
    return world.name.partition("-")[0]
