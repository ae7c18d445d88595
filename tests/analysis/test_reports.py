import json

import jax
import pytest

from planvec.agents import build
from planvec.analysis.reports import WITHOUT, markdown, measure, table
from planvec.errors import InputError
from planvec.io.checkpoints import save_json, save_tree
from planvec.training.runs import CONFIG, WEIGHTS
from planvec.worlds import make


@pytest.fixture
def naive(tmp_path):
    """A run of an agent without plan vectors, untrained."""
    folder = tmp_path / "naive"
    folder.mkdir()
    save_json(folder / CONFIG, {"config": {"agent": "naive", "world": "tabletop"}})
    save_tree(folder / WEIGHTS, build("naive", make("tabletop").space, key=jax.random.key(0)))
    return f"{folder}/"


def row(agent, run="x", figure=0.5, auc=None, done=True):
    """Figures as they are in a file."""
    told = {"auc": auc, "progress": 1.0, "norm": 0.75, "early": 0.0, "missed": None, "moments": 10}
    sums = {"retrieval": figure, "candidates": 4, "error": 0.1, "again": 0.1, "unrelated": 1.0}
    about = {"run": run, "world": "crafting", "agent": agent, "tasks": 8, "episodes": 2, "demonstrations": 100}
    return about | {
        "sums": sums,
        "parts": {"error": 0.1, "unrelated": 1.0},
        "nothing": {"mean": 0.1},
        "counts": {"r2": 0.9, "r2_by_skill": {"ChopTree": None}, "explained": 0.9},
        "leaks": {"scene": None, "order": 0.2},
        "probe": {"error": 0.1, "error_by_skill": {"ChopTree": 0.1}},
        "done": {"1+1": {"expert": told, "own": told}} if done else {},
    }


def test_a_line_for_each_model_and_why_one_has_no_figures():
    rows = [row("cpv-full", auc=1.0), row("cpv-full", "y", figure=0.7, auc=0.9), row("te-full")]
    lines = markdown([*rows, {"world": "crafting", "agent": "naive", "without": WITHOUT}]).splitlines()
    at = {line.split(" | ")[0]: number for number, line in reversed(list(enumerate(lines)))}
    assert at["| naive"] < at["| te-full"] < at["| cpv-full"]  # as everywhere
    assert lines[at["| naive"]].startswith(f"| naive | 1 | {WITHOUT} |")
    assert lines[at["| cpv-full"]].startswith("| cpv-full | 2 | 0.600 ± 0.141 | 0.100 ± 0.000 |")
    assert "| te-full | 1 | never seen |" in lines and "| cpv-full | 2 | 0.950 ± 0.071 |" in lines
    assert "over runs" in lines[0] and "±" not in markdown([row("te-full")]).splitlines()[0]  # of one run, no mean
    assert "ROC" not in markdown([row("te-full", done=False)])


def test_the_table_for_people():
    assert table(row("cpv-full")).row_count == table(row("cpv-full", done=False)).row_count + 1


def test_measures_in_a_file(naive, tmp_path):
    out = tmp_path / "measure.json"
    [found] = measure([naive], out=out)
    assert found["without"] == WITHOUT and found["training"]["config"]["agent"] == "naive" and found["made"]["commit"]
    assert json.loads(out.read_text())["rows"] == [found] == measure([naive.rstrip("/")], out=out)
    assert WITHOUT in out.with_suffix(".md").read_text()
    with pytest.raises(InputError, match="crafting, tabletop"):
        measure(["crafting"], out=out)
    save_json(out, {"other": 1})
    with pytest.raises(InputError, match="no file of `planvec measure`"):
        measure([naive], out=out)
