import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import jax
import numpy as np
import pytest

from planvec.data import folders, inspecting
from planvec.data.demonstrations import Demonstration
from planvec.data.folders import Recipe, collect, load, read_header, read_shards
from planvec.data.pairs import Batch, PairSet
from planvec.errors import InputError
from planvec.io import files
from planvec.worlds import make
from planvec.worlds.crafting.world import Crafting

WORLD = make("crafting")


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(Crafting, "shard", 32)


def recipe(**changes):
    return Recipe(
        **{"world": "crafting", "pairs": 96, "skills": (2, 4), "noise": 0.1, "extras": "discard", "seed": 0} | changes
    )


@pytest.fixture
def folder(tmp_path):
    collect(recipe(), tmp_path / "data", WORLD)
    return tmp_path / "data"


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_round_trip(folder):
    pairs, header = load(folder, WORLD), read_header(folder, WORLD)
    assert len(pairs) == 96 and [entry["pairs"] for entry in header["shards"].values()] == [32, 32, 32]
    assert pairs.steps.cells.shape == (int(pairs.lengths.sum()) + 192, 100)
    tasks = [task for _, tasks in read_shards(folder, header) for task in tasks]
    for demo in range(192):  # every stored demonstration, replayed, does its pair's task and nothing else
        start, length = int(pairs.starts[demo]), int(pairs.lengths[demo])
        states = jax.tree.map(lambda leaf, at=slice(start, start + length + 1): np.asarray(leaf[at]), pairs.steps)
        actions = np.asarray(pairs.actions[start - demo : start - demo + length])
        assert Counter(filter(None, WORLD.events(states, actions))) == Counter(tasks[demo // 2])


def test_what_is_there_is_what_is_asked_for(folder):
    before = contents(folder)
    folders.ensure(recipe(), folder, WORLD)
    with pytest.raises(InputError, match="pairs is 96, not 64"):
        folders.ensure(recipe(pairs=64), folder, WORLD)
    assert contents(folder) == before and folders.kept(folder) == 96 and folders.kept(folder / "none") == 0


def test_folders_go_on_with_files_of_their_own_size(folder, tmp_path, monkeypatch):
    (folder / "shard-00001.safetensors").unlink()
    monkeypatch.setattr(Crafting, "shard", 48)
    collect(recipe(), folder, WORLD)
    assert [entry["pairs"] for entry in read_header(folder, WORLD)["shards"].values()] == [32, 32, 32]


def test_shards_hold_different_pairs(folder):
    """Other tasks, and other scenes: in those of the same seed the agent would stand in the same cells."""
    (first, tasks), *others = read_shards(folder, read_header(folder, WORLD))
    for recording, other_tasks in others:
        assert tasks != other_tasks
        assert np.mean(first.stored["agent"] == recording.stored["agent"]) < 0.5


def test_the_expert_is_asked_for_the_noise_and_the_extras_of_the_recipe(tmp_path):
    asked = []

    class Watched(Crafting):
        def record(self, tasks, seed, noise=0.0, extras="discard", *rest):
            asked.append((len(tasks), noise, extras))
            return super().record(tasks, seed, noise, extras, *rest)

    collect(recipe(pairs=33, noise=0.2, extras="keep"), tmp_path / "data", Watched())
    assert asked == [(64, 0.2, "keep"), (2, 0.2, "keep")]


def test_the_same_seed_gives_the_same_bytes(folder, tmp_path):
    collect(recipe(), tmp_path / "again", WORLD)
    collect(recipe(seed=1), tmp_path / "other", WORLD)
    assert contents(tmp_path / "again") == contents(folder) != contents(tmp_path / "other")


def test_never_overwrites(folder):
    before = contents(folder)
    for other in (recipe(), recipe(seed=1), recipe(pairs=97), recipe(noise=0.2)):
        with pytest.raises(InputError, match=r"complete already|holds other data"):
            collect(other, folder, WORLD)
    assert contents(folder) == before


def test_leaves_a_strangers_folder_alone(tmp_path):
    (tmp_path / "letter.txt").write_text("dear diary")
    with pytest.raises(InputError, match=r"no header.json"):
        collect(recipe(), tmp_path, WORLD)
    assert contents(tmp_path) == {"letter.txt": b"dear diary"}


def test_goes_on_after_an_interruption(folder, tmp_path):
    class Stop(Exception):
        pass

    def stop(pairs):
        if pairs > 40:
            raise Stop

    with pytest.raises(Stop):
        collect(recipe(), tmp_path / "cut", WORLD, stop)
    with pytest.raises(InputError, match="not complete"):
        load(tmp_path / "cut", WORLD)
    first_shard = (tmp_path / "cut" / "shard-00000.safetensors").stat().st_mtime_ns
    collect(recipe(), tmp_path / "cut", WORLD)
    assert (tmp_path / "cut" / "shard-00000.safetensors").stat().st_mtime_ns == first_shard  # kept, not made anew
    assert contents(tmp_path / "cut") == contents(folder)


KILLED = """
import sys
from pathlib import Path
from planvec.data import folders
from planvec.io import files
from planvec.worlds import make
from planvec.worlds.crafting.world import Crafting
Crafting.shard = 32
write, count = files.write, 0
def slow_write(path, content):  # stops for ever in the middle of the second shard
    global count
    count += str(path).endswith("safetensors")
    if count == 2:
        part = path.with_name(path.name + files.TEMPORARY)
        part.write_bytes(content[: len(content) // 2])
        print("now", flush=True)
        sys.stdin.read()
    write(path, content)
files.write = slow_write
folders.collect(folders.Recipe("crafting", 96, (2, 4), 0.1, "discard", 0), Path(sys.argv[1]), make("crafting"))
"""


def test_survives_a_kill_in_the_middle_of_writing(folder, tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path / "cut")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"now\n"
        os.kill(process.pid, signal.SIGKILL)
    assert (tmp_path / "cut" / f"shard-00001.safetensors{files.TEMPORARY}").exists()
    collect(recipe(), tmp_path / "cut", WORLD)
    assert contents(tmp_path / "cut") == contents(folder)


def test_a_failed_write_leaves_nothing_behind(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.write(tmp_path / "file", b"new")
    assert contents(tmp_path) == {"file": b"old"}


def damage(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)


def test_damaged_files_are_noticed_and_repaired(folder):
    before, shard = contents(folder), folder / "shard-00001.safetensors"
    for harm in (damage, Path.unlink, lambda path: path.write_bytes(b"")):
        harm(shard)
        with pytest.raises(InputError, match=r"shard-00001.* damaged"):
            load(folder, WORLD)
        collect(recipe(), folder, WORLD)
        assert contents(folder) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read"),
        ("[]", "not the header"),
        ('{"format": "something else"}', "not the header"),
        (json.dumps({"format": folders.FORMAT, "version": 99}), "version 99"),
        (json.dumps({"format": folders.FORMAT, "version": 1}), "lacks complete"),
    ],
)
def test_foreign_headers(tmp_path, text, message):
    (tmp_path / "header.json").write_text(text)
    with pytest.raises(InputError, match=message):
        load(tmp_path, WORLD)


def test_a_folder_made_with_other_rules(folder):
    header = json.loads((folder / "header.json").read_text())
    (folder / "header.json").write_text(json.dumps(header | {"fingerprint": "0" * 16}))
    with pytest.raises(InputError, match="other rules"):
        load(folder, WORLD)


@pytest.mark.parametrize("shards", [[], {}])
def test_a_header_without_shards(folder, shards):
    header = json.loads((folder / "header.json").read_text())
    (folder / "header.json").write_text(json.dumps(header | {"shards": shards}))
    for use in (lambda folder: load(folder, WORLD), lambda folder: collect(recipe(), folder, WORLD)):
        with pytest.raises(InputError, match="damaged"):
            use(folder)


def test_a_kill_before_the_first_header_was_whole(folder, tmp_path):
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / f"header.json{files.TEMPORARY}").write_text("{")
    collect(recipe(), str(tmp_path / "cut"), WORLD)
    assert contents(tmp_path / "cut") == contents(folder)


