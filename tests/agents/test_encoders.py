import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles.convolutions import native

from planvec.agents import encoders, kernels
from planvec.agents.encoders import GREY, Conv, ImageEncoder, Linear, ViewEncoder, kaiming
from planvec.data.tiles import Atlas, Tiled

SHAPE = (33, 30, 3)
ATLAS = Atlas(np.random.default_rng(0).integers(0, 256, (300, 3, 3, 3), np.uint8))


INPUTS = ((33, 30, 6), (11, 10, 16), (6, 5, 32), (3, 3, 64))
OUTPUTS = ((11, 10, 16), (6, 5, 32), (3, 3, 64), (3, 3, 64))


@pytest.fixture(scope="module")
def encoder() -> ImageEncoder:
    return ImageEncoder(SHAPE, observations=2, features=512, key=jax.random.key(0))


call = eqx.filter_jit(lambda encoder, *observations: encoder(observations))


def images(count: int, seed: int = 0) -> list[np.ndarray]:
    return list(np.random.default_rng(seed).integers(0, 256, (count, 2, *SHAPE), np.uint8))


def test_every_layer_has_the_papers_shape(encoder):
    x = jnp.zeros((2, *INPUTS[0]))
    for conv, shape in zip(encoder.convs, OUTPUTS, strict=True):
        x = eqx.filter_eval_shape(conv, x)
        assert x.shape == (2, *shape)
    weights = [conv.weight.shape for conv in encoder.convs]
    assert weights == [(3, 3, 6, 16), (5, 5, 16, 32), (3, 3, 32, 64), (3, 3, 64, 64)]
    assert [conv.bias.shape for conv in encoder.convs] == [(16,), (32,), (64,), (64,)]
    assert (encoder.linear.weight.shape, encoder.linear.bias.shape) == ((576, 512), (512,))
    assert call(encoder, *images(2)).shape == (2, 512)


@pytest.mark.parametrize("dtype, tolerance", [(jnp.float32, 1e-4), (jnp.bfloat16, 0.1)])
def test_both_orders_of_the_axes_are_one_network(encoder, monkeypatch, dtype, tolerance):
    first, last = images(2)
    encoder = jax.tree.map(lambda leaf: leaf.astype(dtype), encoder)

    def features_and_gradients(large):
        monkeypatch.setattr(encoders, "LARGE", large)

        def energy(encoder):
            features = encoder((first, last))
            return jnp.sum(features**2), features

        gradients, features = eqx.filter_jit(eqx.filter_grad(energy, has_aux=True))(encoder)
        return features, gradients

    one, other = features_and_gradients(large=1), features_and_gradients(large=1000)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert a.dtype == b.dtype
        scale = np.abs(np.asarray(b, np.float32)).max()
        np.testing.assert_allclose(np.asarray(a, np.float32), np.asarray(b, np.float32), atol=tolerance * scale)


def tiled(count: int) -> list[Tiled]:
    numbers = np.random.default_rng(1).integers(0, len(ATLAS), (count, 2, 11, 10)).astype(ATLAS.numbers)
    return [Tiled(jnp.asarray(part), ATLAS) for part in numbers]


