"""The crafting world for people: as a picture with little sprites, and as text.

What the agent sees is `Crafting.observe`. Sprites are data, drawn once for each size of cell into an atlas of
every picture that a cell can show; a frame is then looked up, not drawn.
"""

from collections.abc import Sequence
from functools import lru_cache
from string import ascii_lowercase, ascii_uppercase, digits
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageColor, ImageDraw, ImageFilter, ImageFont

from planvec.errors import InputError
from planvec.worlds.crafting.rules import CELLS, SIZE, Rules, State, Thing

GRID = 32  # sprites are drawn on a grid of GRID × GRID units
OVERSAMPLING = 8
SMALLEST = 12  # pixels a cell, below which nothing can be told apart


class Shape(NamedTuple):
    """A piece of a sprite, on the grid, x to the right and y down."""

    kind: str  # polygon, line (with round ends), ellipse, box (with round corners), letter
    colour: str
    points: tuple[float, ...]  # x, y, x, y …; the corners of an ellipse's or a box's frame; a letter's middle
    size: float = 0  # a line's width, a box's corners, a letter's height
    letter: str = ""


Sprite = Sequence[Shape]  # from back to front

AGENT = (
    Shape("line", "#5b6670", (16, 7, 16, 3), 1.6),
    Shape("ellipse", "#ffd166", (13.6, 0.6, 18.4, 5.4)),
    Shape("line", "#5b6670", (12.5, 27, 12.5, 30), 4),
    Shape("line", "#5b6670", (19.5, 27, 19.5, 30), 4),
    Shape("line", "#cfd6da", (10, 21, 6, 24), 3.4),
    Shape("line", "#cfd6da", (22, 21, 26.5, 15), 3.4),
    Shape("box", "#ef7d4f", (9, 17, 23, 28.5), 4),
    Shape("box", "#f9a57f", (13, 20, 19, 24), 1.5),
    Shape("box", "#f4f6f7", (6, 5.5, 26, 18.5), 5),
    Shape("box", "#27384a", (8.5, 8, 23.5, 16), 3.5),
    Shape("ellipse", "#7df0df", (11, 9.5, 14.4, 14.3)),
    Shape("ellipse", "#7df0df", (17.6, 9.5, 21, 14.3)),
)

