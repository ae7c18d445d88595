import sys
from pathlib import Path

import numpy as np
import pytest
from worlds.processes import pids

from planvec.errors import InputError
from planvec.worlds.tabletop.layouts import random_layout
from planvec.worlds.tabletop.pool import Pool
from planvec.worlds.tabletop.simulator import Simulator, positions

COUNT = 40


@pytest.fixture(scope="module")
def batch():
    """Scenes, and for each an action with its state before and after."""
    rng = np.random.default_rng(0)
    places = np.stack([random_layout(rng) for _ in range(COUNT)])
    actions = np.concatenate(
        [places[np.arange(COUNT), rng.integers(6, size=COUNT), :2], rng.normal(0, 0.1, (COUNT, 2))], 1
    )
    with Pool(1) as pool:
        before = pool.place(places)
        after, sane = pool.step(before, actions)
    assert sane.all() and (positions(before) != positions(after)).any(axis=1).sum() > COUNT / 2
    return places, actions, before, after


@pytest.fixture(scope="module")
def pair():
    with Pool(2) as pool:
        yield pool


@pytest.mark.parametrize("workers", [2, 3])
def test_any_number_of_workers_gives_the_same(batch, workers):
    places, actions, before, after = batch
    with Pool(workers) as pool:
        np.testing.assert_array_equal(pool.place(places), before)
        states, sane = pool.step(before, actions)
    np.testing.assert_array_equal(states, after)
    assert sane.all() and sane.dtype == bool


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_small_batches(batch, pair, count):
    places, actions, before, after = (part[:count] for part in batch)
    assert pair.place(places).shape == before.shape
    states, sane = pair.step(before, actions)
    np.testing.assert_array_equal(states, after)
    assert sane.shape == (count,)


@pytest.mark.parametrize("workers", [1, 2])
def test_physics_that_diverges_keeps_its_state(batch, workers):
    _, actions, before, after = (part[:3] for part in batch)
    wild = before.copy()
    wild[1, 49:52] = 1e9  # the velocity of the first cube
    with Pool(workers) as pool:
        states, sane = pool.step(wild, actions)
    np.testing.assert_array_equal(sane, [True, False, True])
    np.testing.assert_array_equal(states[1], wild[1])
    np.testing.assert_array_equal(states[::2], after[::2])


def test_a_simulator_that_breaks_down_keeps_its_state(batch, monkeypatch):
    _, actions, before, _ = batch

    def broken(*_):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(Simulator, "pick_and_place", broken)
    with Pool(1) as pool:
        states, sane = pool.step(before, actions)
    assert not sane.any()
    np.testing.assert_array_equal(states, before)


def test_bad_input_is_named(batch, pair):
    places, actions, before, _ = batch
    with pytest.raises(InputError, match=r"positions: shape \(n, 6, 3\)"):
        pair.place(places[:, :5])
    with pytest.raises(InputError, match="actions"):
        pair.step(before, actions[:-1])
    with pytest.raises(InputError, match="finite"):
        pair.step(before, np.where(np.arange(4) == 2, np.nan, actions))
    with pytest.raises(InputError, match="states"):
        pair.step(before[:, :-1], actions)
    with pytest.raises(InputError, match="on the table"):  # found by a worker
        pair.place(places + 1.0)
    with pytest.raises(InputError, match="at least one"):
        Pool(0)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_workers_run_without_jax(batch, pair):
    pair.place(batch[0])
    for pid in pids(pair):
        assert "libmujoco" in (maps := Path(f"/proc/{pid}/maps").read_text())
        assert "jaxlib" not in maps
