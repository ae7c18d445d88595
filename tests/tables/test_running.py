import json
from dataclasses import asdict, replace

import jax
import numpy as np
import pytest

from planvec.agents import AGENTS
from planvec.data import folders
from planvec.errors import InputError
from planvec.tables import paper, running
from planvec.training.config import Config
from planvec.training.runs import METRICS
from planvec.worlds import make

CONFIG = Config(samples=8 * 4, batch=8, embedding=16, interval=2, optimizer="adam")  # compiles sooner than Muon


def small(rows, folder, episodes=4, **options):
    lines = []
    results = running.reproduce(rows, folder, ["1", "1+1"], episodes, pairs=32, say=lines.append, **options)
    return results, lines


def test_any_model_with_extras_kept():
    """The same row, and the same training, as the one that the table has of itself."""
    [one, plain] = running.entries(Config(), ["te-full", "te-plain"], seeds=3, extra_rows=False, extras="keep")
    assert one in running.entries(Config(), ["te-full"], seeds=3, extra_rows=True)
    assert plain.label == "te-plain, extras kept" and plain.data == one.data == "data-keep"


def test_a_small_table(tmp_path):
    rows = running.entries(CONFIG, ["naive", "cpv-full"], seeds=2, extra_rows=False)
    rows += [running.Entry("control", rows[1].config, control=True, seeds=2)]
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
        small(running.entries(replace(CONFIG, samples=64), ["naive"], seeds=2, extra_rows=False), tmp_path)
    again, lines = small(rows, tmp_path)
    assert again == results and not lines  # nothing is done twice
    more, lines = small([*rows, *running.entries(CONFIG, ["te-plain", "te-pair"], seeds=1, extra_rows=False)], tmp_path)
    assert len(more["rows"]) == len(results["rows"]) + 4
    assert sum("training" in line for line in lines) == 1  # both together
    assert len({more["trainings"][row["training"]]["last"]["loss"] for row in more["rows"][-4:]}) == 2


def test_it_takes_up_where_it_was(tmp_path):
    rows = running.entries(CONFIG, ["cpv-plain"], seeds=1, extra_rows=False)

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
    more, lines = small(running.entries(CONFIG, ["cpv-plain"], seeds=2, extra_rows=False), tmp_path)
    assert (run / METRICS).stat().st_mtime_ns == trained and "training cpv-plain: 4 updates" in lines
    assert sorted(row["seed"] for row in more["rows"]) == [0, 0, 1, 1]
    fewer, _ = small(rows, tmp_path, episodes=5)
    assert sorted((row["seed"], row["episodes"]) for row in fewer["rows"]) == [(0, 5), (0, 5), (1, 4), (1, 4)]


def test_what_cannot_be_is_told_before_anything_is_trained(tmp_path):
    rows = running.entries(CONFIG, ["cpv-plain"], seeds=1, extra_rows=False)
    for conditions, episodes in (("4", "four"), 4), (("4",), 0):
        with pytest.raises(InputError):
            running.reproduce(rows, tmp_path, conditions, episodes)
    assert not any(tmp_path.iterdir())


def test_the_papers_table_has_every_row():
    for world in ("crafting", "tabletop"):
        assert set(paper.TABLES[world]) == set(AGENTS) and paper.COLUMNS[world] == make(world).conditions
    assert paper.figure("crafting", "cpv-full", "16") == (28, 6) and str(paper.figure("doom", "naive", "1+1")) == "36.7"
    assert paper.figure("crafting", "cpv-full", "3") is None and paper.figure("doom", "te-hom", "1") is None
    rows = running.entries(Config(), list(AGENTS), seeds=3, extra_rows=True)
    assert [row.label for row in rows[:10]] == list(AGENTS)
    assert len({row.label for row in rows}) == len(rows) == 14
    control = next(row for row in rows if row.control)
    assert control.folder == "cpv-full" and rows[-1].folder == "te-full--keep"


