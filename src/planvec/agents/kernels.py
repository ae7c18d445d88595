"""Convolutions as matrix products. On the smallest images they beat XLA's own, on a GPU and on a CPU.

Which form is fastest depends on the device and the batch; all of them compute the same, and a test says so:

- On an accelerator every output sees the whole image: most of the weights are then zeros, but nothing has to be
  gathered, and matrix units have nothing else to do.
- On a CPU, where every multiplication counts, a product sees the few rows or the window that its outputs need.
- Where an image is so large beside the kernel that this would multiply zeros most of the time, XLA's own is used.
- In a picture made of tiles, a first layer that sees one tile at a time is a table: what becomes of each of them.
"""

from collections.abc import Callable
from functools import lru_cache, reduce

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from planvec.data.tiles import Atlas

LARGE = 8  # times as many places as taps: from there on a convolution is XLA's own
WIDE = 64  # outputs of a matrix product; narrower ones are slow on a CPU


def own_gradient(*constants: int) -> Callable[[Callable[..., Array]], jax.custom_vjp[Array]]:
    """jax.custom_vjp, of a function some of whose arguments (by number) are constants; keeps the type of its result."""

    def decorate(function: Callable[..., Array]) -> jax.custom_vjp[Array]:
        # jax has a second class for it, behind a flag that is off.
        return jax.custom_vjp(function, nondiff_argnums=constants)  # pyright: ignore[reportReturnType]

    return decorate


def on_cpu() -> bool:
    return jax.default_backend() == "cpu"


def convolved(size: int, kernel: int, stride: int, padding: int) -> int:
    """The side of a convolution's output."""
    return (size + 2 * padding - kernel) // stride + 1


def convolve(x: Array, weight: Array, stride: int, padding: int) -> Array:
    """(N, H, W, inputs) * (k, k, inputs, outputs) → (N, H', W', outputs)"""
    k = len(weight)
    tiled = stride == k and padding == 0
    if not tiled and x.shape[1] * x.shape[2] > LARGE * k * k:
        return convolve_large(x, weight, padding) if stride == 1 else convolve_by_xla(x, weight, stride, padding)
    if on_cpu():
        return convolve_tiles(x, weight) if tiled else convolve_rows(x, weight, stride, padding)
    return convolve_bands(x, weight) if tiled else convolve_whole(x, weight, stride, padding)


# For images that are large beside the kernel.


def convolve_by_xla(x: Array, weight: Array, stride: int, padding: int) -> Array:
    dimensions = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, weight, (stride, stride), [(padding, padding)] * 2, dimension_numbers=dimensions)


@own_gradient(2)
def convolve_large(x: Array, weight: Array, padding: int) -> Array:
    """Stride 1."""
    return convolve_by_xla(x, weight, 1, padding)


def _convolve_large_pull(padding: int, saved: tuple[Array, Array], y: Array) -> tuple[Array, Array]:
    """On a CPU XLA's own gradient of the kernel is a loop over single numbers; here it is a product for each tap."""
    x, weight = saved
    if not on_cpu():
        _, pull = jax.vjp(lambda x, weight: convolve_by_xla(x, weight, 1, padding), x, weight)
        return pull(y)
    k = len(weight)
    turned = jnp.flip(weight, (0, 1)).swapaxes(2, 3)
    wide = jnp.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    seen = [wide[:, i : i + y.shape[1], j : j + y.shape[2]] for i in range(k) for j in range(k)]
    taps = [tap.reshape(-1, x.shape[-1]).T @ y.reshape(-1, y.shape[-1]) for tap in seen]
    return convolve_by_xla(y, turned, 1, k - 1 - padding), jnp.stack(taps).reshape(weight.shape)


convolve_large.defvjp(
    lambda x, weight, padding: (convolve_large(x, weight, padding), (x, weight)), _convolve_large_pull
)


# For an accelerator.


def convolve_whole(x: Array, weight: Array, stride: int, padding: int) -> Array:
    """One matrix product over whole images."""
    n, height, width, _ = x.shape
    columns = convolved(width, len(weight), stride, padding)
    flat = x.reshape(n, -1) @ write_out(weight, height, width, stride, padding)
    return flat.reshape(n, -1, columns, weight.shape[-1])


