"""The levels: an open room, and four rooms with doorways. Each is walls in metres, and a WAD for the engine.

The WAD is written from plain Python: a text map, our own markers, and two scripts that put things where they belong.
The engine builds whatever else it needs itself; textures for walls and floors are Freedoom's, which comes with ViZDoom.
"""

import struct
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planvec.worlds.doom.sprites import SPRITES, sprite

METRE = 32  # map units: Doom's convention
FIXED = 1 << 16  # Doom's numbers, per map unit
SCALE = METRE * FIXED  # Doom's numbers, per metre: positions are whole numbers of these

WAYPOINTS = ("A", "B", "C", "D")
CLOSET = (-4.0, -4.0)  # metres; where markers are that nobody is to see: the middle of a closed room of its own
PLACE_MARKER = 1  # a script: (marker, x, y), with markers from 1
PLACE_AGENT = 2  # a script: (x, y, angle)

Rectangle = tuple[float, float, float, float]  # metres: x0, y0, x1, y1
Point = tuple[float, float]

_OUTSIDE = 2.0  # metres of wall around everything: more than anybody walks at once
_FACES = {(1, 0): "STONE2", (-1, 0): "BRICK7", (0, 1): "BROWN1", (0, -1): "GRAY7"}  # by where a wall looks: a compass
_DECORATE = """
actor Walker : DoomPlayer // walks without momentum, so that the engine itself moves as motion.py says
{
    Friction 0.0
    Player.ForwardMove 655.36, 655.36
}
"""
_MARKER = """
actor Waypoint%s %d
{
    Scale 0.5
    +NOGRAVITY
    +NOBLOCKMAP
    States
    {
    Spawn:
        %s A -1 bright
        stop
    }
}
"""
_MAPINFO = """
gameinfo { playerclasses = "Walker" }
map MAP01 "planvec" { nojump nocrouch }
"""
_FIRST_MARKER = 30001  # what the map calls the kinds of markers
_PLAYER_START = 1
_ALWAYS = "skill1=true;skill2=true;skill3=true;skill4=true;skill5=true;single=true;"

# ACS, as words of its machine: 28 n pushes the script's argument n and 3 n the number n, 283 is SetActorPosition(tid,
# x, y, z, fog), 276 SetActorAngle(tid, angle), 54 drops a result, 1 ends the script. The tid of the player is 0.
_SCRIPTS = {
    PLACE_MARKER: [28, 0, 28, 1, 28, 2, 3, 0, 3, 0, 283, 54, 1],
    PLACE_AGENT: [3, 0, 28, 0, 28, 1, 3, 0, 3, 0, 283, 54, 3, 0, 28, 2, 276, 1],
}


@dataclass(frozen=True)
class Level:
    """A square from (0, 0) with walls in it."""

    name: str
    side: float  # metres
    rooms: tuple[Rectangle, ...]
    walls: tuple[Rectangle, ...] = ()
    doors: tuple[Point, ...] = ()  # points in front of doorways, from which all of a room is seen

    @cached_property
    def solids(self) -> np.ndarray:
        """All that nobody can walk through, the world around included. Metres, [solid, 4]"""
        low = -_OUTSIDE
        high = self.side + _OUTSIDE
        around = ((low, low, 0, high), (self.side, low, high, high), (low, low, high, 0), (low, self.side, high, high))
        return np.array([*around, *self.walls], np.float64)

    @cached_property
    def wad(self) -> bytes:
        """All that the engine needs to know."""
        markers = [_MARKER % (name, _FIRST_MARKER + i, SPRITES[i]) for i, name in enumerate(WAYPOINTS)]
        lumps = {
            "MAPINFO": _MAPINFO.encode(),
            "DECORATE": (_DECORATE + "".join(markers)).encode(),
            "S_START": b"",
            **{f"{name}A0": sprite(i) for i, name in enumerate(SPRITES)},
            "S_END": b"",
            "MAP01": b"",
            "TEXTMAP": self.textmap.encode(),
            "BEHAVIOR": _behavior(),
            "ENDMAP": b"",
        }
        return _wad(lumps)

    @cached_property
    def textmap(self) -> str:
        """The map as the engine reads it."""
        edges = [(*edge, 0) for edge in _edges((0, 0, self.side, self.side), self.walls)]
        x, y = CLOSET
        edges += [(*edge, 1) for edge in _edges((x - 1, y - 1, x + 1, y + 1), ())]
        lines = ['namespace = "zdoom";']
        for number, (start, end, face, sector) in enumerate(edges):
            lines += [_vertex(start), _vertex(end)]
            lines.append(f"linedef {{v1={2 * number};v2={2 * number + 1};sidefront={number};blocking=true;}}")
            lines.append(f'sidedef {{sector={sector};texturemiddle="{_FACES[face]}";}}')
        floor = 'heightceiling=128;texturefloor="FLOOR4_8";textureceiling="CEIL3_5";lightlevel=208;'
        lines += [f"sector {{{floor}}}"] * 2
        lines.append(_thing(self.side / 4, self.side / 4, _PLAYER_START, 0))
        lines += [_thing(*CLOSET, _FIRST_MARKER + i, i + 1) for i in range(len(WAYPOINTS))]
        return "\n".join(lines)


