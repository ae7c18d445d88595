"""`planvec practice` on the command line: from one run's folder to another that every command takes."""

import json

import jax
import pytest
from cli.test_main import planvec
from oracles.lamps import Lamps

from planvec.agents import build, zoo
from planvec.agents.metric import METRIC
from planvec.agents.probe import PROBE
from planvec.agents.residual import ResidualPolicy
from planvec.analysis import corpus, probes
from planvec.cli.practising import Display
from planvec.data import folders
from planvec.io.checkpoints import save_json, save_tree
from planvec.training import practice
from planvec.training.loop import Diverged
from planvec.training.runs import CONFIG, METRICS, WEIGHTS
from planvec.worlds import make

WORLD = "oracles.lamps:Lamps"
SMALL = ("--sums", "1,1+1", "--pool", 8, "--envs", 4, "--rollout", 8, "--minibatch", 32, "--interval", 1)


class Small(ResidualPolicy):
    def __init__(self, side, colours, plan, head, *, key):
        super().__init__(side, colours, plan, head, width=8, depth=1, key=key)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run's folder of an untrained agent that stops, whose policy compiles quickly."""
    monkeypatch.setattr(zoo, "ResidualPolicy", Small)
    folder = tmp_path / "run"
    folder.mkdir()
    save_json(folder / CONFIG, {"config": {"world": WORLD, "agent": "potential", "embedding": 8}})
    save_tree(folder / WEIGHTS, build("potential", Lamps.space, 8, key=jax.random.key(0)))
    return folder


def test_practise_and_evaluate(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(probes, "DEMOS", 16)
    monkeypatch.setattr(corpus, "BATCH", 16)
    data, out = tmp_path / "data", tmp_path / "practised"
    folders.collect(folders.Recipe(WORLD, 16, (1, 2), 0.0, "discard", 0), data, make(WORLD))
    practise = ("practice", run, *SMALL, "--steps", 64, "--data", data, "--out", out, "--episodes", 4)
    planvec(*practise, monkeypatch=monkeypatch)
    printed = capsys.readouterr()
    assert f"score it again: planvec evaluate {out}/" in printed.out
    assert "each until the agent stops" in " ".join(printed.out.split())
    assert "of a skill" in printed.err
    written = {path.name for path in out.iterdir()}
    assert {CONFIG, WEIGHTS, METRICS, METRIC, PROBE, "scores.json"} <= written
    described = json.loads((out / CONFIG).read_text())
    assert described["config"]["agent"] == "potential" and described["practice"]["sums"] == "1,1+1"
    assert described["data"]["pairs"] == 16
    planvec("evaluate", out, "--conditions", "1", "--episodes", 4, "--stop", "probe", monkeypatch=monkeypatch)
    assert "each until its metric reads nothing left" in " ".join(capsys.readouterr().out.split())
    before = (out / METRICS).read_bytes()
    planvec(*practise[:-1], 0, monkeypatch=monkeypatch)  # it is complete already
    assert (out / METRICS).read_bytes() == before
    planvec(*practise, "--seed", 1, monkeypatch=monkeypatch, code=2)
    assert "another practice" in capsys.readouterr().err.replace("\n", " ")


def test_mistakes_are_told_before_anything_is_prepared(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(practice, "metric_pairs", None)
    out = ("--out", tmp_path / "out")
    for arguments, message in {
        (run,): "say where to: planvec practice",
        (run, *out, "--sums", "1,x"): "'x' is not a condition",
        (run, *out, "--sums", "3"): "nobody demonstrates more than 2 skills",
        (run, *out, "--envs", 3): "is no multiple of",
        ("crafting-te-full", *out): "act on what is left of a plan",
        ("doom", *out, "--reward", "labels"): "doom is a simulator",
        ("./mars", *out): "mars is not a run",
    }.items():
        planvec("practice", *arguments, monkeypatch=monkeypatch, code=2)
        error = " ".join(capsys.readouterr().err.split())
        assert message in error and "Traceback" not in error
    assert not (tmp_path / "out").exists()


def test_what_goes_wrong_is_told_and_what_is_stopped_is_safe(run, tmp_path, monkeypatch, capsys):
    command = ("practice", run, *SMALL, "--out", tmp_path / "out", "--episodes", 0)

    def diverge(*_, tick, **__):
        tick(3)
        raise Diverged("practice has diverged")

    def interrupt(*_, tick, **__):
        tick(3)
        raise KeyboardInterrupt

    monkeypatch.setattr(practice, "practise", diverge)
    planvec(*command, monkeypatch=monkeypatch, code=1)
    assert capsys.readouterr().err.endswith("planvec: practice has diverged\n")
    monkeypatch.setattr(practice, "practise", interrupt)
    planvec(*command, monkeypatch=monkeypatch, code=1)
    assert "stopped after 3 rounds, which are safe" in capsys.readouterr().err


def test_it_tells_how_far_it_is_and_how_well_it_goes():
    told = []
    display = Display(lambda done, total=None, description=None: told.append((done, description)))
    display.tick(1)
    row = {"exact_by_plan": 0.875, "exact_by_labels": 0.5, "return": 1.25, "kl": 0.01234, "steps_per_second": 2000.0}
    display.watch(2, row)
    display.tick(3)
    well = "exact 88% by the plan, 50% in truth, return 1.2, KL 0.0123, 2,000 steps/s"
    assert [done for done, _ in told] == [1, 2, 3] and "compiling" in told[0][1]
    assert told[1][1] == told[2][1] == well and display.reached == 3