SPRITES = {
    "nothing": (),
    "tree": (
        Shape("polygon", "#77502f", (13.4, 18, 18.6, 18, 19.6, 29, 12.4, 29)),
        Shape("polygon", "#5f3f25", (16.6, 18, 18.6, 18, 19.6, 29, 17, 29)),
        Shape("ellipse", "#2c6a3f", (3, 9, 17, 22.5)),
        Shape("ellipse", "#2c6a3f", (15, 9, 29, 22.5)),
        Shape("ellipse", "#2c6a3f", (8, 2, 24, 18)),
        Shape("ellipse", "#3f8a4e", (5, 9.5, 15, 18.5)),
        Shape("ellipse", "#3f8a4e", (16, 9.5, 26, 18.5)),
        Shape("ellipse", "#3f8a4e", (9, 3, 21.5, 14.5)),
        Shape("ellipse", "#63aa62", (10.5, 4.5, 17, 9.5)),
    ),
    "rock": (
        Shape("polygon", "#878e97", (3, 25, 5, 15, 11, 8, 20, 6, 26, 12, 29, 24, 26, 28, 7, 28)),
        Shape("polygon", "#b7bdc4", (5, 15, 11, 8, 20, 6, 17, 13.5, 9.5, 17.5)),
        Shape("polygon", "#9ba2aa", (5, 15, 9.5, 17.5, 10.5, 28, 7, 28, 3, 25)),
        Shape("polygon", "#666d77", (20, 6, 26, 12, 29, 24, 26, 28, 19, 28, 21.5, 18, 17, 13.5)),
        Shape("line", "#5a616b", (13.5, 17.5, 12.5, 21.5, 15, 24.5), 1),
    ),
    "logs": (
        Shape("line", "#6d4526", (11, 13, 21, 9), 9.5),
        Shape("line", "#85562f", (11, 11, 20, 7.4), 2.5),
        Shape("line", "#6d4526", (21, 23, 26, 20.8), 9.5),
        Shape("line", "#6d4526", (8, 23, 12, 20.5), 9.5),
        Shape("ellipse", "#5c3a1f", (2, 17.2, 14, 29.2)),
        Shape("ellipse", "#e3bd86", (3.2, 18.4, 12.8, 28)),
        Shape("ellipse", "#b98a52", (5.6, 20.8, 10.4, 25.6)),
        Shape("ellipse", "#e3bd86", (6.8, 22, 9.2, 24.4)),
        Shape("ellipse", "#5c3a1f", (15, 17.2, 27, 29.2)),
        Shape("ellipse", "#e3bd86", (16.2, 18.4, 25.8, 28)),
        Shape("ellipse", "#b98a52", (18.6, 20.8, 23.4, 25.6)),
        Shape("ellipse", "#e3bd86", (19.8, 22, 22.2, 24.4)),
        Shape("ellipse", "#5c3a1f", (6, 7, 18, 19)),
        Shape("ellipse", "#e3bd86", (7.2, 8.2, 16.8, 17.8)),
        Shape("ellipse", "#b98a52", (9.6, 10.6, 14.4, 15.4)),
        Shape("ellipse", "#e3bd86", (10.8, 11.8, 13.2, 14.2)),
    ),
    "wheat": (
        Shape("line", "#b58a2c", (14.5, 29, 13, 22, 8.8, 16), 1.7),
        Shape("line", "#b58a2c", (17.5, 29, 19, 22, 23.2, 16), 1.7),
        Shape("line", "#b58a2c", (16, 29, 16, 14), 1.7),
        Shape("line", "#d79f33", (5.5, 14.4, 8.6, 16.2, 9.8, 12.8), 2.5),
        Shape("line", "#ecc04c", (4.4, 11.3, 7.5, 13.2, 8.7, 9.8), 2.5),
        Shape("line", "#d79f33", (3.3, 8.3, 6.4, 10.2, 7.6, 6.8), 2.5),
        Shape("line", "#f6d879", (5.6, 7.9, 4.8, 5.7), 2.8),
        Shape("line", "#d79f33", (22.2, 12.8, 23.4, 16.2, 26.5, 14.4), 2.5),
        Shape("line", "#ecc04c", (23.3, 9.8, 24.5, 13.2, 27.6, 11.3), 2.5),
        Shape("line", "#d79f33", (24.4, 6.8, 25.6, 10.2, 28.7, 8.3), 2.5),
        Shape("line", "#f6d879", (26.4, 7.9, 27.2, 5.7), 2.8),
        Shape("line", "#d79f33", (13.7, 11.7, 16, 14.5, 18.3, 11.7), 2.5),
        Shape("line", "#ecc04c", (13.7, 8.5, 16, 11.3, 18.3, 8.5), 2.5),
        Shape("line", "#d79f33", (13.7, 5.3, 16, 8.1, 18.3, 5.3), 2.5),
        Shape("line", "#f6d879", (16, 5.7, 16, 3.3), 2.8),
        Shape("line", "#c65b43", (13.6, 22.4, 18.4, 22.4), 2.6),
    ),
    "bread": (
        Shape("ellipse", "#b06f38", (2.5, 10, 29.5, 27)),
        Shape("ellipse", "#d99a57", (3.5, 8.5, 28.5, 23.5)),
        Shape("line", "#f6dfb2", (8.5, 17.5, 11.5, 11.5), 2.4),
        Shape("line", "#f6dfb2", (14.5, 18, 17.5, 11), 2.4),
        Shape("line", "#f6dfb2", (20.5, 17.5, 23.5, 12), 2.4),
    ),
    "hammer": (
        Shape("line", "#8a5a33", (7.5, 27.5, 19.5, 12), 3.6),
        Shape("line", "#a9723f", (6.9, 26.9, 18, 12.4), 1.2),
        Shape("polygon", "#44659f", (28.5, 13.3, 23.5, 19.7, 10, 9.2, 15, 2.8)),
        Shape("polygon", "#7c9ccf", (28.5, 13.3, 26.8, 15.5, 13.3, 5, 15, 2.8)),
        Shape("polygon", "#2f4a7c", (29.6, 14.2, 24.6, 20.6, 22.4, 18.9, 27.4, 12.5)),
    ),
    "axe": (
        Shape("line", "#8a5a33", (9, 28, 18.5, 4.5), 3.6),
        Shape("line", "#a9723f", (8.3, 27.4, 17.6, 4.5), 1.2),
        Shape(
            "polygon",
            "#c23f3f",
            (13.8, 6, 17, 4.5, 25.5, 3, 28, 7, 28.6, 12.5, 26.5, 18.5, 19.5, 13.5, 12, 12),
        ),
        Shape(
            "polygon",
            "#e9eef2",
            (25, 2.2, 29, 6.5, 29.8, 12.8, 26.5, 19.6, 24.6, 17.4, 26.4, 12.2, 25.9, 7.6, 23, 3.4),
        ),
    ),
    "house": (
        Shape("box", "#8c5a4d", (21.5, 4, 25.5, 13), 0.5),
        Shape("box", "#efe0bf", (5.5, 13, 26.5, 28.8), 1),
        Shape("polygon", "#7a4b8c", (16, 2.5, 31, 16.4, 29, 18, 3, 18, 1, 16.4)),
        Shape("line", "#a273b3", (2.8, 16, 16, 4, 17, 4.8), 1.4),
        Shape("box", "#7b4f2e", (17, 20.5, 22.6, 28.8), 1),
        Shape("box", "#7fb9d6", (8.5, 20.3, 14, 25.5), 0.8),
    ),
}

