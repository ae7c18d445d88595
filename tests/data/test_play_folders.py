"""Play in folders: as pairs are kept, but no pairs."""

import json
from collections import Counter

import jax
import numpy as np
import pytest
from rich.console import Console

from planvec.data import folders, inspecting
from planvec.data.folders import PlayRecipe, Recipe, collect, read_header, read_shards
from planvec.data.play import PlaySet
from planvec.errors import InputError
from planvec.training.loading import load_pairs
from planvec.worlds import make
from planvec.worlds.crafting.world import Crafting

WORLD = make("crafting")
RECIPE = PlayRecipe("crafting", recordings=40, skills=(5, 6), noise=0.1, extras="discard", seed=0)


@pytest.fixture(scope="module", autouse=True)
def small_shards():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Crafting, "shard", 16)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("play") / "data"
    collect(RECIPE, folder, WORLD)
    return folder


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix != ".png"}


def test_the_header_says_that_there_are_no_pairs(folder):
    header = json.loads((folder / "header.json").read_text())
    assert (header["format"], header["version"], header["recordings"]) == ("planvec play", 1, 40)
    assert "pairs" not in header and [entry["recordings"] for entry in header["shards"].values()] == [16, 16, 8]
    assert folders.describe(folder, WORLD)["recordings"] == 40


def test_each_recording_does_a_task_of_its_own(folder):
    play, header = folders.load_play(folder, WORLD), read_header(folder, WORLD)
    assert isinstance(play, PlaySet) and len(play) == 40 and isinstance(folders.load_any(folder, WORLD), PlaySet)
    tasks = [task for _, tasks in read_shards(folder, header) for task in tasks]
    assert len(tasks) == 40 and {len(task) for task in tasks} == {5, 6}
    assert sum(one == other for one, other in zip(tasks[::2], tasks[1::2], strict=True)) < 5
    for number in (0, 1, 17, 39):
        start, length = int(play.starts[number]), int(play.lengths[number])
        states = jax.tree.map(lambda leaf, at=slice(start, start + length + 1): np.asarray(leaf[at]), play.steps)
        actions = np.asarray(play.actions[start - number : start - number + length])
        assert Counter(filter(None, WORLD.events(states, actions))) == Counter(tasks[number])


def test_play_is_no_pairs_and_pairs_are_no_play(folder, tmp_path):
    for use in (lambda: folders.load(folder, WORLD), lambda: load_pairs(folder)):
        with pytest.raises(InputError, match=r"play, and no pairs: .*--segments random$"):
            use()
    collect(Recipe("crafting", 4, (2, 2), 0.1, "discard", 0), tmp_path / "pairs", WORLD)
    with pytest.raises(InputError, match=r"pairs, and no play: .*collect --play"):
        folders.load_play(tmp_path / "pairs", WORLD)
    with pytest.raises(InputError, match=r"other data \(format is planvec pairs, not planvec play"):
        collect(RECIPE, tmp_path / "pairs", WORLD)


def test_it_goes_on_where_it_was_stopped(folder, tmp_path):
    class Stop(Exception):
        pass

    told = []

    def stop(recordings):
        told.append(recordings)
        if recordings > 20:
            raise Stop

    with pytest.raises(Stop):
        collect(RECIPE, tmp_path / "cut", WORLD, stop)
    assert folders.kept(tmp_path / "cut") == 16 and max(told) <= 40
    with pytest.raises(InputError, match=r"goes on .*planvec collect crafting --play --recordings 40 --skills 5-6 "):
        folders.load_play(tmp_path / "cut", WORLD)
    (tmp_path / "cut" / "shard-00000.safetensors").write_bytes(b"")  # and what was damaged is made anew
    collect(RECIPE, tmp_path / "cut", WORLD)
    assert contents(tmp_path / "cut") == contents(folder)
    with pytest.raises(InputError, match="complete already: 40 recordings"):
        collect(RECIPE, tmp_path / "cut", WORLD)


def test_inspection(folder, capsys):
    inspecting.show(folder, WORLD, Console(width=200))
    text = capsys.readouterr().out
    assert "40 recordings of play, unpaired," in text and "a recording, from" in text and "pairs of" not in text
    assert (folder / inspecting.SHEET).stat().st_size > 10_000


def test_what_is_collected_unless_told():
    assert folders.usual("crafting", WORLD) == Recipe("crafting", 40_000, (2, 4), 0.1, "discard", 0)
    assert folders.usual("crafting", WORLD, plays=True) == PlayRecipe("crafting", 30_000, (8, 8), 0.1, "discard", 0)
    few = folders.usual("crafting", WORLD, plays=True, pairs=40, skills=(3, 3), extras="keep")
    assert few == PlayRecipe("crafting", 80, (3, 3), 0.1, "keep", 0)
    with pytest.raises(InputError, match="at least one; got 0 recordings"):
        PlayRecipe("crafting", 0, (8, 8), 0.1, "discard", 0)
