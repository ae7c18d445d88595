"""Tables past the paper in worlds with simulators."""

from dataclasses import asdict, replace

import pytest

from planvec.errors import InputError
from planvec.tables import running
from planvec.tables.beyond import TABLES, Plan, Row, entries
from planvec.tables.entries import Entry
from planvec.training.config import Config
from planvec.training.practice_config import PracticeConfig
from planvec.worlds import make

COINS = "own_world:Coins"


def rows(name, practice=None, **options):
    return {row.label: row for row in entries(name, Config(), practice or {}, **options)}


@pytest.mark.parametrize("name", ["beyond-tabletop", "beyond-doom", "beyond-doom-rooms"])
def test_imitation_practice_and_a_control(name):
    every = rows(name)
    imitated, practised, control = list(every.values())[:3]
    assert [imitated.label, practised.label] == ["potential", "potential, practised"]
    assert imitated.folder == "potential" and practised.folder == control.folder == "potential-practised"
    assert practised.imitated.folder == "potential" and control.control and not practised.control
    world = make(TABLES[name].world)
    assert practised.practice == PracticeConfig().resolved(world)
    assert practised.practice.sums == ",".join(TABLES[name].conditions)
    assert (control.without == ("2+2",)) == ("2+2" in TABLES[name].conditions)


def test_doom_has_rows_without_flags_which_share_its_demonstrations():
    every = rows("beyond-doom")
    for label, folder in {
        "potential, no flags": "potential-noflags",
        "potential, no flags, practised": "potential-noflags-practised",
    }.items():
        row = every[label]
        assert (row.folder, row.data, row.config.world) == (folder, "data", "doom-noflags")


def test_practice_can_be_made_shorter():
    [row] = rows("beyond-tabletop", {"steps": 1e5}, labels=["potential, practised"], seeds=1).values()
    assert row.folder == "potential-practised-steps=100000.0" and row.steps == row.practice.rounds < 100


def test_what_is_usual_needs_not_be_said():
    [row] = rows("beyond-tabletop", labels=["potential, practised"]).values()
    unsaid = replace(row, practice=PracticeConfig(envs=512, seed=4))
    assert unsaid.folder == row.folder != replace(row, practice=PracticeConfig(envs=256)).folder


def test_results_that_do_not_name_all_there_is_to_say_are_of_the_same_practice(tmp_path):
    [row] = rows("beyond-tabletop", labels=["potential, practised"], seeds=1).values()
    described = {"config": asdict(row.seeded(0)), "practice": asdict(row.practised(0))}
    del described["practice"]["passes"]
    running._check_same({"trainings": {row.name(0): described}}, row, tmp_path)
    described["practice"]["envs"] = 3
    with pytest.raises(InputError, match="envs=3, not 512"):
        running._check_same({"trainings": {row.name(0): described}}, row, tmp_path)


def test_a_small_table_with_practice(tmp_path, monkeypatch):
    """Trained, practised, scored; and nothing twice."""
    practice = PracticeConfig(sums="1,1+1", steps=32, pool=4, envs=8, minibatch=8)
    plan = Plan(COINS, ("1",), (Row("potential"), Row("practised", practice=practice)), seeds=1)
    monkeypatch.setitem(TABLES, "coins", plan)
    config = Config(samples=32, batch=8, embedding=8, interval=2)
    both = entries("coins", config, {})
    assert all(isinstance(row, Entry) for row in both)
    lines = []
    results = running.reproduce(both, tmp_path, ["1"], 4, pairs=16, say=lines.append)
    assert {row["agent"] for row in results["rows"]} == {"potential", "practised"}
    assert sum("practising" in line for line in lines) == 1
    assert running.reproduce(both, tmp_path, ["1"], 4, pairs=16, say=lines.append) == results
    assert sum("practising" in line for line in lines) == 1
