"""All forms of a convolution against XLA's own, in value and gradient."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles.convolutions import native

from planvec.agents import kernels
from planvec.agents.encoders import CONVOLUTIONS, GREY
from planvec.agents.kernels import (
    convolve_bands,
    convolve_batch_last,
    convolve_images,
    convolve_rows,
    convolve_tiled,
    convolve_tiles,
    convolve_whole,
    join,
    look_up_batch_last,
    tables,
    write_out,
)
from planvec.data.tiles import Atlas, Tiled


def batch_last(x, weight, stride, padding):
    return jnp.moveaxis(convolve_batch_last(jnp.moveaxis(x, 0, -1), weight, stride, padding), -1, 0)


def as_images(x, weight, stride, padding):
    """The channels as two images of half of them."""
    return jnp.moveaxis(convolve_images(tuple(jnp.split(GREY * x, 2, axis=-1)), weight, GREY), -1, 0)


def tiles(x, weight, stride, padding):
    return convolve_tiles(x, weight)


def bands(x, weight, stride, padding):
    return convolve_bands(x, weight)


INPUTS = ((33, 30, 6), (11, 10, 16), (6, 5, 32), (3, 3, 64))
PAPERS = [(*INPUTS[i], *CONVOLUTIONS[i]) for i in range(4)]
ODD = [(5, 7, 2, 4, 3, 3, 0), (4, 9, 3, 5, 2, 1, 0), (7, 5, 1, 3, 5, 3, 2), (3, 3, 2, 2, 3, 2, 2)]


@pytest.mark.parametrize("height, width, inputs, outputs, kernel, stride, padding", PAPERS + ODD)
def test_convolutions_are_equal_in_value_and_gradient(height, width, inputs, outputs, kernel, stride, padding):
    rng = np.random.default_rng(height)
    x = rng.normal(size=(3, height, width, inputs)).astype(np.float32)
    weight = rng.normal(size=(kernel, kernel, inputs, outputs)).astype(np.float32)
    direction = rng.normal(size=native(x, weight, stride, padding).shape).astype(np.float32)

    @functools.partial(jax.jit, static_argnums=0)
    def value_and_gradients(convolution):
        y, pull = jax.vjp(lambda x, w: convolution(x, w, stride, padding), x, weight)
        return y, *pull(direction)

    expected = value_and_gradients(native)
    of_tiles = [tiles, bands, as_images] if stride == kernel and padding == 0 else []
    for way in [convolve_rows, convolve_whole, batch_last, *of_tiles]:
        for one, other in zip(value_and_gradients(way), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-3)


@given(st.integers(1, 7), st.integers(1, 7), st.integers(1, 4), st.integers(1, 3), st.integers(0, 3), st.randoms())
@settings(max_examples=8, deadline=None)
def test_a_kernel_written_out(height, width, kernel, stride, padding, random):
    """Entry by entry: the weight through which an output sees an input, or zero; and its gradient is its transpose."""
    assume(min(height, width) + 2 * padding >= kernel)
    rng = np.random.default_rng(random.randrange(2**32))
    weight = rng.integers(-9, 9, (kernel, kernel, 2, 3)).astype(np.float32)
    rows, columns = (kernels.convolved(side, kernel, stride, padding) for side in (height, width))
    expected = np.zeros((height, width, 2, rows, columns, 3), np.float32)
    for y, x, down, along in np.ndindex(rows, columns, kernel, kernel):
        h, w = stride * y + down - padding, stride * x + along - padding
        if 0 <= h < height and 0 <= w < width:
            expected[h, w, :, y, x, :] = weight[down, along]
    matrix, pull = jax.vjp(jax.jit(lambda weight: write_out(weight, height, width, stride, padding)), weight)
    np.testing.assert_array_equal(np.asarray(matrix).reshape(expected.shape), expected)
    other = rng.integers(-9, 9, matrix.shape).astype(np.float32)
    assert np.sum(np.asarray(matrix) * other) == np.sum(weight * np.asarray(pull(other)[0]))


@pytest.mark.parametrize("pictures", [1, 2, 4])
def test_tiles_by_their_numbers(pictures):
    rng = np.random.default_rng(pictures)
    atlas = Atlas(rng.integers(0, 256, (20, 2, 2, 3), np.uint8))
    numbers = tuple(jnp.asarray(rng.integers(0, 20, (3, 4, 5)).astype(np.uint8)) for _ in range(pictures))
    weight = rng.normal(size=(2, 2, 3 * pictures, 8)).astype(np.float32)
    x = jnp.concatenate([Tiled(part, atlas).draw() for part in numbers], axis=-1) / GREY
    expected, pull = jax.vjp(lambda weight: native(x, weight, 2, 0), weight)
    direction = rng.normal(size=expected.shape).astype(np.float32)

    def joined(weight):
        parts = zip(tables(weight, pictures, atlas, GREY), numbers, strict=True)
        table, joint = functools.reduce(join, [(table, jnp.moveaxis(part, 0, -1)) for table, part in parts])
        return jnp.moveaxis(look_up_batch_last(table, joint), -1, 0)

    for way in [lambda weight: convolve_tiled(weight, numbers, atlas, GREY)] + [joined] * (pictures < 4):
        y, own_pull = jax.vjp(way, weight)
        np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(own_pull(direction)[0], pull(direction)[0], rtol=1e-3, atol=1e-2)