def test_what_cannot_be_leaves_nothing_behind(tmp_path):
    with pytest.raises(InputError, match="may not fit"):
        collect(recipe(skills=(1, 200)), tmp_path / "data", WORLD)
    assert not (tmp_path / "data").exists()
    (tmp_path / "file").write_text("hello")
    with pytest.raises(InputError, match="is a file"):
        collect(recipe(), tmp_path / "file", WORLD)


@pytest.mark.parametrize("changes", [{"pairs": 0}, {"seed": -1}, {"seed": 2**32}, {"skills": (4, 2)}, {"noise": 1.0}])
def test_recipes_that_make_no_sense(changes):
    with pytest.raises(InputError):
        recipe(**changes)


def test_rates(folder):
    rates = folders.rates(read_header(folder, WORLD))
    assert set(rates) == {2, 3, 4}
    for row in rates.values():
        assert row["done"] + row["discarded for extras"] + row["failed"] == pytest.approx(1)
        assert row["with extras"] == row["extra events"] == 0


def test_the_split_is_by_pair(folder):
    train, valid = load(folder, WORLD).split()
    assert (len(train), len(valid)) == (86, 10)
    assert int(train.end) == int(valid.begin) and train.steps.cells is valid.steps.cells
    with pytest.raises(InputError, match="cannot be split"):
        PairSet.of(WORLD, valid.steps, valid.actions, np.array([3, 3])).split()