@pytest.mark.parametrize("backend, large, count", [("cpu", 1, 2), ("cpu", 1, 4), ("cpu", 1000, 2), ("gpu", 1, 2)])
def test_pictures_of_tiles_are_seen_as_drawn(monkeypatch, large, backend, count):
    """In all ways of computing, those for an accelerator as well, which run anywhere."""
    monkeypatch.setattr(encoders, "LARGE", large)
    for module in (kernels, encoders):
        monkeypatch.setattr(module, "on_cpu", lambda: backend == "cpu")
    encoder = ImageEncoder(SHAPE, observations=count, features=8, key=jax.random.key(0))
    energy = eqx.filter_jit(eqx.filter_value_and_grad(lambda encoder, seen: jnp.sum(jnp.sin(encoder(seen)))))
    seen = tiled(count)
    drawn = [picture.draw() for picture in seen]
    one, other = (energy(encoder, tuple(pictures)) for pictures in (seen, drawn))
    for a, b in zip(*map(jax.tree.leaves, (one, other)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * np.abs(b).max())


def test_pictures_of_tiles_beside_images(encoder):
    first, last = tiled(2)
    expected = call(encoder, first.draw(), last.draw())
    np.testing.assert_allclose(call(encoder, first, last.draw()), expected, rtol=1e-4, atol=1e-4)
    other = Tiled(last.tiles, Atlas(ATLAS.pictures[::-1]))
    expected = call(encoder, first.draw(), other.draw())
    np.testing.assert_allclose(call(encoder, first, other), expected, rtol=1e-4, atol=1e-4)


def test_convolution_under_scan_grad_and_vmap():
    conv = Conv(2, 4, kernel=3, stride=2, padding=1, key=jax.random.key(0))
    x = np.random.default_rng(0).normal(size=(3, 2, 6, 5, 2)).astype(np.float32)  # three batches of two

    def energy(conv, batch):
        return jnp.sum(conv(batch) ** 2)

    def scanned(conv):
        return jax.lax.scan(lambda total, batch: (total + energy(conv, batch), None), 0.0, x)[0]

    def mapped(conv):
        return jax.vmap(energy, in_axes=(None, 0))(conv, x).sum()

    expected = jax.jit(jax.grad(energy))(conv, x.reshape(6, 6, 5, 2))
    for way in (scanned, mapped):
        np.testing.assert_allclose(jax.jit(jax.grad(way))(conv).weight, expected.weight, rtol=1e-4, atol=1e-4)


def test_weights_are_kaiming_normal_by_fan_out_and_biases_zero(encoder):
    assert abs(kaiming(jax.random.key(0), (300, 200)).std() / np.sqrt(2 / 200) - 1) < 0.02
    assert abs(encoder.convs[3].weight.std() / np.sqrt(2 / (9 * 64)) - 1) < 0.02
    for layer in (*encoder.convs, encoder.linear):
        assert not layer.bias.any()


def test_linear_by_hand():
    layer = Linear(3, 2, key=jax.random.key(0))
    x = np.ones((4, 3), np.float32)
    np.testing.assert_allclose(layer(jnp.asarray(x)), x @ np.asarray(layer.weight), rtol=1e-5)


def test_images_are_scaled_and_kept_in_order(encoder):
    first, last = images(2)
    as_floats = call(encoder, first.astype(np.float32), last.astype(np.float32))
    np.testing.assert_allclose(call(encoder, first, last), as_floats, rtol=1e-4, atol=1e-5)
    assert not np.allclose(call(encoder, first, last), call(encoder, last, first))
    x = np.concatenate([first, last], axis=-1).astype(np.float32) / GREY
    for conv in encoder.convs:
        x = jax.nn.relu(native(x, conv.weight, conv.stride, conv.padding) + conv.bias)
    expected = x.reshape(2, -1) @ encoder.linear.weight + encoder.linear.bias
    np.testing.assert_allclose(call(encoder, first, last), expected, rtol=1e-4, atol=1e-4)


def test_samples_of_a_batch_do_not_mix(encoder):
    first, last = images(2)
    flipped = call(encoder, first[::-1], last[::-1])[::-1]
    np.testing.assert_allclose(call(encoder, first, last), flipped, rtol=1e-4, atol=1e-5)


def slow_convolution(image, conv):
    """One image (H, W, inputs), one number of the output at a time."""
    k, stride, padding = len(conv.weight), conv.stride, conv.padding
    weight, image = np.asarray(conv.weight), np.pad(image, ((padding, padding), (padding, padding), (0, 0)))
    rows, columns = ((side - k) // stride + 1 for side in image.shape[:2])
    result = np.zeros((rows, columns, weight.shape[-1]))
    for i, j in np.ndindex(rows, columns):
        window = image[i * stride : i * stride + k, j * stride : j * stride + k]
        result[i, j] = np.einsum("ijk,ijko->o", window, weight) + np.asarray(conv.bias)
    return result


def test_views_against_slow_numpy():
    """Two observations of one moment: images through convolutions, waypoints through layers, then both together."""
    encoder = ViewEncoder((60, 80, 3), waypoints=4, observations=2, features=16, key=jax.random.key(0))
    shapes = [(12, 16, 16), (6, 8, 32), (3, 4, 64), (3, 4, 64)]
    rng = np.random.default_rng(0)
    seen = [
        {"image": rng.integers(0, 256, (1, 60, 80, 3), np.uint8), "waypoints": rng.normal(size=(1, 4, 3))}
        for _ in range(2)
    ]
    x = np.concatenate([one["image"][0] for one in seen], axis=-1) / 255
    for conv, shape in zip(encoder.images.convs, shapes, strict=True):
        x = np.maximum(slow_convolution(x, conv), 0)
        assert x.shape == shape
    of_images = x.reshape(-1) @ np.asarray(encoder.images.linear.weight)
    first, second = (np.asarray(layer.weight) for layer in encoder.waypoints.layers)
    places = [(one["waypoints"] / (4, 4, 1)).reshape(-1) for one in seen]
    of_waypoints = np.maximum(np.concatenate(places) @ first, 0) @ second
    both = np.maximum(np.concatenate([of_images, of_waypoints]), 0)
    expected = both @ np.asarray(encoder.linear.weight)
    np.testing.assert_allclose(call(encoder, *seen)[0], expected, rtol=1e-3, atol=1e-3)


def test_wrong_shapes_are_named(encoder):
    with pytest.raises(ValueError, match=r"images of shape \(33, 30, 3\); got \(30, 33, 3\)"):
        encoder((np.zeros((1, 30, 33, 3), np.uint8),) * 2)