def _four_rooms(room: float, wall: float, door: float, before: float) -> Level:
    """2×2 rooms with a doorway between any two neighbours; so far `before` it, on both sides, is a point to walk to."""
    side = 2 * room + wall
    near = room / 2
    far = 3 * room / 2 + wall
    corners = [(x, y) for x in (0, room + wall) for y in (0, room + wall)]
    rooms = tuple((x, y, x + room, y + room) for x, y in corners)
    gaps = (0, near - door / 2, near + door / 2, far - door / 2, far + door / 2, side)
    pieces = list(zip(gaps[::2], gaps[1::2], strict=True))
    upright = [(room, low, room + wall, high) for low, high in pieces]
    lying = [(low, room, high, room + wall) for low, high in pieces]
    beside = (room - before, room + wall + before)
    doors = [point for along in (near, far) for across in beside for point in ((across, along), (along, across))]
    return Level("rooms", side, rooms, (*upright, *lying), tuple(doors))


_OPEN = Level("open", 12.0, rooms=((0, 0, 12.0, 12.0),))
_ROOMS = _four_rooms(room=8.0, wall=0.5, door=3.0, before=0.6)
LEVELS = {level.name: level for level in (_OPEN, _ROOMS)}


def _edges(bounds: Rectangle, walls: tuple[Rectangle, ...]) -> list[tuple[Point, Point, tuple[int, int]]]:
    """Where free floor ends, as lines with the floor on their right, and where the wall there looks."""
    xs = sorted({x for rectangle in (bounds, *walls) for x in rectangle[::2]})
    ys = sorted({y for rectangle in (bounds, *walls) for y in rectangle[1::2]})
    cells = [(i, j) for i in range(len(xs) - 1) for j in range(len(ys) - 1)]
    free = {(i, j) for i, j in cells if not any(_covers(wall, xs[i], ys[j]) for wall in walls)}
    edges = []
    for i, j in sorted(free):
        left = xs[i]
        right = xs[i + 1]
        bottom = ys[j]
        top = ys[j + 1]
        sides = {
            (1, 0): ((left, bottom), (left, top)),
            (0, -1): ((left, top), (right, top)),
            (-1, 0): ((right, top), (right, bottom)),
            (0, 1): ((right, bottom), (left, bottom)),
        }
        edges += [(*side, face) for face, side in sides.items() if (i - face[0], j - face[1]) not in free]
    return edges


def _covers(wall: Rectangle, x: float, y: float) -> bool:
    """Whether the wall covers the cell that begins there."""
    return wall[0] <= x < wall[2] and wall[1] <= y < wall[3]


def _vertex(point: Point) -> str:
    return f"vertex {{x={METRE * point[0]};y={METRE * point[1]};}}"


def _thing(x: float, y: float, kind: int, tid: int) -> str:
    return f"thing {{id={tid};x={METRE * x};y={METRE * y};type={kind};{_ALWAYS}}}"


def _behavior() -> bytes:
    """The scripts as the engine's ACS machine reads them: code, then a table of where each script begins."""
    code = b""
    table = b""
    for number, words in _SCRIPTS.items():
        table += struct.pack("<3i", number, 8 + len(code), 3)
        code += struct.pack(f"<{len(words)}i", *words)
    texts = struct.pack("<i", 0)
    return b"ACS\0" + struct.pack("<i", 8 + len(code)) + code + struct.pack("<i", len(_SCRIPTS)) + table + texts


def _wad(lumps: dict[str, bytes]) -> bytes:
    """An archive: a header, the contents, a directory."""
    content = b""
    directory = b""
    for name, lump in lumps.items():
        directory += struct.pack("<2i8s", 12 + len(content), len(lump), name.encode())
        content += lump
    return struct.pack("<4s2i", b"PWAD", len(lumps), 12 + len(content)) + content + directory