@jax.jit
def sample(pairs, key):
    return pairs.sample(key, 512)


def test_samples_are_moments_of_pairs(folder):
    train, valid = load(folder, WORLD).split()
    observe = jax.jit(jax.vmap(WORLD.observe))
    everything = np.asarray(observe(train.steps))
    starts, lengths = np.asarray(train.starts), np.asarray(train.lengths)
    where = {}
    for demo in range(192):
        for t in range(lengths[demo] + 1):
            where.setdefault(everything[starts[demo] + t].tobytes(), set()).add((demo, t))
    for part, allowed in ((train, range(172)), (valid, range(172, 192))):
        batch = Batch(*map(np.asarray, sample(part, jax.random.key(0))))
        sides, times = Counter(), Counter()
        for i in range(512):
            demos = {demo for demo, t in where[batch.first[i].tobytes()] if t == 0}
            (demo,) = demos
            assert demo in allowed
            moments = {t for d, t in where[batch.now[i].tobytes()] if d == demo and t < lengths[demo]}
            actions = {int(train.actions[starts[demo] - demo + t]) for t in moments}
            assert int(batch.action[i]) in actions
            assert (demo, lengths[demo]) in where[batch.last[i].tobytes()]
            assert (demo ^ 1, 0) in where[batch.ref_first[i].tobytes()]
            assert (demo ^ 1, lengths[demo ^ 1]) in where[batch.ref_last[i].tobytes()]
            sides[demo % 2] += 1
            times[min(moments) / lengths[demo] < 0.5] += 1
        assert min(sides[0], sides[1]) > 180 and min(times[True], times[False]) > 150


def test_demonstrations_need_one_more_observation_than_actions():
    with pytest.raises(InputError, match="2 actions need 3"):
        Demonstration(("ChopTree",), np.zeros((2, 3)), np.zeros(2), np.zeros((3, 1)))


def test_inspection(folder, capsys):
    from rich.console import Console

    inspecting.show(folder, WORLD, Console(width=200))
    text = capsys.readouterr().out
    assert "96 pairs" in text and "checksums right" in text and "noise 10%" in text
    assert (folder / inspecting.SHEET).stat().st_size > 10_000
    load(folder, WORLD)  # the sheet does not disturb


def test_progress_is_told(tmp_path):
    told = []
    collect(recipe(pairs=64), tmp_path / "data", WORLD, told.append)
    assert told == sorted(told) and told[-1] == 64
