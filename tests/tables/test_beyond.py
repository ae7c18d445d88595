"""The tables past the paper as data: what is trained, what practises, and what they share."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from planvec.errors import InputError
from planvec.tables import beyond, running
from planvec.tables.beyond import TABLES, entries
from planvec.tasks import parse_condition
from planvec.training.config import Config
from planvec.training.practice import PracticeConfig, check_sums
from planvec.worlds import make


def rows(name="beyond", practice=None, **options):
    return {row.label: row for row in entries(name, Config(), practice or {}, **options)}


@pytest.mark.parametrize("name", TABLES)
def test_every_row_has_a_label_and_a_training_of_its_own(name):
    every = rows(name)
    assert len(every) == len(TABLES[name].rows) and next(iter(every)) in ("potential", "play")
    trainings = {(row.folder, row.control) for row in every.values()}
    assert len(trainings) == len(every)
    assert {row.config.world.removesuffix("-noflags") for row in every.values()} == {TABLES[name].world}
    assert all(row.config == row.config.resolved() for row in every.values())


@pytest.mark.parametrize("name", TABLES)
def test_conditions_and_sums_are_such_as_the_world_has(name):
    world = make(TABLES[name].world)
    for condition in TABLES[name].conditions:
        world.check_size(sum(parse_condition(condition)))
    for row in rows(name).values():
        if row.practice:
            check_sums(world, row.practice.sums)
            assert max(max(parse_condition(text)) for text in row.practice.sums.split(",")) <= 4


def test_what_practises_begins_as_what_was_imitated():
    every = rows("beyond-parts")
    for label in ("potential", "without cancelling", "with the paper's g", "cpv-full", "400 pairs"):
        imitated, practised = every[label], every[f"{label}, practised"]
        assert practised.imitated.folder == imitated.folder and not imitated.practice
        assert practised.imitated.seeded(2) == imitated.seeded(2) == replace(imitated.config, seed=2)
        assert practised.folder.startswith(imitated.folder) and practised.data == imitated.data
        assert practised.practised(2).seed == 2 and practised.steps == practised.practice.rounds
    assert every["practised, labels the reward"].imitated.folder == every["potential"].folder


def test_each_part_is_taken_away_alone():
    every = rows("beyond-parts")
    whole = every["potential"].config
    without = {
        "without cancelling": {"cancelling": 0.0},
        "without the squared Pair loss": {"alike": 0.0},
        "without a stop": {"stop": 0.0},
    }
    for label, change in without.items():
        assert every[label].config == replace(whole, **change)
    assert every["with the paper's g"].config.networks == "paper-g"
    assert every["with the paper's policy"].config.networks == "paper-policy"
    few = every["400 pairs"]
    assert (few.pairs, few.data, few.config) == (400, "data-400-pairs", whole)
    by_labels = every["practised, labels the reward"].practice
    assert by_labels == replace(every["potential, practised"].practice, reward="labels")
    assert {row.seeds for row in every.values()} == {1}


def test_an_agent_that_could_not_stop_can_after_practice():
    every = rows("beyond-parts")
    for label in ("cpv-full", "without a stop"):
        assert every[label].seeded(0).stop == 0 < every[f"{label}, practised"].seeded(0).stop
    assert every["potential, practised"].seeded(0).stop == every["potential"].seeded(0).stop


def test_the_rows_beside():
    every = rows()
    control = every["potential, practised, reference of another task"]
    assert control.control and control.folder == every["potential, practised"].folder
    assert every["cpv-full"].folder == "cpv-full" and not every["cpv-full"].config.stop
    assert every["potential, extras kept"].extras == every["potential, extras kept, practised"].extras == "keep"
    blind = every["potential, practised in scenes drawn blindly"]
    assert blind.practice == replace(every["potential, practised"].practice, scenes="blind") and blind.seeds == 1
    assert {row.seeds for row in every.values() if row is not blind} == {3}


def test_rows_and_seeds_and_steps_can_be_chosen():
    some = rows(labels=["potential, practised", "cpv-full"], seeds=2, practice={"steps": 1e6, "pool": 64})
    assert list(some) == ["potential, practised", "cpv-full"] and {row.seeds for row in some.values()} == {2}
    practice = some["potential, practised"].practice
    assert (practice.steps, practice.pool) == (1e6, 64) and not some["cpv-full"].practice
    assert rows(seeds=5)["potential"].seeds == 3  # no more than the table has
    shorter = entries("beyond", Config(samples=64.0), {}, labels=["cpv-full"])
    assert shorter[0].config.samples == 64
    with pytest.raises(InputError, match="'nothing' is no row of beyond; there is potential; potential, practised"):
        rows(labels=["nothing"])


def test_what_is_usual_in_practice_is_not_in_the_folders_name():
    practised = rows()["potential, practised"]
    assert practised.folder == f"potential-practised-steps={beyond.PRACTICE.steps}"
    assert replace(practised, practice=PracticeConfig(seed=3, interval=7)).folder == "potential-practised"
    long, longer = ("+".join("1" * parts) for parts in (12, 13))
    named = {replace(practised, practice=PracticeConfig(sums=sums)).folder for sums in (long, longer)}
    assert len(named) == 2 and max(map(len, named)) < 40


@pytest.fixture
def asked(monkeypatch):
    """What a table asks the others for: nothing is collected, trained, practised or scored. What was asked for once
    is there."""
    asked = SimpleNamespace(trained=[], practised=[], scored=[])

    def train(configs, runs, pairs, data, tick):
        asked.trained += [run.name for run in runs]

    def practise(config, practice, agent, run, pairs, data, say, tick):
        asked.practised.append((agent, run.name, config.stop > 0, practice.seed, pairs))

    def score(entry, agents, world, condition, episodes):
        asked.scored.append((entry.label, tuple(agents)))
        return []

    def unfinished(entry, table):
        there = {*asked.trained, *(run for _, run, *_ in asked.practised)}
        return {seed: False for seed in range(entry.seeds) if entry.name(seed) not in there}

    monkeypatch.setattr(running, "train", train)
    monkeypatch.setattr(running, "practise", practise)
    monkeypatch.setattr(running, "score", score)
    monkeypatch.setattr(running.Entry, "unfinished", unfinished)
    monkeypatch.setattr(running, "write", lambda results, folder: None)
    monkeypatch.setattr(running, "load", lambda run: run.name)
    monkeypatch.setattr(running, "_described", lambda run: {})
    monkeypatch.setattr(running.folders, "ensure", lambda *_: None)
    monkeypatch.setattr(running.folders, "describe", lambda *_: {})
    monkeypatch.setattr(running.Demonstrations, "load", lambda _, folder, world, progress: folder.name)
    monkeypatch.setattr(running.np, "mean", lambda _: 0.0)
    return asked


def test_agents_are_trained_before_they_practise_and_then_scored(asked, tmp_path):
    table = entries("beyond", Config(), {"steps": 1e6}, 2, ["potential, practised"])
    results = running.reproduce(table, tmp_path, ["4"])
    own = "potential-practised-steps=1000000.0"
    assert asked.trained == ["potential-0", "potential-1"]
    assert asked.practised == [(f"potential-{seed}", f"{own}-{seed}", True, seed, "data") for seed in (0, 1)]
    assert asked.scored == [("potential, practised", (f"{own}-0", f"{own}-1"))]
    assert set(results["trainings"]) == {"potential-0", "potential-1", f"{own}-0", f"{own}-1"}


def test_rows_that_share_agents_train_and_practise_once(asked, tmp_path):
    labels = ["potential", "potential, practised", "potential, practised, reference of another task"]
    running.reproduce(entries("beyond", Config(), {}, 1, labels), tmp_path, ["4"])
    assert len(asked.trained) == len(asked.practised) == 1
    (imitated, _), (practised, agents), (control, same) = ((label, agents) for label, agents in asked.scored)
    assert [imitated, practised, control] == labels and agents == same != asked.scored[0][1]


def test_rows_with_data_of_their_own_practise_on_them(asked, tmp_path):
    labels = ["potential, practised", "400 pairs, practised"]
    running.reproduce(entries("beyond-parts", Config(), {}, 1, labels), tmp_path, ["4"])
    assert [pairs for *_, pairs in asked.practised] == ["data", "data-400-pairs"]
    assert asked.trained == ["potential-0", "potential--400-pairs-0"]