OUTLINE = "#2d352b"
OUTLINE_WIDTH = 0.9
SHADOW = Shape("ellipse", "#20301838", (4, 25, 28, 31.5))
GROUNDS = ("#a5c585", "#9fc07f")  # light and dark squares
TUFTS: tuple[Sprite, ...] = (  # what grows on a square, one of these at random
    (),
    (Shape("polygon", "#84aa66", (5.4, 8.6, 8, 11.6, 8.8, 7, 9.6, 11.6, 12.4, 8.8, 10.4, 13.2, 7.4, 13.2)),),
    (
        Shape(
            "polygon",
            "#84aa66",
            (19.4, 20.6, 22, 23.6, 22.8, 19, 23.6, 23.6, 26.4, 20.8, 24.4, 25.2, 21.4, 25.2),
        ),
    ),
)
BAR = "#2f3a33"
INK = "#dfe7dc"
FAINT = "#75857a"
SLOT = (
    Shape("box", "#75857a", (0.5, 0.5, 31.5, 31.5), 5),
    Shape("box", "#435047", (1.6, 1.6, 30.4, 30.4), 4),
)


def _ground() -> np.ndarray:
    """Which ground each cell has: light and dark by turns, with grass strewn over it. [100]"""
    row, column = np.divmod(np.arange(CELLS), SIZE)
    tuft = np.random.default_rng(4).choice(len(TUFTS), size=CELLS, p=[0.6, 0.2, 0.2])
    return (row + column) % 2 * len(TUFTS) + tuft


GROUND = _ground()


class Spot(NamedTuple):
    """Where in its cell a sprite goes, in cells."""

    left: float
    top: float
    scale: float


WHOLE = Spot(0, 0, 1)
STANDING = Spot(-0.075, 0.15, 0.82)
UNDERFOOT = Spot(0.34, 0.34, 0.66)
IN_HAND = Spot(0.48, 0.02, 0.52)
IN_SLOT = Spot(0.06, 0.06, 0.88)
BOLD = "1"  # a terminal's codes
DIM = "2"


class Pictures(NamedTuple):
    """Every picture that can be part of a frame."""

    tiles: np.ndarray  # uint8 [ground, lying, no agent or what it holds, cell, cell, 3]
    bars: np.ndarray  # uint8 [held, cell, 10·cell, 3]


def draw(rules: Rules, state: State, cell: int = 32) -> np.ndarray:
    """The board, `cell` pixels a cell, and below it a bar with what is held. uint8 [11·cell, 10·cell, 3]"""
    cells, agent, held = (np.asarray(part)[None] for part in state)
    return draw_many(rules, State(cells, agent, held), cell)[0]


def draw_many(rules: Rules, states: State, cell: int = 32) -> np.ndarray:
    """The pictures of states that have a leading axis. uint8 [n, 11·cell, 10·cell, 3]"""
    pictures = _pictures(rules, cell)
    cells, agent, held = (np.asarray(part, np.int64) for part in states)
    above = np.where(np.arange(CELLS) == agent[:, None], held[:, None] + 1, 0)
    tiles = pictures.tiles[GROUND, cells, above].reshape(-1, SIZE, SIZE, cell, cell, 3)
    boards = tiles.transpose(0, 1, 3, 2, 4, 5).reshape(-1, SIZE * cell, SIZE * cell, 3)
    return np.concatenate([boards, pictures.bars[held]], axis=1)