def convolve_bands(x: Array, weight: Array) -> Array:
    """Stride = kernel: a row of outputs has a band of the image for itself, so bands are images of their own."""
    n, height, width, channels = x.shape
    k = len(weight)
    bands = x[:, : height // k * k].reshape(-1, k, width, channels)
    return convolve_whole(bands, weight, k, 0).reshape(n, height // k, -1, weight.shape[-1])


@own_gradient(1, 2, 3, 4)
def write_out(weight: Array, height: int, width: int, stride: int, padding: int) -> Array:
    """A kernel as the matrix of its convolution: (height · width · inputs, places · outputs)"""
    k, _, inputs, outputs = weight.shape
    through, _ = _sight(k, height, width, stride, padding)
    taps = jnp.pad(weight.reshape(k * k, inputs, outputs), ((0, 1), (0, 0), (0, 0)))
    return taps[through].transpose(0, 2, 1, 3).reshape(height * width * inputs, -1)


def _write_out_pull(height: int, width: int, stride: int, padding: int, weight: Array, y: Array) -> tuple[Array]:
    """Each weight stands in many entries of the matrix; they are fetched and added, where a scatter would be slow."""
    k, _, inputs, outputs = weight.shape
    _, seen = _sight(k, height, width, stride, padding)
    places = seen.shape[1]
    entries = y.reshape(height * width, inputs, places, outputs).transpose(0, 2, 1, 3)
    fetched = jnp.pad(entries, ((0, 1), (0, 0), (0, 0), (0, 0)))[seen, np.arange(places)]
    return (fetched.sum(axis=1, dtype=jnp.float32).astype(weight.dtype).reshape(weight.shape),)


write_out.defvjp(lambda weight, *how: (write_out(weight, *how), weight), _write_out_pull)


@lru_cache
def _sight(kernel: int, height: int, width: int, stride: int, padding: int) -> tuple[np.ndarray, np.ndarray]:
    """Through which tap a place of the output sees a pixel [pixel, place], and which pixel it sees through a tap [tap,
    place]; where there is none, one more than the last."""
    rows, columns = (convolved(side, kernel, stride, padding) for side in (height, width))
    row, column = np.divmod(np.arange(rows * columns), columns)
    down, along = (tap[:, None] for tap in np.divmod(np.arange(kernel * kernel), kernel))
    y = stride * row + down - padding
    x = stride * column + along - padding
    inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
    seen = np.where(inside, y * width + x, height * width)
    through = np.full((height * width + 1, rows * columns), kernel * kernel)
    through[seen, np.arange(rows * columns)] = np.arange(kernel * kernel)[:, None]
    return through[:-1], seen


# For a CPU, the batch first.


def convolve_tiles(x: Array, weight: Array) -> Array:
    """Stride = kernel: every output sees its own tile of the image, so one matrix product over tiles."""
    n, height, width, channels = x.shape
    k = weight.shape[0]
    rows, columns = height // k, width // k
    tiles = x[:, : rows * k, : columns * k].reshape(n, rows, k, columns, k, channels).transpose(0, 1, 3, 2, 4, 5)
    return tiles.reshape(n, rows, columns, -1) @ weight.reshape(k * k * channels, -1)


def convolve_rows(x: Array, weight: Array, stride: int, padding: int) -> Array:
    """One matrix product over the k input rows of every output row, the kernel written out along the width.

    On images this narrow, multiplying zeros costs less than gathering patches and scattering their gradients.
    """
    n, height, width, _ = x.shape
    k, _, _, outputs = weight.shape
    rows, columns = (convolved(size, k, stride, padding) for size in (height, width))
    x = jnp.pad(x, ((0, 0), (padding, padding), (0, 0), (0, 0)))
    strips = jnp.stack([x[:, i : i + stride * (rows - 1) + 1 : stride] for i in range(k)], axis=2)
    spread = jnp.einsum("lwx,klio->kwixo", _taps(k, width, columns, stride, padding).astype(x.dtype), weight)
    flat = strips.reshape(n * rows, -1) @ spread.reshape(-1, columns * outputs)
    return flat.reshape(n, rows, columns, outputs)


def _taps(kernel: int, inputs: int, outputs: int, stride: int, padding: int) -> np.ndarray:
    """(kernel, inputs, outputs): 1 where output x sees input w through this tap, else 0."""
    tap, w, x = np.ogrid[:kernel, :inputs, :outputs]
    return (w == stride * x + tap - padding).astype(np.float32)


# For a CPU, the batch last: (H, W, inputs, N).


def convolve_batch_last(x: Array, weight: Array, stride: int, padding: int) -> Array:
    """(H, W, inputs, N) * (k, k, inputs, outputs) → (H', W', outputs, N), as matrix products for a CPU.

    The window that some outputs see is a slice of long rows here: cheap to copy, and to add gradients to. It ends at
    the border, where the kernel is cut as well: no padding is multiplied.
    """
    height, width, _, n = x.shape
    k, _, _, outputs = weight.shape
    rows, columns = (convolved(size, k, stride, padding) for size in (height, width))
    beside = max(1, min(WIDE // outputs, k // stride))  # places of one product: few, so few of its weights are zeros
    zero = jnp.zeros((), weight.dtype)

    def window(first: int, last: int, size: int) -> tuple[int, int]:
        """What these outputs see of a side."""
        return max(stride * first - padding, 0), min(stride * last - padding + k, size)

    def place(output: int, begin: int, end: int) -> tuple[int, int, int]:
        """The zeros around the kernel, or if negative its taps to cut, for this output in a window."""
        before = stride * output - padding - begin
        return before, end - begin - k - before, 0

    def row(i: int) -> Array:
        top, bottom = window(i, i, height)
        strip = x[top:bottom]
        vertical = place(i, top, bottom)

        def product(some: range) -> Array:
            left, right = window(some[0], some[-1], width)
            edges = [(vertical, place(j, left, right), (0, 0, 0), (0, 0, 0)) for j in some]
            kernels = jnp.stack([lax.pad(weight, zero, edge) for edge in edges], axis=3)
            seen = strip[:, left:right].reshape(1, -1, n)
            return _products(kernels.reshape(seen.shape[1], -1), seen).reshape(-1, outputs, n)

        return jnp.concatenate([product(range(columns)[j : j + beside]) for j in range(0, columns, beside)])

    return jnp.stack([row(i) for i in range(rows)])


def convolve_images(images: tuple[Array, ...], weight: Array, grey: float) -> Array:
    """Images (N, H, W, channels) / grey, side by side on channels, stride = kernel → (H', W', outputs, N), on a CPU."""
    k, _, _, outputs = weight.shape
    n, height, width, channels = images[0].shape
    rows, columns = height // k, width // k

    def cut(image: Array) -> Array:
        tiles = image[:, : rows * k, : columns * k].reshape(n, rows, k, columns, k * channels)
        return tiles.transpose(1, 3, 0, 2, 4).reshape(rows * columns, n, -1)

    # In a loop, so that XLA has the images drawn before it turns them; otherwise it draws every number on its own.
    tiles = lax.map(cut, jnp.stack(images))
    seen = jnp.concatenate([tile.swapaxes(1, 2) for tile in tiles], axis=1).astype(weight.dtype) / grey
    kernel = weight.reshape(k, k, len(images), channels, outputs).transpose(2, 0, 1, 3, 4)
    return _products(kernel.reshape(-1, outputs), seen).reshape(rows, columns, outputs, n)


# The products on a CPU. Value and gradients each have the one of several equal forms that XLA computes fastest there.


@jax.custom_vjp
def _products(weight: Array, x: Array) -> Array:
    """(inputs, outputs) · (batch, inputs, N) → (batch, outputs, N)"""
    turned = lax.optimization_barrier(weight.T)  # kept: XLA would put it into the product, which is slower
    return _spread(turned, x) @ x


def _spread(weight: Array, x: Array) -> Array:
    return jnp.broadcast_to(weight, (len(x), *weight.shape))


def _products_pull(saved: tuple[Array, Array], y: Array) -> tuple[Array, Array]:
    weight, x = saved
    of_weight = lax.dot_general(x, y, (((2,), (2,)), ((0,), (0,)))).sum(0)
    return of_weight, _spread(weight, x) @ y


_products.defvjp(lambda weight, x: (_products(weight, x), (weight, x)), _products_pull)


@jax.custom_vjp
def batch_first_product(weight: Array, x: Array) -> Array:
    """(inputs, outputs) · (inputs, N) → (N, outputs)"""
    return lax.dot_general(x, weight, (((0,), (0,)), ((), ())))


def _batch_first_pull(saved: tuple[Array, Array], y: Array) -> tuple[Array, Array]:
    weight, x = saved
    return x @ y, lax.dot_general(weight, y, (((1,), (1,)), ((), ())))


batch_first_product.defvjp(lambda weight, x: (batch_first_product(weight, x), (weight, x)), _batch_first_pull)


# For pictures made of tiles, each as large as the kernel.


@own_gradient(2, 3)
def convolve_tiled(weight: Array, tiles: tuple[Array, ...], atlas: Atlas, grey: float) -> Array:
    """Pictures (N, rows, columns) / grey, side by side on channels → (N, rows, columns, outputs), stride = kernel."""
    parts = zip(tables(weight, len(tiles), atlas, grey), tiles, strict=True)
    return reduce(jnp.add, [table.at[numbers].get(mode="promise_in_bounds") for table, numbers in parts])


def tables(weight: Array, pictures: int, atlas: Atlas, grey: float) -> list[Array]:
    """What each tile adds to the outputs, for each of the pictures: (tiles, outputs)"""
    flat = jnp.asarray(atlas.flat, weight.dtype) / grey
    return [flat @ part.reshape(flat.shape[1], -1) for part in jnp.split(weight, pictures, axis=2)]


def _convolve_tiled_pull(
    atlas: Atlas, grey: float, saved: tuple[Array, tuple[Array, ...]], y: Array
) -> tuple[Array, None]:
    """A product with the tiles as they look. Adding up what each tile gets, wherever it lies, would take a GPU longer,
    and give another result each time."""
    weight, tiles = saved
    k, _, channels, outputs = weight.shape
    wide = jnp.asarray(np.pad(atlas.flat, ((0, 0), (0, -atlas.flat.shape[1] % 32))))  # as matrix units like it
    seen = jnp.concatenate([wide.at[numbers.reshape(-1)].get(mode="promise_in_bounds") for numbers in tiles], axis=1)
    parts = (seen.astype(y.dtype).T @ y.reshape(-1, outputs)).reshape(len(tiles), -1, outputs)
    parts = parts[:, : atlas.flat.shape[1]].reshape(len(tiles), k, k, channels // len(tiles), outputs) / grey
    return jnp.moveaxis(parts, 0, 2).reshape(weight.shape).astype(weight.dtype), None


convolve_tiled.defvjp(
    lambda weight, tiles, *how: (convolve_tiled(weight, tiles, *how), (weight, tiles)), _convolve_tiled_pull
)


def join(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
    """Two tables and the numbers to look up in them, as one: what any two tiles add to the outputs together."""
    (table, numbers), (table_too, numbers_too) = one, other
    joint = (table[:, None] + table_too).reshape(-1, table.shape[1])
    return joint, numbers.astype(jnp.int32) * len(table_too) + numbers_too


@jax.custom_vjp
def look_up_batch_last(table: Array, numbers: Array) -> Array:
    """(tiles, outputs) at (rows, columns, N) → (rows, columns, outputs, N), for a CPU.

    In a loop over rows: all that goes into it has been computed before, and not anew for every number that comes out.
    """
    outputs = jnp.arange(table.shape[1])[:, None]
    return lax.map(lambda row: table.at[row[:, None], outputs].get(mode="promise_in_bounds"), numbers)


def _look_up_batch_last_pull(saved: tuple[Array, Array], y: Array) -> tuple[Array, None]:
    table, numbers = saved

    def add(total: Array, row: tuple[Array, Array]) -> tuple[Array, None]:
        places, pulled = row
        return total.at[places].add(pulled.swapaxes(-1, -2)), None

    return lax.scan(add, jnp.zeros_like(table), (numbers, y))[0], None


look_up_batch_last.defvjp(
    lambda table, numbers: (look_up_batch_last(table, numbers), (table, numbers)), _look_up_batch_last_pull
)
