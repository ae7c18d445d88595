import pytest

from planvec.agents import AGENTS
from planvec.errors import InputError
from planvec.tables import paper
from planvec.tables.entries import MODELS, entries, models, sweep
from planvec.training.config import Config
from planvec.worlds import make

TEN = tuple(name for name in AGENTS if name != "potential")  # the paper's models, in its order


def test_any_model_with_extras_kept():
    """The same row, and the same training, as the one that the table has of itself."""
    [one, plain] = entries(Config(), ["te-full", "te-plain"], seeds=3, extra_rows=False, extras="keep")
    assert one in entries(Config(), ["te-full"], seeds=3, extra_rows=True)
    assert plain.label == "te-plain, extras kept" and plain.data == one.data == "data-keep"


def test_the_papers_table_has_every_row():
    for world in ("crafting", "tabletop"):
        assert set(paper.TABLES[world]) == set(TEN) and paper.COLUMNS[world] == make(world).conditions
    assert paper.figure("crafting", "cpv-full", "16") == (28, 6) and str(paper.figure("doom", "naive", "1+1")) == "36.7"
    assert paper.figure("crafting", "cpv-full", "3") is None and paper.figure("doom", "te-hom", "1") is None
    assert models("crafting") == models("tabletop") == TEN and len(TEN) == 10
    rows = entries(Config(), models("crafting"), seeds=3, extra_rows=True)
    assert [row.label for row in rows[:10]] == list(TEN)
    assert len({row.label for row in rows}) == len(rows) == 14
    [control] = [row for row in rows if row.control]
    assert control.folder == "cpv-full" and rows[-1].folder == "te-full--keep"
    [other_tasks] = [row for row in rows if row.skills]
    assert (other_tasks.folder, other_tasks.data, other_tasks.seeds) == ("cpv-full--1-4", "data-1-4", 1)


def test_doom_has_the_papers_models_and_rows_without_flags():
    assert set(paper.TABLES["doom"]) <= set(MODELS["doom"]) and paper.COLUMNS["doom"] == make("doom").conditions
    rows = entries(Config(world="doom"), models("doom"), seeds=3, extra_rows=True)
    assert len({row.label for row in rows}) == len(rows) == 7
    assert [row.without for row in rows if row.control] == [("2+2",)]  # always all four: no other task
    unflagged = [row for row in rows if row.config.world != "doom"]
    assert [(row.folder, row.config.world) for row in unflagged] == [
        ("cpv-full-noflags", "doom-noflags"),
        ("naive-noflags", "doom-noflags"),
    ]
    assert {row.data for row in rows} == {"data"}  # all learn from the same demonstrations …
    assert len({row.program for row in rows}) == 5  # … and cpv-plain and cpv-full together


def test_a_model_past_the_papers_is_a_row_where_it_is_asked_for():
    [row] = entries(Config(), ["potential"], seeds=3, extra_rows=True)
    assert (row.label, row.folder, row.data, row.config.networks) == ("potential", "potential", "data", "potential")
    [beside, alone] = entries(Config(), ["cpv-full", "potential"], seeds=3, extra_rows=False)
    assert alone == row and beside.program != row.program and beside.config.stop == 0 < row.config.stop
    [row] = entries(Config(world="doom"), ["potential"], seeds=3, extra_rows=False)
    assert (row.folder, row.config.networks) == ("potential", "potential")


def test_a_world_of_no_table_has_the_papers_models_and_the_control():
    assert models("doom-rooms") == TEN
    rows = entries(Config(world="doom-rooms"), models("doom-rooms"), seeds=2, extra_rows=True)
    assert [row.label for row in rows] == [*TEN, "cpv-full, reference of another task"]
    assert [row.control for row in rows] == [False] * 10 + [True]
    assert {row.config.world for row in rows} == {"doom-rooms"} and rows[0].folder == "naive"
    [alone] = entries(Config(world="doom-rooms"), ["naive"], seeds=2, extra_rows=True)
    assert alone.label == "naive"  # without cpv-full there is no control of it


def test_a_sweep_has_a_training_of_its_own_for_each_value():
    rows = entries(Config(), ["tecnet"], seeds=1, extra_rows=False)
    swept = sweep(rows, "embedding=64,128")
    assert [row.config.embedding for row in swept] == [64, 128] and len({row.folder for row in swept}) == 2
    assert [row.config.ctr for row in sweep(rows, "ctr=1,0.1")] == [1.0, 0.1]
    assert [row.folder for row in sweep(rows, "stop=0,0.3")] == ["tecnet", "tecnet-stop=0.3"]
    both = sweep(swept, "optimizer=adam,muon")
    assert [(row.config.embedding, row.config.optimizer) for row in both] == [
        (64, "adam"),
        (64, "muon"),
        (128, "adam"),
        (128, "muon"),
    ]
    assert both[0].label == "tecnet, embedding=64, optimizer=adam"


@pytest.mark.parametrize(
    "text",
    ["embedding", "colour=red", "embedding=big", "seed=1,2", "samples=1e6,2e6", "optimizer=sgd", "embedding="],
)
def test_what_is_no_sweep_is_told(text):
    rows = entries(Config(), ["tecnet"], seeds=1, extra_rows=False)
    with pytest.raises(InputError):
        sweep(rows, text)


def test_folders_are_named_by_what_is_not_as_usual():
    def folder(**changes):
        [row] = entries(Config(**changes), ["cpv-full"], seeds=1, extra_rows=False)
        return row.folder

    assert folder() == folder(embedding=512, weight_decay=0.1, samples=9.0, interval=9, seed=9) == "cpv-full"
    assert folder(world="tabletop", embedding=64, networks="relations") == "cpv-full"
    assert folder(world="tabletop", networks="paper") == "cpv-full-networks=paper"
    assert folder(segments="random") == "cpv-full--play"
    assert folder(segments="random", sparse=0.0, window=9) == "cpv-full-sparse=0.0-window=9--play"
    assert folder(embedding=64, optimizer="adam") == "cpv-full-embedding=64-optimizer=adam"
