import json
from dataclasses import asdict, replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from planvec.data import folders
from planvec.data.pairs import NOISE
from planvec.errors import InputError
from planvec.evaluation.scores import Score
from planvec.tables import beyond, running
from planvec.tables.entries import Entry, entries, sweep
from planvec.training.config import Config
from planvec.training.runs import METRICS
from planvec.worlds import make
from planvec.worlds.trials import OneTask

COINS = "own_world:Coins"  # of the examples: small networks
CONFIG = Config(world=COINS, samples=8 * 4, batch=8, embedding=16, interval=2, optimizer="adam")
SPARSE = {"play": 0.3, "play, without the sparse penalty": 0.0}  # its weights, by label
HALF = Score(success=0.5, exact=0.25, stops=0.25, diverged=0.0, episodes=4, horizon=9)


def small(rows, folder, episodes=4, **options):
    lines = []
    results = running.reproduce(rows, folder, ["1", "1+1"], episodes, pairs=32, say=lines.append, **options)
    return results, lines


@pytest.fixture
def asked(monkeypatch):
    """What a table asks the others for. Nothing is collected, trained or scored."""
    asked = SimpleNamespace(recipes={}, trained={}, scored={})

    def train(configs, runs, pairs, data, tick):
        """What is trained, and the pairs that it learns from: the name of their folder, and how they are seen."""
        asked.trained |= {run.name: (config, pairs) for config, run in zip(configs, runs, strict=True)}

    def evaluate(agents, world, trial, seed, control=False):
        condition, extras = trial
        asked.scored[tuple(agents), condition, extras, control] = world.name
        return [HALF for _ in agents]

    monkeypatch.setattr(
        folders, "ensure", lambda recipe, data, world, progress: asked.recipes.update({data.name: recipe})
    )
    monkeypatch.setattr(folders, "describe", lambda data, world: {})
    monkeypatch.setattr(running.Demonstrations, "load", lambda _, folder, world, progress: (folder.name, world.name))
    monkeypatch.setattr(running, "train", train)
    monkeypatch.setattr(running, "_described", lambda run: {})
    monkeypatch.setattr(running, "load", lambda run: run.name)
    monkeypatch.setattr(running, "random_trial", lambda world, name, episodes, seed, extras: (name, extras))
    monkeypatch.setattr(running, "evaluate", evaluate)
    monkeypatch.setattr(running, "write", lambda results, folder: None)
    return asked


def test_the_control_row_alone_is_shown_references_of_other_tasks(asked, tmp_path):
    rows = entries(Config(), ["te-full", "cpv-full"], seeds=1, extra_rows=True)
    running.reproduce([row for row in rows if row.extras == "discard" and not row.skills], tmp_path, ["4"])
    agents = [(agents, control) for agents, _, _, control in asked.scored]
    assert agents == [(("te-full-0",), False), (("cpv-full-0",), False), (("cpv-full-0",), True)]


def test_a_row_with_extras_learns_from_and_is_measured_on_demonstrations_with_extras(asked, tmp_path):
    rows = entries(Config(), ["te-full"], seeds=1, extra_rows=True)
    running.reproduce(rows, tmp_path, ["4"])
    assert {name: recipe.extras for name, recipe in asked.recipes.items()} == {"data": "discard", "data-keep": "keep"}
    trained = {run: data for run, (_, (data, _)) in asked.trained.items()}
    assert trained == {"te-full-0": "data", "te-full--keep-0": "data-keep"}
    scored = [(agents, extras) for agents, _, extras, _ in asked.scored]
    assert scored == [(("te-full-0",), "discard"), (("te-full--keep-0",), "keep")]


def test_a_table_with_extras_kept_has_them_in_all_its_rows(asked, tmp_path):
    running.reproduce(entries(Config(), ["naive"], seeds=1, extra_rows=False, extras="keep"), tmp_path, ["4"])
    assert {recipe.extras for recipe in asked.recipes.values()} == {"keep"}
    assert [extras for _, _, extras, _ in asked.scored] == ["keep"]


def test_a_sweep_trains_with_each_of_its_values(asked, tmp_path):
    rows = sweep(entries(Config(), ["cpv-full"], seeds=2, extra_rows=False), "learning_rate=1e-3,5e-3")
    running.reproduce(rows, tmp_path, ["4"])
    rates = {run: (config.learning_rate, config.seed) for run, (config, _) in asked.trained.items()}
    assert rates == {
        "cpv-full-learning_rate=0.001-0": (1e-3, 0),
        "cpv-full-learning_rate=0.001-1": (1e-3, 1),
        "cpv-full-learning_rate=0.005-0": (5e-3, 0),
        "cpv-full-learning_rate=0.005-1": (5e-3, 1),
    }
    assert [agents for agents, *_ in asked.scored] == [
        tuple(f"cpv-full-learning_rate={rate}-{seed}" for seed in range(2)) for rate in ("0.001", "0.005")
    ]


