"""Pictures of simulators for many people at once: drawn in processes of their own, as they take longer to draw than an
agent takes to act."""

import base64
import io
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from PIL import Image

from planvec.worlds import pool
from planvec.worlds.doom import pool as doom
from planvec.worlds.doom.level import LEVELS
from planvec.worlds.doom.motion import State
from planvec.worlds.doom.pictures import beside_map, draw_map

QUALITY = 85
PAINTERS = min(4, pool.cores())  # processes for a world

Move = tuple[Any, np.ndarray]  # the steps before and after one action, as in `film`, and the action: [2, …] and [1, …]


_starting = threading.Lock()  # so that painters start once, whoever asks first


def paint(world: str, *options: str, move: Move) -> list[str]:
    """The pictures that an action adds to a film of a world that has painters, who start when they are first needed."""
    with _starting:
        painters = _painters(world, *options)
    return next(iter(painters.share([move])))


@cache
def _painters(world: str, *options: str) -> pool.Pool:
    return pool.Pool(STARTS[world], *options, workers=PAINTERS)


def start_doom(level: str) -> Callable[[Move], list[str]]:
    """What a worker for doom begins with: an engine. What there was before the action need not be drawn again."""
    draw = doom.start(level, "large")

    def pictures(move: Move) -> list[str]:
        states: State = move[0]
        [view], now = draw(states.take(slice(1, 2))), (part[1] for part in states)
        return [jpeg(beside_map(view, draw_map(LEVELS[level], *now, trail=states.agent[:, :2])))]

    return pictures


def start_tabletop() -> Callable[[Move], list[str]]:
    """What a worker for the tabletop begins with: the world, which simulates the action again. Things that move need no
    smooth edges, which would take twice the time to draw."""
    from planvec.worlds.tabletop.world import Tabletop

    world = Tabletop()
    world.simulator.model.vis.quality.offsamples = 0
    return lambda move: [jpeg(picture) for _, picture in list(world.film(*move))[1:]]


STARTS: dict[str, Callable[..., Callable[[Move], list[str]]]] = {"doom": start_doom, "tabletop": start_tabletop}


def jpeg(picture: np.ndarray) -> str:
    return data_url(Image.fromarray(picture), "JPEG", quality=QUALITY)


def data_url(image: Image.Image, kind: str, **options: Any) -> str:
    """A picture as text that a page can show."""
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return f"data:image/{kind.lower()};base64,{base64.b64encode(buffer.getvalue()).decode()}"