def sheet(rules: Rules, cell: int = 32) -> np.ndarray:
    """What a frame is put together from, for who draws it elsewhere: rows of grounds, of things that lie alone, lie
    underfoot and are in hand, and the agent. uint8 [5·cell, n·cell, 4], RGBA"""
    sprites = [_sprite(thing, letter) for thing, letter in zip(rules.things, glyphs(rules), strict=True)]
    opaque = np.ones((cell, cell, 1), np.float32)
    grounds = [np.dstack([_ground_tile(colour, tuft, cell), opaque]) for colour in GROUNDS for tuft in TUFTS]
    places = ((WHOLE, True), (UNDERFOOT, True), (IN_HAND, False))
    things = [[_layer(sprite, spot, cell, shadow) for sprite in sprites] for spot, shadow in places]
    rows = [grounds, *things, [_layer(AGENT, STANDING, cell)]]
    empty = np.zeros((cell, cell, 4), np.float32)
    most = max(map(len, rows))
    table = np.concatenate([np.concatenate(row + [empty] * (most - len(row)), axis=1) for row in rows])
    return _to_bytes(table * np.array([1, 1, 1, 255], np.float32))


def glyphs(rules: Rules) -> tuple[str, ...]:
    """A letter for each thing: the first one of its name that no other thing has taken; "." for nothing."""
    taken = ["."]
    for name in rules.names[1:]:
        wanted = name.upper() + name.lower() + ascii_uppercase + ascii_lowercase + digits
        taken.append(next(letter for letter in wanted if letter.isalnum() and letter not in taken))
    return tuple(taken)


def text(rules: Rules, state: State, colour: bool = True) -> str:
    """A state as text: a line a row, two characters a cell, then what is held and what the letters mean.

    A cell's second character is what lies there; the first is "@" where the agent is.
    """
    cells, agent, held = (np.asarray(part).tolist() for part in state)
    inks = [_terminal_colour(thing.colour) for thing in rules.things]
    signs = [_tint(letter, ink, colour) for letter, ink in zip(glyphs(rules), inks, strict=True)]
    figure = _tint("@", BOLD, colour)
    board = [(figure if number == agent else " ") + signs[kind] for number, kind in enumerate(cells)]
    rows = ["".join(board[start : start + SIZE]) for start in range(0, CELLS, SIZE)]
    holding = "holding: " + _tint(rules.names[held], inks[held], colour)
    legend = [f"{sign} {name}" for sign, name in zip(signs[1:], rules.names[1:], strict=True)]
    return "\n".join([*rows, holding, "  ".join([f"{figure} agent", *legend])])


def _tint(string: str, code: str, colour: bool) -> str:
    return f"\x1b[{code}m{string}\x1b[0m" if colour else string


def _terminal_colour(colour: tuple[int, int, int]) -> str:
    """The code of a colour among the 256 that terminals have; dim for nothing."""
    if not any(colour):
        return DIM
    red, green, blue = (round(channel / 255 * 5) for channel in _brighten(colour))
    return f"38;5;{16 + 36 * red + 6 * green + blue}"


