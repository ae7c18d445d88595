"""Pictures as text that a page can show; and what worker processes begin with that draw them. Light: no jax."""

import base64
import io
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from PIL import Image

QUALITY = 85  # of a JPEG


def start(module: str, name: str, *options: str) -> Callable[[Any], list[str]]:
    """What a worker begins with: a world's painter, whose pictures become JPEGs here."""
    draw = getattr(import_module(module), name)(*options)
    return lambda move: [jpeg(picture) for picture in draw(move)]


def jpeg(picture: np.ndarray) -> str:
    return data_url(Image.fromarray(picture), "JPEG", quality=QUALITY)


def data_url(image: Image.Image, kind: str, **options: Any) -> str:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return f"data:image/{kind.lower()};base64,{base64.b64encode(buffer.getvalue()).decode()}"
