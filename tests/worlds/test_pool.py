import os
import signal
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as some
from worlds.processes import gone, is_alive, pids, start

from planvec.errors import InputError
from planvec.worlds import pool as pools
from planvec.worlds.pool import LARGEST, Pool

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

SQUARES = [("square", number) for number in range(50)]


@pytest.fixture(scope="module")
def pair():
    with Pool(start, workers=2) as pool:
        yield pool


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("here", [False, True])
def test_answers_come_in_order(workers, here):
    with Pool(start, workers=workers, here=here) as pool:
        assert list(pool.share(SQUARES)) == [number**2 for number in range(50)]
        assert list(pool.share([])) == []
        assert ({os.getpid()} == set(pool.share([("worker",)] * 3))) == (here and workers == 1)


@given(some.integers(0, 5000), some.integers(1, 100), some.integers(1, 10))
def test_parts_make_the_whole(count, workers, pieces):
    parts = Pool.parts(SimpleNamespace(workers=workers, pieces=pieces), count)
    assert [row for part in parts for row in range(part.start, part.stop)] == list(range(count))
    assert all(part.stop - part.start <= LARGEST for part in parts)
    assert len(parts) <= max(workers * pieces, count / LARGEST + 1)


def test_options_and_settings_reach_the_workers():
    with Pool(start, "one", "two words", workers=1, settings={"PLANVEC_TEST": "set"}) as pool:
        assert list(pool.share([("options",), ("setting", "PLANVEC_TEST")])) == [("one", "two words"), "set"]


def test_errors_are_raised_and_their_workers_live_on(pair):
    old = pids(pair)
    for error in (InputError("no such thing"), OSError("disk full"), EOFError("no more")):
        with pytest.raises(type(error), match=str(error)):
            list(pair.share([*SQUARES, ("fail", error), *SQUARES]))
    assert list(pair.share(SQUARES)) == [number**2 for number in range(50)] and pids(pair) == old


def test_what_workers_print_is_no_answer(pair):
    assert list(pair.share([("print", "aside"), ("square", 3)])) == [None, 9]


def test_workers_know_no_jax(pair):
    [modules] = pair.share([("modules",)])
    assert not {"jax", "numpy"} & modules


def test_dead_workers_are_replaced(pair):
    old = pids(pair)
    for pid in old:
        os.kill(pid, signal.SIGKILL)
    assert list(pair.share(SQUARES)) == [number**2 for number in range(50)]
    assert not set(old) & set(pids(pair))


def test_a_worker_killed_at_work_is_replaced_and_its_work_done(pair):
    list(pair.share(SQUARES))
    old = pids(pair)
    killer = threading.Timer(0.2, os.kill, (old[0], signal.SIGKILL))
    killer.start()
    assert list(pair.share([("sleep", 0.1)] * 8)) == [0.1] * 8
    killer.join()
    assert pids(pair)[0] != old[0] and pids(pair)[1] == old[1]


@linux
def test_a_worker_that_hangs_is_replaced_and_its_work_done(pair, monkeypatch):
    list(pair.share(SQUARES))
    old = pids(pair)
    os.kill(old[0], signal.SIGSTOP)
    monkeypatch.setattr(pools, "LIMIT", 0.5)
    assert list(pair.share(SQUARES)) == [number**2 for number in range(50)]
    assert pids(pair)[0] != old[0] and pids(pair)[1] == old[1] and gone(old[:1])


def test_work_over_which_workers_always_die_is_an_error(pair):
    with pytest.raises(RuntimeError, match="died"):
        list(pair.share([("die", 1)]))
    assert list(pair.share(SQUARES)) == [number**2 for number in range(50)]


def test_of_an_error_that_cannot_be_sent_its_name_is(pair):
    with pytest.raises(RuntimeError, match="Unspeakable"):
        list(pair.share([("fail unspeakably",)]))


def test_a_pool_has_workers():
    with pytest.raises(InputError, match="at least one"):
        Pool(start, workers=0)


@linux
def test_a_closed_pool_leaves_nothing_behind():
    pool = Pool(start, workers=2)
    list(pool.share(SQUARES))
    workers = pids(pool)
    assert all(map(is_alive, workers))
    pool.close()
    pool.close()
    assert gone(workers)
    with pytest.raises(InputError, match="closed"):
        list(pool.share(SQUARES))


@linux
def test_closing_while_at_work_does_not_hang():
    pool = Pool(start, workers=2)
    workers = pids(pool)
    closer = threading.Timer(0.3, pool.close)
    closer.start()
    with pytest.raises(InputError, match="closed"):
        list(pool.share([("sleep", 0.1)] * 1000))
    closer.join()
    assert gone(workers)


@linux
def test_workers_that_do_not_end_are_killed(monkeypatch):
    monkeypatch.setattr(pools, "PATIENCE", 0.1)
    pool = Pool(start, workers=1)
    list(pool.share(SQUARES))
    [worker] = pids(pool)
    os.kill(worker, signal.SIGSTOP)
    pool.close()
    assert gone([worker])


@linux
def test_ctrl_c_is_for_the_parent(pair):
    assert all(os.getsid(pid) == pid for pid in pids(pair))


ORPHANS = """
import os, signal, subprocess
from planvec.worlds.pool import Pool
from worlds.processes import pids, start
pool = Pool(start, workers=2)
list(pool.share([("square", 1)] * 9))
held = [worker.process.stdin.fileno() for worker in pool._processes]
print(subprocess.Popen(["sleep", "60"], pass_fds=held, stdout=subprocess.DEVNULL).pid, *pids(pool), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@linux
def test_workers_end_when_their_parent_is_killed():
    """Even if somebody else still holds their input open."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    parent = subprocess.run([sys.executable, "-c", ORPHANS], stdout=subprocess.PIPE, text=True, env=environment)
    holder, *workers = map(int, parent.stdout.split())
    try:
        assert parent.returncode == -signal.SIGKILL and len(workers) == 2
        assert is_alive(holder) and gone(workers)
    finally:
        os.kill(holder, signal.SIGKILL)