def _brighten(colour: tuple[int, int, int]) -> tuple[int, int, int]:
    """The same hue, light enough for people."""
    strongest = max(*colour, 1)
    red, green, blue = (70 + 160 * channel // strongest for channel in colour)
    return red, green, blue


@lru_cache(maxsize=8)
def _pictures(rules: Rules, cell: int) -> Pictures:
    if cell < SMALLEST:
        raise InputError(f"a cell of {cell} pixels is too small to draw; use at least {SMALLEST}")
    sprites = [_sprite(thing, letter) for thing, letter in zip(rules.things, glyphs(rules), strict=True)]

    def layers(spot: Spot, shadow: bool = True) -> np.ndarray:
        return np.stack([_layer(sprite, spot, cell, shadow) for sprite in sprites])

    grounds = np.stack([_ground_tile(colour, tuft, cell) for colour in GROUNDS for tuft in TUFTS])
    left_alone = _over(grounds[:, None, None], layers(WHOLE)[:, None])
    visited = _over(grounds[:, None, None], layers(UNDERFOOT)[:, None])
    visited = _over(_over(visited, _layer(AGENT, STANDING, cell)), layers(IN_HAND, shadow=False))
    return Pictures(
        tiles=_to_bytes(np.concatenate([left_alone, visited], axis=2)),
        bars=np.stack([_bar(name, sprite, cell) for name, sprite in zip(rules.names, sprites, strict=True)]),
    )


def _sprite(thing: Thing, letter: str) -> Sprite:
    """A thing's sprite; one that nobody has drawn gets a tile in its colour with its letter."""
    if thing.name in SPRITES:
        return SPRITES[thing.name]
    colour = "rgb({},{},{})".format(*_brighten(thing.colour))
    return Shape("box", colour, (4, 4, 28, 28), 6), Shape("letter", OUTLINE, (16, 16), 20, letter)


def _layer(sprite: Sprite, spot: Spot, cell: int, shadow: bool = True) -> np.ndarray:
    """A sprite with outline and shadow, alone in its cell. float32 [cell, cell, 4], alpha 0…1"""
    canvas = _paint(sprite, spot, cell)
    if not sprite:
        return _shrink(canvas, cell)
    reach = OUTLINE_WIDTH * OVERSAMPLING * cell / GRID
    blurred = canvas.getchannel("A").filter(ImageFilter.GaussianBlur(reach))
    below = _paint([SHADOW] if shadow else [], spot, cell)
    below.paste(OUTLINE, mask=blurred.point([255 * (alpha > 40) for alpha in range(256)]))
    return _shrink(Image.alpha_composite(below, canvas), cell)


def _ground_tile(colour: str, tuft: Sprite, cell: int) -> np.ndarray:
    """An empty cell. float32 [cell, cell, 3]"""
    return _over(np.array(ImageColor.getrgb(colour), np.float32), _shrink(_paint(tuft, WHOLE, cell), cell))


def _bar(name: str, sprite: Sprite, cell: int) -> np.ndarray:
    """The row below the board: the held thing in its slot. uint8 [cell, 10·cell, 3]"""
    bar = Image.new("RGB", (SIZE * cell, cell), BAR)
    pen = ImageDraw.Draw(bar)
    font = ImageFont.load_default(size=cell * 0.42)
    pen.text((0.35 * cell, cell / 2), "holding", INK, font, anchor="lm")
    pen.text((3.45 * cell, cell / 2), name, INK if sprite else FAINT, font, anchor="lm")
    picture = np.array(bar, np.float32)
    left = round(2.2 * cell)
    slot = _over(picture[:, left : left + cell], _shrink(_paint(SLOT, WHOLE, cell), cell))
    picture[:, left : left + cell] = _over(slot, _layer(sprite, IN_SLOT, cell, shadow=False))
    return _to_bytes(picture)


def _paint(sprite: Sprite, spot: Spot, cell: int) -> Image.Image:
    """The bare shapes, large."""
    side = OVERSAMPLING * cell
    unit = side * spot.scale / GRID
    canvas = Image.new("RGBA", (side, side))
    pen = ImageDraw.Draw(canvas)
    for shape in sprite:
        points = np.reshape(shape.points, (-1, 2)) * unit + np.array([spot.left, spot.top]) * side
        corners = [tuple(point) for point in points]
        size = shape.size * unit
        match shape.kind:
            case "polygon":
                pen.polygon(corners, shape.colour)
            case "ellipse":
                pen.ellipse(corners, shape.colour)
            case "box":
                pen.rounded_rectangle(corners, size, shape.colour)
            case "line":
                pen.line(corners, shape.colour, round(size))
                for corner in corners:  # round ends and joints
                    pen.circle(corner, size / 2, shape.colour)
            case "letter":
                pen.text(corners[0], shape.letter, shape.colour, ImageFont.load_default(size), anchor="mm")
    return canvas


def _shrink(canvas: Image.Image, cell: int) -> np.ndarray:
    """From the large drawing to the pixels of a cell. float32 [cell, cell, 4], alpha 0…1"""
    pixels = np.asarray(canvas.resize((cell, cell), Image.Resampling.BOX), np.float32)
    return pixels / np.array([1, 1, 1, 255], np.float32)


def _over(below: np.ndarray, above: np.ndarray) -> np.ndarray:
    """Alpha compositing: RGB below, RGBA above."""
    alpha = above[..., 3:]
    return below * (1 - alpha) + above[..., :3] * alpha


def _to_bytes(picture: np.ndarray) -> np.ndarray:
    return np.rint(picture).astype(np.uint8)
