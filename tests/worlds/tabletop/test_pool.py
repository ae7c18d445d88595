import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from planvec.errors import InputError
from planvec.worlds.tabletop import pool as pools
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


def pids(pool):
    return [worker.process.pid for worker in pool._processes]


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def gone(numbers, seconds=10.0):
    """Whether processes end within a time."""
    until = time.monotonic() + seconds
    while any(map(is_alive, numbers)) and time.monotonic() < until:
        time.sleep(0.05)
    return not any(map(is_alive, numbers))


linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


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


def test_dead_workers_are_replaced(batch, pair):
    _, actions, before, after = batch
    old = pids(pair)
    for pid in old:
        os.kill(pid, signal.SIGKILL)
    np.testing.assert_array_equal(pair.step(before, actions)[0], after)
    assert not set(old) & set(pids(pair))


def test_a_worker_killed_at_work_is_replaced_and_its_work_done(batch, pair):
    _, actions, before, after = batch
    pair.place(batch[0][:2])  # all workers have started
    old = pids(pair)
    killer = threading.Timer(0.05, os.kill, (old[0], signal.SIGKILL))
    killer.start()
    states, sane = pair.step(np.tile(before, (5, 1)), np.tile(actions, (5, 1)))
    killer.join()
    np.testing.assert_array_equal(states, np.tile(after, (5, 1)))
    assert sane.all() and pids(pair)[0] != old[0] and pids(pair)[1] == old[1]


def test_workers_that_always_die_are_an_error(batch, monkeypatch):
    monkeypatch.setattr(pools, "_COMMAND", (sys.executable, "-c", ""))
    with Pool(2) as pool, pytest.raises(RuntimeError, match="died"):
        pool.place(batch[0])


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


@linux
def test_a_closed_pool_leaves_nothing_behind(batch):
    before = set(Path("/dev/shm").iterdir()) if Path("/dev/shm").exists() else set()
    pool = Pool(2)
    pool.place(batch[0][:4])
    workers = pids(pool)
    assert all(map(is_alive, workers))
    pool.close()
    pool.close()
    assert gone(workers)
    assert not before or set(Path("/dev/shm").iterdir()) <= before
    with pytest.raises(InputError, match="closed"):
        pool.place(batch[0])


@linux
def test_closing_while_at_work_does_not_hang(batch):
    _, actions, before, _ = batch
    pool = Pool(2)
    workers = pids(pool)
    threading.Timer(0.3, pool.close).start()
    with pytest.raises((InputError, RuntimeError)):
        pool.step(np.tile(before, (100, 1)), np.tile(actions, (100, 1)))
    assert gone(workers)


@linux
def test_workers_run_without_jax(batch, pair):
    pair.place(batch[0])
    for pid in pids(pair):
        assert "libmujoco" in (maps := Path(f"/proc/{pid}/maps").read_text())
        assert "jaxlib" not in maps


ORPHANS = """
import os, signal, sys
from planvec.worlds.tabletop.pool import Pool
pool = Pool(2)
print(*(worker.process.pid for worker in pool._processes), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@linux
def test_workers_end_when_their_parent_is_killed():
    parent = subprocess.run([sys.executable, "-c", ORPHANS], stdout=subprocess.PIPE, text=True)
    workers = [int(pid) for pid in parent.stdout.split()]
    assert parent.returncode == -signal.SIGKILL and len(workers) == 2
    assert gone(workers)
