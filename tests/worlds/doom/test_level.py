import io
import re
import struct
from collections import Counter

import numpy as np
import pytest
from PIL import Image

from planvec.worlds.doom.level import CLOSET, LEVELS, METRE, WAYPOINTS
from planvec.worlds.doom.sprites import COLOURS, SPRITES, pixels, sprite

LUMPS = ["MAPINFO", "DECORATE", "S_START", "WPTAA0", "WPTBA0", "WPTCA0", "WPTDA0", "S_END"]
LUMPS += ["MAP01", "TEXTMAP", "BEHAVIOR", "ENDMAP"]


def lumps(wad):
    magic, count, where = struct.unpack_from("<4s2i", wad)
    assert magic == b"PWAD"
    entries = [struct.unpack_from("<2i8s", wad, where + 16 * i) for i in range(count)]
    return {name.rstrip(b"\0").decode(): wad[start : start + size] for start, size, name in entries}


@pytest.mark.parametrize("level", LEVELS.values(), ids=LEVELS)
def test_the_archive(level):
    content = lumps(level.wad)
    assert list(content) == LUMPS and len(level.wad) < 20_000
    assert content["TEXTMAP"].decode() == level.textmap
    assert content["DECORATE"].count(b"actor Waypoint") == len(WAYPOINTS)
    assert content["BEHAVIOR"].startswith(b"ACS\0")


def lines_of(level):
    vertices = [tuple(map(float, pair)) for pair in re.findall(r"vertex {x=(\S+);y=(\S+);}", level.textmap)]
    ends = re.findall(r"linedef {v1=(\d+);v2=(\d+)", level.textmap)
    return [(np.array(vertices[int(a)]) / METRE, np.array(vertices[int(b)]) / METRE) for a, b in ends]


@pytest.mark.parametrize(("name", "length"), [("open", 4 * 12), ("rooms", 4 * 4 * 8 - 8 * 3 + 4 * 2 * 0.5)])
def test_walls_are_closed(name, length):
    lines = lines_of(LEVELS[name])
    corners = Counter()
    for start, end in lines:
        corners[tuple(start)] += 1
        corners[tuple(end)] -= 1
    assert not any(corners.values())
    assert sum(np.abs(end - start).sum() for start, end in lines) == length + 4 * 2  # the closet's
    outside = [line for line in lines if (np.array(line) < 0).all()]
    assert len(outside) == 4 and tuple(np.mean([start for start, _ in outside], axis=0)) == CLOSET


def test_doors_are_in_front_of_walls():
    level = LEVELS["rooms"]
    assert len(level.doors) == 8 and level.side == 16.5 and len(level.rooms) == 4
    for x, y in level.doors:
        assert any(left < x < right and bottom < y < top for left, bottom, right, top in level.rooms)


def test_markers_are_pictures_of_their_own():
    seen = set()
    for number, colour in enumerate(COLOURS):
        image = Image.open(io.BytesIO(sprite(number)))
        np.testing.assert_array_equal(np.asarray(image), pixels(number))
        assert (pixels(number) == (*colour, 255)).all(axis=2).mean() > 0.1
        assert b"grAb" in sprite(number)
        seen.add(pixels(number)[..., 3].tobytes())
    assert len(seen) == len(SPRITES)  # shapes differ, not colours alone
