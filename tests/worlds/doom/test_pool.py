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
from planvec.worlds.doom import pool as pools
from planvec.worlds.doom.level import SCALE
from planvec.worlds.doom.motion import HEADINGS, State
from planvec.worlds.doom.pool import Pool

COUNT = 90
SHARED = Path("/dev/shm")


@pytest.fixture(scope="module")
def states():
    rng = np.random.default_rng(0)
    agents = np.column_stack([rng.integers(SCALE, 11 * SCALE, (COUNT, 2)), rng.integers(HEADINGS, size=COUNT)])
    markers = rng.integers(SCALE, 11 * SCALE, (COUNT, 4, 2))
    return State(agents.astype(np.int32), markers.astype(np.int32), rng.random((COUNT, 4)) < 0.3)


@pytest.fixture(scope="module")
def pair():
    with Pool("open", 2) as pool:
        yield pool


@pytest.fixture(scope="module")
def pictures(states, pair):
    return pair.draw(states)


def pids(pool):
    return [worker.process.pid for worker in pool._processes]


def engines(pool):
    """Whichever of a worker's threads started them."""
    found = []
    for pid in pids(pool):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def comes_true(what, seconds=10.0):
    until = time.monotonic() + seconds
    while not what() and time.monotonic() < until:
        time.sleep(0.05)
    return what()


def gone(numbers):
    return comes_true(lambda: not any(map(is_alive, numbers)))


def nothing_new(before):
    """Engines of other tests that are just starting have shared memory with a name, but not for long."""
    return comes_true(lambda: set(SHARED.iterdir()) <= before)


@pytest.mark.parametrize("workers", [1, 3])
def test_any_number_of_workers_gives_the_same(states, pictures, workers):
    told = []
    with Pool("open", workers) as pool:
        np.testing.assert_array_equal(pool.draw(states, told.append), pictures)
    assert told == sorted(told) and told[-1] == COUNT


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_small_batches(states, pictures, pair, count):
    drawn = pair.draw(states.take(slice(count)))
    assert drawn.shape == (count, 60, 80, 3) and drawn.dtype == np.uint8
    np.testing.assert_array_equal(drawn, pictures[:count])


def test_large_pictures_show_the_same(states, pictures):
    with Pool("open", 1, large=True) as pool:
        large = pool.draw(states)
    assert large.shape == (COUNT, 240, 320, 3)
    small = large.reshape(COUNT, 60, 4, 80, 4, 3).mean(axis=(2, 4))
    assert np.abs(small - pictures).mean() < 8


@pytest.mark.parametrize("who", [pids, engines])
def test_the_dead_are_replaced(states, pictures, pair, who):
    old = who(pair)
    assert len(old) == 2
    for pid in old:
        os.kill(pid, signal.SIGKILL)
    np.testing.assert_array_equal(pair.draw(states), pictures)
    assert not set(old) & set(who(pair)) and gone(old)


def test_a_worker_killed_at_work_is_replaced_and_its_work_done(states, pictures, pair):
    many = State(*(np.concatenate([part] * 30) for part in states))
    old = pids(pair)
    killer = threading.Timer(0.1, os.kill, (old[0], signal.SIGKILL))
    killer.start()
    drawn = pair.draw(many)
    killer.join()
    np.testing.assert_array_equal(drawn, np.concatenate([pictures] * 30))
    assert pids(pair)[0] != old[0] and pids(pair)[1] == old[1]


def test_workers_that_always_die_are_an_error(states, monkeypatch):
    monkeypatch.setattr(pools, "_WORKER", (sys.executable, "-c", ""))
    with Pool("open", 2) as pool, pytest.raises(RuntimeError, match="died"):
        pool.draw(states)


def test_bad_input():
    with pytest.raises(InputError, match="at least one"):
        Pool("open", 0)


def test_workers_run_without_jax(states, pair):
    pair.draw(states)
    for pid in pids(pair):
        assert "vizdoom" in (maps := Path(f"/proc/{pid}/maps").read_text())
        assert "jaxlib" not in maps


def test_a_closed_pool_leaves_nothing_behind(states, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = set(SHARED.iterdir())
    pool = Pool("open", 2)
    pool.draw(states)
    processes = pids(pool) + engines(pool)
    assert len(processes) == 4 and all(map(is_alive, processes)) and not list(tmp_path.iterdir())
    pool.close()
    pool.close()
    assert gone(processes) and nothing_new(before)
    with pytest.raises(InputError, match="closed"):
        pool.draw(states)


def test_closing_while_at_work_does_not_hang(states):
    pool = Pool("open", 2)
    pool.draw(states)
    processes = pids(pool) + engines(pool)
    closer = threading.Timer(0.1, pool.close)
    closer.start()
    with pytest.raises(InputError, match="closed"):
        pool.draw(State(*(np.concatenate([part] * 100) for part in states)))
    closer.join()
    assert gone(processes)


def test_workers_end_when_told_to(states):
    pool = Pool("open", 1)
    pool.draw(states)
    processes = pids(pool) + engines(pool)
    os.kill(processes[0], signal.SIGTERM)
    assert comes_true(lambda: pool._processes[0].process.poll() is not None) and gone(processes)
    pool.close()


ORPHANS = """
import os, signal, sys
import numpy as np
from planvec.worlds.doom.motion import State
from planvec.worlds.doom.pool import Pool
pool = Pool("open", 2)
if sys.argv[1] == "at work":
    pool.draw(State(np.array([[2**23, 2**23, 0]] * 9, np.int32), np.zeros((9, 4, 2), np.int32), np.zeros((9, 4), bool)))
print(*(worker.process.pid for worker in pool._processes), flush=True)
sys.stdin.readline()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("when", ["starting", "at work"])
def test_nothing_is_left_of_a_parent_that_is_killed(tmp_path, when):
    """No process, no shared memory, no file."""
    before, home, temporary = set(SHARED.iterdir()), tmp_path / "home", tmp_path / "temporary"
    home.mkdir()
    temporary.mkdir()
    parent = subprocess.Popen(
        [sys.executable, "-c", ORPHANS, when],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=home,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    workers = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(workers) == 2 and all(map(is_alive, workers))
    if when == "at work":
        assert len(of_folder(temporary)) == 2  # the engines
    parent.communicate("now\n")
    assert parent.returncode == -signal.SIGKILL
    assert gone(workers) and comes_true(lambda: not of_folder(temporary)) and nothing_new(before)
    assert not list(home.iterdir()) and not list(temporary.iterdir())


def of_folder(folder):
    """Processes that were told of a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found