def test_a_row_on_other_tasks_learns_from_demonstrations_of_those(asked, tmp_path):
    rows = entries(Config(), ["cpv-full"], seeds=1, extra_rows=True)
    running.reproduce([row for row in rows if row.skills or row.label == "cpv-full"], tmp_path, ["4"])
    assert {name: recipe.skills for name, recipe in asked.recipes.items()} == {"data": (2, 4), "data-1-4": (1, 4)}
    assert {recipe.noise for recipe in asked.recipes.values()} == {NOISE}
    assert {run: data for run, (_, (data, _)) in asked.trained.items()} == {
        "cpv-full-0": "data",
        "cpv-full--1-4-0": "data-1-4",
    }


def test_a_row_of_play_learns_from_recordings_with_as_many_skills_as_the_tables_pairs(asked, tmp_path, monkeypatch):
    def practise(config, practice, agent, run, samples, described, say, tick):
        asked.trained[run.name] = config, samples

    monkeypatch.setattr(running, "practise", practise)
    rows = beyond.entries("beyond-play", Config(), {}, seeds=1, labels=["play", "play, practised"])
    running.reproduce(rows, tmp_path, ["4"], pairs=400)
    [(folder, recipe)] = asked.recipes.items()
    assert folder == "data-play" and recipe == folders.PlayRecipe("crafting", 300, (8, 8), 0.1, "discard", 0)
    trained = {run: (config.segments, data) for run, (config, (data, _)) in asked.trained.items()}
    assert trained == {
        "potential--play-0": ("random", "data-play"),
        "potential--play-practised-steps=60000000.0-0": ("random", "data-play"),
    }


def test_a_row_in_a_variant_sees_the_demonstrations_of_the_tables_world_in_its_own_way(asked, tmp_path):
    running.reproduce(entries(Config(world="doom"), ["naive"], seeds=1, extra_rows=True), tmp_path, ["1"])
    assert {name: recipe.world for name, recipe in asked.recipes.items()} == {"data": "doom"}
    assert {run: pairs for run, (_, pairs) in asked.trained.items()} == {
        "naive-0": ("data", "doom"),
        "naive-noflags-0": ("data", "doom-noflags"),
    }
    assert list(asked.scored.values()) == ["doom", "doom-noflags"]


def test_a_world_of_no_table_can_be_reproduced(asked, tmp_path):
    rows = entries(Config(world="doom-rooms"), ["cpv-full"], seeds=1, extra_rows=True)
    results = running.reproduce(rows, tmp_path, ["1"])
    assert results["world"] == "doom-rooms" and asked.recipes["data"].world == "doom-rooms"
    assert [row["agent"] for row in results["rows"]] == ["cpv-full", "cpv-full, reference of another task"]


def test_a_control_that_has_no_other_task_to_show_is_left_out(asked, tmp_path, monkeypatch):
    plain = running.evaluate

    def evaluate(agents, world, trial, seed, control=False):
        if control and trial[0] == "2+2":
            raise OneTask("all episodes are of one task")
        return plain(agents, world, trial, seed, control)

    monkeypatch.setattr(running, "evaluate", evaluate)
    lines = []
    rows = entries(Config(world="doom-rooms"), ["cpv-full"], seeds=1, extra_rows=True)
    results = running.reproduce(rows, tmp_path, ["2+2", "1"], say=lines.append)
    cells = [(row["agent"], row["condition"]) for row in results["rows"]]
    control = "cpv-full, reference of another task"
    assert cells == [("cpv-full", "2+2"), ("cpv-full", "1"), (control, "1")]
    assert f"{control}, 2+2: left out, all episodes are of one task" in lines


def test_a_small_table(tmp_path):
    rows = entries(CONFIG, ["naive", "cpv-full"], seeds=2, extra_rows=False)
    rows += [Entry("control", rows[1].config, control=True, seeds=2)]
    results, lines = small(rows, tmp_path)
    assert len(results["rows"]) == 3 * 2 * 2
    assert {"agent", "seed", "condition", "success", "exact", "episodes"} <= results["rows"][0].keys()
    assert set(results["trainings"]) == {
        f"{name}-embedding=16-batch=8-optimizer=adam-{seed}" for name in ("naive", "cpv-full") for seed in (0, 1)
    }
    assert sum("training" in line for line in lines) == 2  # the control shares cpv-full's
    assert json.loads((tmp_path / "results.json").read_text()) == results
    table = (tmp_path / "table.md").read_text()
    assert "| naive | 2 |" in table and "control" in table and (tmp_path / "chart.png").exists()

    with pytest.raises(InputError, match="samples=32"):  # not the figures of another training under the same name
        small(entries(replace(CONFIG, samples=64), ["naive"], seeds=2, extra_rows=False), tmp_path)
    again, lines = small(rows, tmp_path)
    assert again == results and not lines  # nothing is done twice
    more, lines = small([*rows, *entries(CONFIG, ["te-plain", "te-pair"], seeds=1, extra_rows=False)], tmp_path)
    assert len(more["rows"]) == len(results["rows"]) + 4
    assert sum("training" in line for line in lines) == 1  # both together
    assert len({more["trainings"][row["training"]]["last"]["loss"] for row in more["rows"][-4:]}) == 2


