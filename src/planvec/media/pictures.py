"""Pictures of any world for people: GIFs, PNGs, a panel of text beside a frame, many images on one sheet.

An image is a uint8 array [height, width, 3].
"""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image, ImageDraw, ImageFont

from planvec.errors import InputError
from planvec.io import files

PAPER = "#fbfaf6"
INK = "#2b302c"
FAINT = "#8d948d"
GREEN = "#3d8b4f"
FASTEST = 50  # frames a second that viewers still play as told
COLOURS = 255  # of a GIF's 256: one is left to say "as in the frame before"
SAMPLED = 8  # frames that a GIF's palette is made from
LARGEST = 17  # pixels of a caption's letters …
SMALLEST = 8  # … where it has to be small to fit
LEADING = 1.6  # from line to line, in letters
MARGIN = 8  # pixels around each picture of a contact sheet
LABEL = 20  # pixels for what is written above it


def save_png(path: Path | str, image: np.ndarray) -> None:
    """Write an image; whatever happens, the file is never half there."""
    _save(path, Image.fromarray(image), "PNG", optimize=True)


def save_gif(path: Path | str, frames: Sequence[np.ndarray], fps: float = 8, hold_last: float = 1.5) -> None:
    """Write an endless animation that rests on its last frame for `hold_last` seconds.

    All frames share one palette: the file stays small, and what does not change does not flicker.
    """
    if len({np.shape(frame) for frame in frames}) != 1:
        raise InputError("a GIF needs frames, all of the same size")
    if not 0 < fps <= FASTEST:
        raise InputError(f"a GIF plays up to {FASTEST} frames a second, not {fps}")
    palette = _palette(frames)
    first, *others = [Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    ends = np.append(np.arange(1, len(frames)), len(frames) - 1 + hold_last * fps) / fps
    durations = 10 * np.diff(np.rint(100 * ends), prepend=0)  # a GIF counts in hundredths of a second
    _save(path, first, "GIF", append_images=others, save_all=True, duration=durations.tolist(), loop=0)


def save_figure(path: Path | str, figure: Figure) -> None:
    """Write a chart."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    files.write(path, picture.getvalue())


def caption(frame: np.ndarray, lines: Sequence[str], width: int = 200) -> np.ndarray:
    """Put lines of text to the right of a frame, on a panel of the given width.

    "# text" is a title, "[x] text" and "[ ] text" are something done and something to do.
    """
    height = frame.shape[0]
    size = min(LARGEST, max(SMALLEST, height / (LEADING * len(lines) + 1)))
    return np.concatenate([frame, _panel(lines, width, height, size)], axis=1)


def caption_below(frame: np.ndarray, lines: Sequence[str], rows: int) -> np.ndarray:
    """Put lines of text below a frame, with room for so many rows of them."""
    height = round(LARGEST * (LEADING * rows + 1))
    return np.concatenate([frame, _panel(lines, frame.shape[1], height, LARGEST)])


def _panel(lines: Sequence[str], width: int, height: int, size: float) -> np.ndarray:
    panel = Image.new("RGB", (width, height), PAPER)
    for number, line in enumerate(lines):
        _write_line(panel, line, middle=size * (LEADING * number + 1.5), size=size)
    return np.asarray(panel)


def contact_sheet(images: Sequence[np.ndarray], labels: Sequence[str], columns: int) -> np.ndarray:
    """Many images on one sheet, row by row, each with its label below."""
    if not len(images) == len(labels) > 0 or columns < 1:
        raise InputError(
            "a contact sheet needs images, a label for each, and at least one column; "
            f"got {len(images)} images, {len(labels)} labels and {columns} columns"
        )
    height = max(image.shape[0] for image in images) + LABEL + MARGIN
    width = max(image.shape[1] for image in images) + MARGIN
    columns = min(columns, len(images))
    rows = -(-len(images) // columns)
    sheet = Image.new("RGB", (columns * width + MARGIN, rows * height + MARGIN), PAPER)
    pen = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(size=0.6 * LABEL)
    for number, (image, label) in enumerate(zip(images, labels, strict=True)):
        row, column = divmod(number, columns)
        left = column * width + MARGIN
        top = row * height + MARGIN
        sheet.paste(Image.fromarray(image), (left, top))
        middle = top + image.shape[0] + LABEL / 2
        pen.text((left, middle), _cut(label, font, width - MARGIN), INK, font, anchor="lm")
    return np.asarray(sheet)


def _palette(frames: Sequence[np.ndarray]) -> Image.Image:
    """The colours that serve all frames best, as Pillow wants them: in an image."""
    sample = [frames[i] for i in np.linspace(0, len(frames) - 1, min(SAMPLED, len(frames))).astype(int)]
    return Image.fromarray(np.concatenate(sample)).quantize(COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=1)


def _write_line(panel: Image.Image, line: str, middle: float, size: float) -> None:
    """One line of a caption, around the given height."""
    pen = ImageDraw.Draw(panel)
    left = size
    ink = INK
    if line.startswith("# "):
        line = line[2:]
        size = 1.2 * size
    elif line.startswith(("[x] ", "[ ] ")):
        done = line[1] == "x"
        line = line[4:]
        _write_box(pen, left, middle, size, done)
        left = 2.1 * size
        ink = INK if done else FAINT
    font = ImageFont.load_default(size=size)
    pen.text((left, middle), _cut(line, font, panel.width - left - size / 2), ink, font, anchor="lm")


def _write_box(pen: ImageDraw.ImageDraw, left: float, middle: float, size: float, done: bool) -> None:
    """A little box, with a tick where something is done."""
    half = 0.36 * size
    x = left + half
    stroke = max(1, round(size / 8))
    box = (x - half, middle - half, x + half, middle + half)
    if not done:
        pen.rounded_rectangle(box, half / 2, outline=FAINT, width=1)
        return
    pen.rounded_rectangle(box, half / 2, fill=GREEN)
    tick = [(x - half / 2, middle), (x - half / 8, middle + half / 2), (x + half / 1.8, middle - half / 2)]
    pen.line(tick, PAPER, stroke, joint="curve")


def _cut(text: str, font: ImageFont.FreeTypeFont | ImageFont.ImageFont, width: float) -> str:
    """The text, or as much of its beginning as there is room for."""
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(text + "…") > width:
        text = text[:-1]
    return text.rstrip() + "…"


def _save(path: Path | str, image: Image.Image, kind: str, **options: object) -> None:
    """Encode in memory, then write in one go."""
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    files.write(path, buffer.getvalue())
