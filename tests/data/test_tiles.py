import jax
import jax.numpy as jnp
import numpy as np
import pytest

from planvec.data.tiles import Atlas, Tiled


@pytest.fixture(scope="module")
def pictures():
    return np.random.default_rng(0).integers(0, 256, (7, 2, 3, 4), np.uint8)


def test_a_picture_is_drawn_tile_by_tile(pictures):
    numbers = np.random.default_rng(1).integers(0, 7, (5, 2, 3)).astype(np.uint8)
    tiled = Tiled(jnp.asarray(numbers), Atlas(pictures))
    drawn = np.asarray(tiled)
    assert drawn.shape == tiled.shape == (5, 4, 9, 4) and drawn.dtype == tiled.dtype == np.uint8
    for n, row, column in np.ndindex(5, 2, 3):
        place = drawn[n, 2 * row : 2 * row + 2, 3 * column : 3 * column + 3]
        np.testing.assert_array_equal(place, pictures[numbers[n, row, column]])
    assert np.asarray(tiled, np.float32).dtype == np.float32


def test_atlases_of_equal_pictures_are_one_constant(pictures):
    one, same, other = Atlas(pictures), Atlas(pictures.copy()), Atlas(pictures[::-1])
    assert one == same and hash(one) == hash(same) and one != other and one != "an atlas"
    traced = []

    @jax.jit
    def draw(tiled):
        traced.append(1)
        return tiled.draw()

    for atlas in (one, same):
        draw(Tiled(jnp.zeros((1, 1), jnp.uint8), atlas))
    assert len(traced) == 1


@pytest.mark.parametrize("count, dtype", [(1, np.uint8), (256, np.uint8), (257, np.uint16)])
def test_numbers_take_no_more_room_than_they_need(count, dtype):
    assert Atlas(np.zeros((count, 1, 1, 1), np.uint8)).numbers == dtype
