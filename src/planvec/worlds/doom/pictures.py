"""Pictures for people: what the agent sees, beside a map from above."""

import numpy as np
from PIL import Image, ImageColor, ImageDraw, ImageFont

from planvec.media.pictures import FAINT, INK, PAPER
from planvec.worlds.doom.level import SCALE, WAYPOINTS, Level
from planvec.worlds.doom.motion import HEADINGS, REACH
from planvec.worlds.doom.sprites import COLOURS

SIZE = 240  # pixels of the map's side
GAP = 8  # pixels between view and map
_FINER = 2  # drawn so much larger, then made smaller: smooth edges
_BORDER = 0.4  # metres around the level
_FLOOR = "#eceae2"
_SEEN = "#dfdac4"
_TRAIL = "#7a7f7a"
_AGENT = "#2b302c"
_VIEW = np.radians(45)  # to either side
_ARROW = ((0.0, 0.65), (2.5, 0.6), (np.pi, 0.25), (-2.5, 0.6))  # an agent's outline: direction, metres


def beside_map(view: np.ndarray, plan: np.ndarray) -> np.ndarray:
    """Put a view and a map side by side."""
    gap = np.empty((len(view), GAP, 3), np.uint8)
    gap[:] = ImageColor.getrgb(PAPER)
    return np.concatenate([view, gap, plan], axis=1)


def draw_map(
    level: Level, agent: np.ndarray, markers: np.ndarray, visited: np.ndarray, trail: np.ndarray
) -> np.ndarray:
    """A level from above: one State, and where the agent has been, [step, 2]. uint8 [240, 240, 3]"""
    return _Map(level).draw(agent, markers / SCALE, visited, trail / SCALE)


class _Map:
    """A sheet to draw on in metres, north up."""

    def __init__(self, level: Level) -> None:
        self.level = level
        self.image = Image.new("RGB", (SIZE * _FINER, SIZE * _FINER), PAPER)
        self.pen = ImageDraw.Draw(self.image)
        self.metre = SIZE * _FINER / (level.side + 2 * _BORDER)

    def draw(self, agent: np.ndarray, markers: np.ndarray, visited: np.ndarray, trail: np.ndarray) -> np.ndarray:
        x, y = agent[:2] / SCALE
        angle = 2 * np.pi * agent[2] / HEADINGS
        self.pen.rectangle(self._frame((0, 0, self.level.side, self.level.side)), _FLOOR)
        self._wedge(x, y, angle)
        self._walls()
        for number in np.argsort(~visited, kind="stable"):  # those that are still there on top
            self._marker(number, self._at(*markers[number]), bool(visited[number]))
        if len(trail) > 1:
            self.pen.line([self._at(*point) for point in trail], _TRAIL, round(0.09 * self.metre), "curve")
        self._agent(x, y, angle)
        return np.asarray(self.image.reduce(_FINER))

    def _at(self, x: float, y: float) -> tuple[float, float]:
        return (_BORDER + x) * self.metre, (_BORDER + self.level.side - y) * self.metre

    def _frame(self, area: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
        """An area in metres as Pillow wants it: left, top, right and bottom on the sheet."""
        left, bottom = self._at(area[0], area[1])
        right, top = self._at(area[2], area[3])
        return left, top, right, bottom

    def _walls(self) -> None:
        for wall in self.level.walls:
            self.pen.rectangle(self._frame(wall), INK)
        whole = self._frame((0, 0, self.level.side, self.level.side))
        self.pen.rectangle(whole, outline=INK, width=round(0.16 * self.metre))

    def _wedge(self, x: float, y: float, angle: float) -> None:
        """What is in view, as far as walls let it."""
        rays = np.linspace(angle - _VIEW, angle + _VIEW, 90)
        reach = _sight(self.level, x, y, rays)
        ends = zip(x + reach * np.cos(rays), y + reach * np.sin(rays), strict=True)
        self.pen.polygon([self._at(*point) for point in ((x, y), *ends)], _SEEN)

    def _marker(self, number: int, at: tuple[float, float], visited: bool) -> None:
        """A coloured disc with its letter, and round it where it is visited from; a faint ring where it was."""
        colour = "#{:02x}{:02x}{:02x}".format(*COLOURS[number])
        size = 0.46 * self.metre * self.level.side / 12
        around = REACH / SCALE * self.metre
        font = ImageFont.load_default(size=1.3 * size)
        if visited:
            self.pen.circle(at, size, None, FAINT, round(0.06 * self.metre))
        else:
            self.pen.circle(at, around, None, colour, round(0.05 * self.metre))
            self.pen.circle(at, size, colour, INK, round(0.05 * self.metre))
        ink = FAINT if visited else "white" if number in (0, 2) else "black"
        self.pen.text(at, WAYPOINTS[number], ink, font, anchor="mm")

    def _agent(self, x: float, y: float, angle: float) -> None:
        """An arrowhead."""
        corners = [self._at(x + far * np.cos(angle + turn), y + far * np.sin(angle + turn)) for turn, far in _ARROW]
        self.pen.polygon(corners, _AGENT, PAPER, round(0.06 * self.metre))


def _sight(level: Level, x: float, y: float, angles: np.ndarray) -> np.ndarray:
    """How far one sees in each direction, in metres."""
    along = np.column_stack([np.cos(angles), np.sin(angles)])[:, None]  # [ray, 1, axis]
    along = np.where(np.abs(along) < 1e-9, 1e-9, along)
    low, high = (level.solids.reshape(-1, 2, 2) - (x, y)).transpose(1, 0, 2)  # [solid, axis] each
    entries = low / along
    exits = high / along
    enter = np.minimum(entries, exits).max(axis=2)
    leave = np.maximum(entries, exits).min(axis=2)
    return np.where((enter <= leave) & (leave > 0), enter, np.inf).min(axis=1)