def test_it_takes_up_where_it_was(tmp_path):
    rows = entries(CONFIG, ["cpv-plain"], seeds=1, extra_rows=False)

    def stop(what, done, total):
        if what == "training cpv-plain" and done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        small(rows, tmp_path, watch=stop)
    told = []
    small(rows, tmp_path, watch=lambda *progress: told.append(progress))
    assert {entry for entry in told if entry[0].startswith("training")} == {
        ("training cpv-plain", done, 4) for done in (3, 4)
    }
    assert told[-3:] == [("scoring cpv-plain", done, 2) for done in (0, 1, 2)]
    assert all(done <= total for _, done, total in told)
    [run] = (tmp_path / "runs").iterdir()
    trained = (run / METRICS).stat().st_mtime_ns
    more, lines = small(entries(CONFIG, ["cpv-plain"], seeds=2, extra_rows=False), tmp_path)
    assert (run / METRICS).stat().st_mtime_ns == trained and "training cpv-plain: 4 updates" in lines
    assert sorted(row["seed"] for row in more["rows"]) == [0, 0, 1, 1]
    fewer, _ = small(rows, tmp_path, episodes=5)
    assert sorted((row["seed"], row["episodes"]) for row in fewer["rows"]) == [(0, 5), (0, 5), (1, 4), (1, 4)]


def test_what_cannot_be_is_told_before_anything_is_trained(tmp_path):
    rows = entries(CONFIG, ["cpv-plain"], seeds=1, extra_rows=False)
    for conditions, episodes in (("4", "four"), 4), (("4",), 0):
        with pytest.raises(InputError):
            running.reproduce(rows, tmp_path, conditions, episodes)
    assert not any(tmp_path.iterdir())


def test_pairs_are_seen_as_an_entrys_world_shows_them(tmp_path, monkeypatch):
    for name in ("doom", "doom-noflags"):
        monkeypatch.setitem(vars(make(name)), "pool", Blank())  # whether it has one already or not
    folders.collect(folders.Recipe("doom", 4, (1, 3), 0.1, "discard", 0), tmp_path, make("doom"))
    demonstrations = running.Demonstrations()
    flags = [
        demonstrations.load(tmp_path, make(world), lambda *_: None)
        .sample(jax.random.key(0), 8)
        .now["waypoints"][..., 2]
        for world in ("doom", "doom-noflags", "doom")
    ]
    assert flags[0].any() and not flags[1].any() and (flags[0] == flags[2]).all()
    assert Blank.drawn == 1  # one replay serves them all


class Blank:
    """A pool whose pictures are black."""

    drawn = 0

    def draw(self, states, progress=None):
        Blank.drawn += 1
        return np.zeros((len(states.agent), 60, 80, 3), np.uint8)


def test_a_small_table_of_play(tmp_path):
    """Data, training and scores of a row that learns without pairs, in a world of small networks."""
    config = replace(CONFIG, agent="potential", segments="random", window=4, jitter=0).resolved()
    rows = [Entry(label, replace(config, sparse=sparse), skills=(3, 3), seeds=1) for label, sparse in SPARSE.items()]
    results, lines = small(rows, tmp_path)
    assert "32 recordings of 3-3 skills, extras: discard" in lines and sum("training" in line for line in lines) == 1
    assert [(row["agent"], row["condition"]) for row in results["rows"]] == [
        (label, condition) for label in SPARSE for condition in ("1", "1+1")
    ]
    assert folders.read_header(tmp_path / "data-play-3-3", make(COINS))["recordings"] == 32
    again, lines = small(rows, tmp_path)
    assert again == results and not lines


def test_results_that_do_not_name_the_networks_are_of_the_same_training(tmp_path):
    [row] = entries(Config(world="tabletop"), ["cpv-full"], seeds=1, extra_rows=False)
    for change in ({"networks": None}, {"interval": 7}):
        results = {"trainings": {"cpv-full-0": {"config": asdict(row.config) | change}}}
        running._check_same(results, row, tmp_path)
    results = {"trainings": {"cpv-full-0": {"config": asdict(row.config) | {"networks": "paper"}}}}
    with pytest.raises(InputError, match="networks=paper, not relations"):
        running._check_same(results, row, tmp_path)
