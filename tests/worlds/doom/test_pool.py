import os
import signal
import subprocess
import sys
from mmap import mmap
from pathlib import Path

import numpy as np
import pytest
from worlds.processes import comes_true, gone, is_alive, pids

from planvec.errors import InputError
from planvec.worlds.doom import sweep as sweeping
from planvec.worlds.doom.level import SCALE
from planvec.worlds.doom.motion import HEADINGS, State
from planvec.worlds.doom.pool import Pool
from planvec.worlds.doom.sweep import sweep

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


def engines(pool):
    """Whichever of a worker's threads started them."""
    found = []
    for pid in pids(pool):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


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


def test_workers_end_when_told_to(states):
    pool = Pool("open", 1)
    pool.draw(states)
    processes = pids(pool) + engines(pool)
    os.kill(processes[0], signal.SIGTERM)
    assert comes_true(lambda: pool._processes[0].process.poll() is not None) and gone(processes)
    pool.close()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_of_a_worker_that_is_killed_while_it_starts(tmp_path, monkeypatch, how):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    pool = Pool("open", 1)
    [worker] = pids(pool)
    assert comes_true(lambda: memory(worker))
    mine = memory(worker)
    os.kill(worker, how)
    pool.close()
    assert comes_true(lambda: not any(path.exists() for path in mine) and not list(tmp_path.iterdir()))
    assert comes_true(lambda: not of_folder(tmp_path))


def memory(pid):
    """A worker's shared memory that has a name."""
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return {Path(line.split()[-1]) for line in maps if "/dev/shm/ViZDoom" in line and not line.endswith("(deleted)")}


def test_sweeping_takes_only_old_memory_that_nobody_has(monkeypatch):
    names = [SHARED / f"planvec-{os.getpid()}-{what}" for what in ("used", "unused")]
    for path in names:
        path.write_bytes(b"some")
    with names[0].open("r+b") as file, mmap(file.fileno(), 0):
        sweep(f"planvec-{os.getpid()}-*")
        assert all(path.exists() for path in names)  # just made
        monkeypatch.setattr(sweeping, "LINGER", -1.0)
        sweep(f"planvec-{os.getpid()}-*")
        assert [path.exists() for path in names] == [True, False]
    sweep(f"planvec-{os.getpid()}-*")
    assert not names[0].exists()


ORPHANS = """
import os, signal, sys
import numpy as np
from planvec.worlds.doom.motion import State
from planvec.worlds.doom.pool import Pool
from planvec.worlds.doom.sweep import sweep
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
