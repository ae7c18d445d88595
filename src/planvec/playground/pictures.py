"""Pictures on their way to a page: where a world has a board, its states as text, which the page draws itself; else
JPEGs, drawn in processes of their own where that takes long."""

import base64
import threading
from functools import cache
from typing import Any

import numpy as np
from PIL import Image

from planvec.media import painting
from planvec.media.painting import data_url, jpeg
from planvec.worlds import pool
from planvec.worlds.protocol import Painter, World, take

LONGEST = 60  # pictures of a demonstration that are sent
PAINTERS = min(4, pool.cores())  # processes for a world

Move = tuple[Any, np.ndarray]  # the steps before and after one action, as in `film`, and the action: [2, …] and [1, …]


def canvas(world: World) -> dict[str, Any]:
    """What the page needs to know before it can show anything of a world."""
    board = world.board
    if board is None:
        return {"kind": "pictures"}
    told = {name: value for name, value in board._asdict().items() if name not in ("sheet", "encode")}
    return {"kind": "cells", "sheet": data_url(Image.fromarray(board.sheet), "PNG")} | told


def film(world: World, steps: Any, actions: np.ndarray) -> list[dict[str, Any]]:
    """An episode as pictures, each with the number of actions done by then; of a long one, some of them."""
    if world.board is not None:
        return [{"time": time, "picture": picture} for time, picture in enumerate(_coded(world, steps))]
    drawn = list(world.film(steps, actions))
    chosen = np.unique(np.linspace(0, len(drawn) - 1, min(len(drawn), LONGEST)).round().astype(int))
    return [{"time": drawn[i][0], "picture": jpeg(drawn[i][1])} for i in chosen]


def still(world: World, steps: Any) -> str:
    """The picture of a single step. `steps`: [1, …]"""
    return jpeg(world.draw(take(steps, 0))) if world.board is None else _coded(world, steps)[0]


def added(world: World, move: Move) -> list[str]:
    """The pictures that one action adds to a film."""
    if world.board is not None:
        return _coded(world, take(move[0], slice(1, 2)))
    if world.painter is not None:
        return _painted(world.painter, move)
    return [jpeg(picture) for _, picture in list(world.film(*move))[1:]]


def _coded(world: World, steps: Any) -> list[str]:
    """Steps as text: a row of bytes each."""
    assert world.board is not None
    return [base64.b64encode(row.tobytes()).decode() for row in world.board.encode(steps)]


_starting = threading.Lock()  # so that painters start once, whoever asks first


def _painted(painter: Painter, move: Move) -> list[str]:
    """Drawn by processes, which start when they are first needed."""
    with _starting:
        painters = _painters(painter)
    return next(iter(painters.share([move])))


@cache
def _painters(painter: Painter) -> pool.Pool:
    where = (painter.start.__module__, painter.start.__name__)
    return pool.Pool(painting.start, *where, *painter.options, workers=PAINTERS)
