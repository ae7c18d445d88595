"""The markers that stand at the waypoints: a coloured sign of its own shape for each, with its letter on it."""

import struct
import zlib

import numpy as np

SPRITES = ("WPTA", "WPTB", "WPTC", "WPTD")  # as the engine names them
COLOURS = ((255, 0, 0), (103, 223, 95), (0, 0, 255), (255, 235, 0))

_WIDTH = 64  # pixels of half a map unit
_HEIGHT = 128
_SIGN = 64  # the side of the sign, a square on a post
_POST = 7  # half the post's width
_RIM = 5  # the sign's, which is dark
_DOT = 4  # of a letter
_INK = ((255, 255, 255), (0, 0, 0), (255, 255, 255), (0, 0, 0))
_LETTERS = (
    (".###.", "#...#", "#...#", "#####", "#...#", "#...#", "#...#"),
    ("####.", "#...#", "#...#", "####.", "#...#", "#...#", "####."),
    (".###.", "#...#", "#....", "#....", "#....", "#...#", ".###."),
    ("####.", "#...#", "#...#", "#...#", "#...#", "#...#", "####."),
)


def pixels(number: int) -> np.ndarray:
    """One marker. uint8 [height, width, red green blue alpha]"""
    image = np.zeros((_HEIGHT, _WIDTH, 4), np.uint8)
    colour = np.array(COLOURS[number])
    y, x = np.mgrid[:_HEIGHT, :_WIDTH]
    post = (np.abs(x - _WIDTH / 2 + 0.5) < _POST) & (y > _SIGN / 2)
    image[post] = (*(colour // 2), 255)
    depth = _depth(number)
    sign = image[:_SIGN]
    sign[depth > 0] = (*(colour // 2), 255)
    sign[depth > _RIM] = (*colour, 255)
    sign[_letter(number)] = (*_INK[number], 255)
    return image


def sprite(number: int) -> bytes:
    """One marker as a PNG; its grAb chunk says which pixel stands on the floor."""
    image = pixels(number)
    rows = b"".join(b"\0" + row.tobytes() for row in image)
    chunks = (
        (b"IHDR", struct.pack(">2I5B", _WIDTH, _HEIGHT, 8, 6, 0, 0, 0)),
        (b"grAb", struct.pack(">2i", _WIDTH // 2, _HEIGHT - 1)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _depth(number: int) -> np.ndarray:
    """How far inside the sign's shape each pixel is: a shield, a disc, a square, a diamond. [sign, sign]"""
    y, x = np.mgrid[:_SIGN, :_SIGN] - (_SIGN - 1) / 2
    half = _SIGN / 2
    shield = np.minimum(half - 2 - np.abs(x) - np.maximum(y - 6, 0) * 1.1, np.minimum(y + half, half - y))
    disc = half - np.hypot(x, y)
    square = half - 3 - np.maximum(np.abs(x), np.abs(y))
    diamond = 0.75 * (half - np.abs(x) - np.abs(y))
    return (shield, disc, square, diamond)[number]


def _letter(number: int) -> np.ndarray:
    """Where the letter is. bool [sign, sign]"""
    dots = np.array([[dot == "#" for dot in row] for row in _LETTERS[number]])
    large = dots.repeat(_DOT, axis=0).repeat(_DOT, axis=1)
    top = (_SIGN - large.shape[0]) // 2
    left = (_SIGN - large.shape[1]) // 2
    return np.pad(large, ((top, _SIGN - top - large.shape[0]), (left, _SIGN - left - large.shape[1])))
