"""Pictures made of tiles: which tile lies where. They are drawn for those alone who want to see pixels."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import DTypeLike


class Atlas:
    """What each tile looks like. Equal where the pictures are, so that it can be a constant of a compiled program."""

    def __init__(self, pictures: np.ndarray) -> None:
        """`pictures`: uint8 [tile, height, width, channels]."""
        self.pictures = pictures
        self.numbers = np.min_scalar_type(len(pictures) - 1)  # the smallest dtype that holds the number of any tile
        self._key = (pictures.shape, pictures.tobytes())

    def __len__(self) -> int:
        return len(self.pictures)

    @property
    def flat(self) -> np.ndarray:
        """[tile, height · width · channels]"""
        return self.pictures.reshape(len(self), -1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Atlas) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class Tiled(eqx.Module):
    """A picture, or a batch of them, as the numbers of its tiles. `np.asarray` draws it."""

    tiles: Array  # whole numbers […, rows, columns]
    atlas: Atlas = eqx.field(static=True)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the picture in pixels."""
        *batch, rows, columns = self.tiles.shape
        _, height, width, channels = self.atlas.pictures.shape
        return *batch, rows * height, columns * width, channels

    @property
    def dtype(self) -> np.dtype:
        return self.atlas.pictures.dtype

    def draw(self) -> Array:
        """uint8 […, height, width, channels]"""
        pictures = self.atlas.pictures
        lines = [jnp.asarray(pictures[:, i].reshape(len(pictures), -1)) for i in range(pictures.shape[1])]
        return jnp.stack([line[self.tiles] for line in lines], axis=-3).reshape(self.shape)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.draw(), dtype)


def draw_tiles(tree: Any) -> Any:
    """A tree in which pictures made of tiles are drawn."""
    return jax.tree.map(
        lambda leaf: leaf.draw() if isinstance(leaf, Tiled) else leaf,
        tree,
        is_leaf=lambda leaf: isinstance(leaf, Tiled),
    )