def test_doom_has_the_papers_models_and_rows_without_flags():
    assert set(paper.TABLES["doom"]) <= set(running.MODELS["doom"]) and paper.COLUMNS["doom"] == make("doom").conditions
    rows = running.entries(Config(world="doom"), running.MODELS["doom"], seeds=3, extra_rows=True)
    assert len({row.label for row in rows}) == len(rows) == 7
    assert [row.without for row in rows if row.control] == [("2+2",)]  # always all four: no other task
    unflagged = [row for row in rows if row.config.world != "doom"]
    assert [(row.folder, row.config.world) for row in unflagged] == [
        ("cpv-full-noflags", "doom-noflags"),
        ("naive-noflags", "doom-noflags"),
    ]
    assert {row.data for row in rows} == {"data"}  # all learn from the same demonstrations …
    assert len({row.program for row in rows}) == 5  # … and cpv-plain and cpv-full together


def test_pairs_are_seen_as_an_entrys_world_shows_them(tmp_path, monkeypatch):
    for name in ("doom", "doom-noflags"):
        monkeypatch.setitem(vars(make(name)), "pool", Blank())  # whether it has one already or not
    folders.collect(folders.Recipe("doom", 4, (1, 3), 0.1, "discard", 0), tmp_path)
    flags = [
        running._load_pairs(tmp_path, make(world), lambda *_: None)
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


def test_folders_are_named_by_what_is_not_as_usual():
    def folder(**changes):
        [row] = running.entries(Config(**changes), ["cpv-full"], seeds=1, extra_rows=False)
        return row.folder

    assert folder() == folder(embedding=512, weight_decay=0.1, samples=9.0, interval=9, seed=9) == "cpv-full"
    assert folder(world="tabletop", embedding=64, networks="relations") == "cpv-full"
    assert folder(world="tabletop", networks="paper") == "cpv-full-networks=paper"
    assert folder(embedding=64, optimizer="adam") == "cpv-full-embedding=64-optimizer=adam"


def test_results_that_do_not_name_the_networks_are_of_the_same_training(tmp_path):
    [row] = running.entries(Config(world="tabletop"), ["cpv-full"], seeds=1, extra_rows=False)
    for change in ({"networks": None}, {"interval": 7}):
        results = {"trainings": {"cpv-full-0": {"config": asdict(row.config) | change}}}
        running._check_same(results, row, tmp_path)
    results = {"trainings": {"cpv-full-0": {"config": asdict(row.config) | {"networks": "paper"}}}}
    with pytest.raises(InputError, match="networks=paper, not relations"):
        running._check_same(results, row, tmp_path)


def test_sweeps():
    rows = running.entries(Config(), ["tecnet"], seeds=1, extra_rows=False)
    swept = running.sweep(rows, "embedding=64,128")
    assert [row.config.embedding for row in swept] == [64, 128] and len({row.folder for row in swept}) == 2
    assert [row.config.ctr for row in running.sweep(rows, "ctr=1,0.1")] == [1.0, 0.1]
    both = running.sweep(swept, "optimizer=adam,muon")
    assert [(row.config.embedding, row.config.optimizer) for row in both] == [
        (64, "adam"),
        (64, "muon"),
        (128, "adam"),
        (128, "muon"),
    ]
    assert both[0].label == "tecnet, embedding=64, optimizer=adam"
    for text in (
        "embedding",
        "colour=red",
        "embedding=big",
        "seed=1,2",
        "samples=1e6,2e6",
        "optimizer=sgd",
        "embedding=",
    ):
        with pytest.raises(InputError):
            running.sweep(rows, text)


def test_means_and_deviations():
    rows = [
        {"agent": "x", "seed": seed, "condition": "4", "success": s, "exact": 0} for seed, s in enumerate((0.2, 0.4))
    ]
    assert running.cell({"rows": rows}, "x", "4") == pytest.approx((30, 200**0.5, 2))
    assert running.cell({"rows": rows[:1]}, "x", "4") == pytest.approx((20, np.nan, 1), nan_ok=True)
    table = running.markdown({"world": "crafting", "rows": [row | {"episodes": 9} for row in rows[:1]]})
    assert "| x | 1 | 20 |" in table  # one seed has no deviation
