"""Random scenes, and free spots to set things down on.

Where the middle of a thing may come to stand is a fine grid of cells: all things are squares along the table's sides,
so each of them rules out a rectangle of cells. Corners, and the place where the lid is put down, are always kept free.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planvec.tasks import Task
from planvec.worlds.tabletop.geometry import (
    BOX_FLOOR,
    BOX_HEIGHT,
    BOX_INNER,
    BOX_WALL,
    CORNERS,
    CUBE,
    CUBES,
    LID,
    OBJECTS,
    TABLE,
)
from planvec.worlds.tabletop.skills import BOX_AT, BY_NAME, LID_AT, PLACE_IN_BOX

INSIDE_SHARE = 0.4  # of the scenes have a cube in the box
GAP = 0.025  # between two things: room for an open finger, and for a hand that is not exact
LEAST_GAP = 0.012  # where there is no room for more
WALL_GAP = 0.02  # between a thing and the table's walls; a cube in its corner has as much
PITCH = 0.005  # the side of a cell
LID_HOME = (0.0, 0.105)  # where the lid goes while the box is open
CUBE_HOME = (-0.20, 0.0)  # near here goes a cube that is in the way

HALVES = (*[CUBE] * len(CUBES), BOX_INNER + 2 * BOX_WALL, LID[0])  # half the side of each object

Square = tuple[float, float, float]  # x and y of a thing's middle, half its side
_KEPT_FOR_LID: Square = (*LID_HOME, LID[0])


@dataclass(frozen=True)
class _Grid:
    """The cells where the middle of a thing may come to stand."""

    half: float  # half the thing's side
    home: tuple[float, float]

    @cached_property
    def axes(self) -> tuple[np.ndarray, np.ndarray]:
        """x of the cells' columns, y of their rows."""
        return self._axis(TABLE[0]), self._axis(TABLE[1])

    def _axis(self, side: float) -> np.ndarray:
        """The middles of cells, along a side of the table."""
        count = int((side - self.half - WALL_GAP) / PITCH + 1e-6)
        return PITCH * np.arange(-count, count + 1)

    @cached_property
    def edge(self) -> tuple[float, float]:
        """The lowest x and y."""
        x, y = self.axes
        return float(x[0]), float(y[0])

    @cached_property
    def cells(self) -> np.ndarray:
        """x and y of every cell. [cell, 2]"""
        return np.stack(np.meshgrid(*self.axes, indexing="ij"), axis=-1).reshape(-1, 2)

    @cached_property
    def homewards(self) -> np.ndarray:
        """The cells' numbers, the nearest to home first. [cell]"""
        return np.hypot(*(self.cells - self.home).T).argsort(kind="stable")

    @cached_property
    def outside_corners(self) -> np.ndarray:
        """The cells that leave a cube in any corner its room. bool [x, y]"""
        cells = np.ones([len(axis) for axis in self.axes], bool)
        self._rule_out(cells, ((*spot, CUBE) for spot in CORNERS.values()), GAP)
        return cells

    def free(self, squares: Iterable[Square], gap: float) -> np.ndarray:
        """The cells outside the corners, and at least a gap away from all squares. bool [x, y]"""
        cells = self.outside_corners.copy()
        self._rule_out(cells, squares, gap)
        return cells

    def _rule_out(self, cells: np.ndarray, squares: Iterable[Square], gap: float) -> None:
        """Mark the cells as not free from which the thing would come nearer to a square than a gap."""
        left, bottom = self.edge
        margin = self.half + gap + PITCH / 2  # a spot may be anywhere in its cell
        for x, y, half in squares:
            reach = half + margin
            columns = slice(_first_above(x - reach - left), _first_above(x + reach - left))
            rows = slice(_first_above(y - reach - bottom), _first_above(y + reach - bottom))
            cells[columns, rows] = False


def _first_above(length: float) -> int:
    """The number of the first cell beyond a length, counted from the edge."""
    return max(0, int(length / PITCH + 1))


_CUBES = _Grid(CUBE, CUBE_HOME)
_LID = _Grid(LID[0], LID_HOME)


def random_layout(rng: np.random.Generator, task: Task = ()) -> np.ndarray:
    """A random scene in which nothing of the task is done yet. float64 [6, 3]

    The box is closed; in INSIDE_SHARE of the scenes one of the cubes is in it.
    """
    wanted = {BY_NAME[skill].cube for skill in task if BY_NAME[skill].family == PLACE_IN_BOX}
    others = [cube for cube in CUBES if cube not in wanted]
    filled = bool(others) and rng.random() < INSIDE_SHARE
    return layout_with(rng, others[rng.integers(len(others))] if filled else None)


def layout_with(rng: np.random.Generator, inside: str | None) -> np.ndarray:
    """A random scene with this cube in the closed box, or none. float64 [6, 3]"""
    positions = np.zeros((len(OBJECTS), 3))
    spot = _draw(_LID, _LID.free([_KEPT_FOR_LID], GAP), rng)
    assert spot is not None  # there is room for the box on an empty table
    x, y = spot
    positions[BOX_AT] = x, y, 0.0
    positions[LID_AT] = x, y, BOX_HEIGHT + LID[2]
    taken = [_KEPT_FOR_LID, (x, y, HALVES[BOX_AT])]
    for cube in rng.permutation(len(CUBES)).tolist():
        if CUBES[cube] == inside:
            positions[cube] = x, y, 2 * BOX_FLOOR + CUBE
            continue
        spot = _draw(_CUBES, _CUBES.free(taken, GAP), rng)
        if spot is None:  # the others stand so badly that there is no room left
            return layout_with(rng, inside)
        positions[cube] = *spot, CUBE
        taken.append((*spot, CUBE))
    return positions


def free_spot(positions: np.ndarray, thing: int, rng: np.random.Generator | None = None) -> tuple[float, float] | None:
    """Where an object (its number in geometry.OBJECTS) can be put down with room around it; None on a full table.

    A random spot; without `rng` the one nearest to the home of such things.
    """
    grid = _LID if thing == LID_AT else _CUBES
    places = positions.reshape(len(OBJECTS), 3).tolist()
    others = [(x, y, HALVES[i]) for i, (x, y, _) in enumerate(places) if i != thing]
    kept = [] if thing == LID_AT else [_KEPT_FOR_LID]
    for squares, gap in ((others + kept, GAP), (others, LEAST_GAP)):
        cells = grid.free(squares, gap)
        spot = _nearest(grid, cells) if rng is None else _draw(grid, cells, rng)
        if spot is not None:
            return spot
    return None


def _draw(grid: _Grid, cells: np.ndarray, rng: np.random.Generator) -> tuple[float, float] | None:
    """A random place in a random one of the cells that are free."""
    numbers = np.flatnonzero(cells)
    if not len(numbers):
        return None
    pick, right, up = rng.random(3).tolist()
    x, y = grid.cells[numbers[int(pick * len(numbers))]].tolist()
    return x + PITCH * (right - 0.5), y + PITCH * (up - 0.5)


def _nearest(grid: _Grid, cells: np.ndarray) -> tuple[float, float] | None:
    """The free cell that is nearest to home."""
    free = cells.ravel()[grid.homewards]
    first = int(free.argmax())
    if not free[first]:
        return None
    x, y = grid.cells[grid.homewards[first]].tolist()
    return x, y
