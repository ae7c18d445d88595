import json
import subprocess
import sys

import pytest

from planvec.agents import AGENTS
from planvec.analysis import corpus, probes
from planvec.cli import console, main
from planvec.cli.learning import COMPILING, Display
from planvec.evaluation.scores import Score
from planvec.tables import running
from planvec.training import loading, loop, runs
from planvec.training.config import Config
from planvec.training.loop import Diverged
from planvec.worlds import make

TEN = tuple(name for name in AGENTS if name != "potential")  # the paper's models


def planvec(*arguments, monkeypatch=None, code=0):
    """Run a command in this process; returns nothing, checks the exit code."""
    monkeypatch.setattr(sys, "argv", ["planvec", *map(str, arguments)])
    if code:
        with pytest.raises(SystemExit) as stop:
            main.main()
        assert stop.value.code == code
    else:
        main.main()


def test_collect_and_inspect(tmp_path, monkeypatch, capsys):
    data = tmp_path / "data"
    collect = ("collect", "crafting", "--pairs", 32, "--seed", 4, "--out", data)
    planvec(*collect, monkeypatch=monkeypatch)
    printed = capsys.readouterr()
    assert "32 pairs" in printed.out and "attempts" in printed.out and "collecting" in printed.err
    planvec("collect", "--inspect", data, monkeypatch=monkeypatch)
    assert "32 pairs" in capsys.readouterr().out
    planvec(*collect, monkeypatch=monkeypatch, code=2)
    assert "complete already" in capsys.readouterr().err


def test_collect_play(tmp_path, monkeypatch, capsys):
    collect = ("collect", "crafting", "--play", "--recordings", 6, "--skills", 5, "--out", tmp_path / "play")
    planvec(*collect, monkeypatch=monkeypatch)
    assert "6 recordings in" in capsys.readouterr().out
    planvec("collect", "--inspect", tmp_path / "play", monkeypatch=monkeypatch)
    assert "6 recordings of play" in capsys.readouterr().out
    train = ("train", "crafting", "--data", tmp_path / "play", "--out", tmp_path / "run")
    planvec(*train, monkeypatch=monkeypatch, code=2)
    assert "play, and no pairs: train on it with --segments random" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("collect",), "say which world"),
        (("collect", "mars", "--out", "x"), "no world is called 'mars'"),
        (("collect", "crafting", "--out", "x", "--skills", "4-2"), "write for example"),
        (("collect", "crafting", "--out", "x", "--noise", "2"), "noise"),
        (("collect", "crafting", "--out", "x", "--recordings", "4"), "add --play"),
        (("collect", "crafting", "--out", "x", "--play", "--pairs", "4"), "play has no pairs"),
        (("collect", "--inspect", "nowhere"), "nowhere"),
        (("render", "crafting", "--task", "Fly", "--gif", "x.gif"), "no skill is called 'Fly'"),
        (("render", "crafting"), "--gif"),
        (("render", "crafting", "--save", "x.gif"), "ends in .safetensors"),
        (("act", "crafting", "--demo", "A=ChopTree"), "--plan"),
        (("act", "crafting", "--plan", "A", "--demo", "ChopTree"), "names no demonstration"),
        (("act", "crafting", "--plan", "A", "--demo", "A=./x.safetensors"), "there is no file x.safetensors"),
        (("act", "crafting", "--plan", "A", "--demo", "A=ChopTree", "--gif", "x.png"), "ends in .gif"),
        (("act", "tabletop", "--plan", "A", "--demo", "A=x", "--agent", "crafting"), "lives in 'crafting'"),
        (("measure", "mars"), "no shipped agent is called 'mars'"),
        (("measure", "crafting", "--tasks", "1"), "at least 8 tasks"),
        (("measure", "crafting", "--out", "x.md"), "ends in .json"),
        (("measure",), "say which agent"),
        (("probe", "./mars"), "mars is not a run"),
        (("train", "crafting"), "say where to"),
        (("train", "crafting", "--jitter", "2", "--out", "x"), "--segments random"),
        (("train", "crafting", "--agent", "gpt", "--out", "x"), "there is no agent 'gpt'"),
        (("evaluate", "mars"), "no shipped agent is called 'mars'"),
        (("evaluate", "./mars"), "mars is not a run"),
        (("evaluate", "crafting", "--conditions", "many"), "not a condition"),
        (("reproduce", "crafting", "--out", "x", "--agents", "gpt"), "there is no agent 'gpt'"),
        (("reproduce", "mars"), "no world is called 'mars'"),
        (("bench", "mars"), "invalid choice 'mars'"),
    ],
)
def test_bad_input_is_one_line_and_code_2(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    planvec(*arguments, monkeypatch=monkeypatch, code=2)
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error and len(error.strip().splitlines()) == 1
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


def test_render(tmp_path, monkeypatch):
    gif = tmp_path / "out.gif"
    planvec("render", "crafting", "--task", "ChopTree,BuildHouse,EatBread", "--gif", gif, monkeypatch=monkeypatch)
    assert gif.read_bytes().startswith(b"GIF89a")


def test_act(tmp_path, monkeypatch, capsys):
    saved, gif = tmp_path / "bread.safetensors", tmp_path / "out.gif"
    planvec("render", "crafting", "--task", "MakeBread", "--save", saved, monkeypatch=monkeypatch)
    capsys.readouterr()
    act = ("act", "crafting", "--plan", "A + B - C", "--seed", 3, "--gif", gif)
    act += ("--demo", "A=ChopTree,MakeBread", "--demo", "B=BreakRock", "--demo", f"C={saved}")
    planvec(*act, "--json", monkeypatch=monkeypatch)
    report = json.loads(capsys.readouterr().out)
    assert report["demos"] == {"A": ["ChopTree", "MakeBread"], "B": ["BreakRock"], "C": ["MakeBread"]}
    assert report["wanted"] == ["ChopTree", "BreakRock"] and report["seed"] == 3 and report["agent"] == "potential"
    assert report.keys() >= {"world", "plan", "skills_done", "success", "exact", "steps", "norm"}
    assert report.keys() >= {"success_at", "after", "stays", "stopped"} and report["stop"] == "own"
    assert gif.read_bytes().startswith(b"GIF89a")
    planvec(*act[:-2], *("--task", "EatBread,ChopTree", "--stop", "probe"), *act[-2:], monkeypatch=monkeypatch)
    printed = capsys.readouterr().out
    assert "wanted of A + B - C: EatBread, ChopTree" in printed and "and stopped" in printed


def test_a_mistake_in_a_plan_is_pointed_at(monkeypatch, capsys):
    planvec("act", "crafting", "--plan", "A + 2 * * B", "--demo", "A=ChopTree", monkeypatch=monkeypatch, code=2)
    line, shown, caret = capsys.readouterr().err.rstrip().splitlines()
    assert line == "planvec: expected a name, a number or (, found '*'"
    assert shown.strip() == "A + 2 * * B" and shown[caret.index("^") :] == "* B"


def test_measure(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(corpus, "BATCH", 64)
    saved = tmp_path / "measure.json"
    measure = ("measure", "crafting", "--tasks", 16, "--episodes", 0, "--out", saved, "--json")
    planvec(*measure, monkeypatch=monkeypatch)
    report = json.loads(capsys.readouterr().out)
    assert report["agent"] == "potential" and report["sums"]["retrieval"] > 0.9 and report["parts"]["error"] < 0.5
    assert report["sums"]["candidates"] > 8 and set(report["counts"]["r2_by_skill"]) == set(make("crafting").skills)
    assert report.keys() >= {"world", "tasks", "seed", "leaks", "demonstrations", "training", "made"}
    assert report["probe"]["error"] < 0.5 and set(report["probe"]["error_by_skill"]) == set(make("crafting").skills)
    assert f"| potential | 1 | {report['sums']['retrieval']:.3f} |" in saved.with_suffix(".md").read_text()
    monkeypatch.setattr("planvec.analysis.reports.figures", None)  # what is there already is not measured again
    planvec(*measure, monkeypatch=monkeypatch)
    assert json.loads(capsys.readouterr().out) == report == json.loads(saved.read_text())["rows"][0]


def test_demo(tmp_path, monkeypatch, capsys):
    planvec("demo", "--out", tmp_path, "--episodes", 2, monkeypatch=monkeypatch)
    printed = capsys.readouterr().out
    assert all(condition in printed for condition in make("crafting").conditions) and "sum_of_eight.gif" in printed
    assert {path.name for path in tmp_path.iterdir()} == {"sum_of_eight.gif", "scores.png"}


def test_train_and_evaluate(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(probes, "DEMOS", 16)
    monkeypatch.setattr(corpus, "BATCH", 16)
    data, run = tmp_path / "data", tmp_path / "run"
    planvec("collect", "crafting", "--pairs", 32, "--out", data, monkeypatch=monkeypatch)
    train = ("train", "crafting", "--agent", "te-plain", "--data", data, "--out", run, "--embedding", 16)
    train += ("--samples", 16, "--batch", 8, "--interval", 1, "--episodes", 0, "--deterministic")
    planvec(*train, monkeypatch=monkeypatch)
    written = {path.name for path in run.iterdir()}
    assert {"config.json", "weights.safetensors", "metrics.jsonl", "probe.safetensors"} <= written
    capsys.readouterr()
    evaluate = ("evaluate", run, "--conditions", "1,1+1", "--episodes", 4)
    planvec(*evaluate, "--json", monkeypatch=monkeypatch)
    report = json.loads(capsys.readouterr().out)
    assert {"world", "agent", "seed", "sampled", "conditions"} <= report.keys() and report["agent"] == "te-plain"
    assert set(report["conditions"]) == {"1", "1+1"}
    assert report["conditions"]["1"].keys() >= {"success", "exact", "stops", "episodes", "horizon", "ci95"}
    planvec("evaluate", run, "--task", "EatBread+ChopTree", "--episodes", 4, monkeypatch=monkeypatch)
    assert "EatBread+ChopTree" in capsys.readouterr().out.replace("\n", "")
    planvec(*train, "--seed", 1, monkeypatch=monkeypatch, code=2)
    assert "a training with seed 0, not 1" in capsys.readouterr().err.replace("\n", " ")
    planvec(*evaluate, "--control", "--task", "EatBread", monkeypatch=monkeypatch, code=2)
    assert "EatBread is left out: all episodes are of one task" in capsys.readouterr().err

    def diverge(*_):
        raise Diverged("a loss is not a number")

    monkeypatch.setattr(loop, "train", diverge)
    planvec(*train, monkeypatch=monkeypatch, code=1)
    assert capsys.readouterr().err.endswith("planvec: a loss is not a number\n")
    planvec("probe", "crafting", monkeypatch=monkeypatch, code=2)
    assert "shipped agents have their probe" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("stop", "ends"),
    [("own", "each to its horizon"), ("probe", "each until its probe reads nothing left"), ("never", "each to its")],
)
def test_who_may_end_an_episode_is_told_with_its_scores(stop, ends, monkeypatch, capsys):
    asked = []

    def evaluate(agents, world, trial, seed, greedy, control, centred, stop):
        asked.append(stop)
        return [Score(success=0.75, exact=0.5, stops=0.25, diverged=0.0, episodes=4, horizon=9)]

    monkeypatch.setattr(console, "evaluate", evaluate)
    monkeypatch.setattr(console, "random_trial", lambda *_: None)
    planvec("evaluate", "crafting-cpv-full", "--stop", stop, monkeypatch=monkeypatch)
    printed = capsys.readouterr().out
    assert ends in " ".join(printed.split()) and all(share in printed for share in ("75", "50", "25"))
    assert ("paper's" in printed) == (stop != "probe")  # figures of another kind do not stand beside the paper's
    planvec("evaluate", "crafting-cpv-full", "--stop", stop, "--json", monkeypatch=monkeypatch)
    assert json.loads(capsys.readouterr().out)["stop"] == stop and set(asked) == {stop}


def test_sizes_are_those_of_the_world(monkeypatch):
    for arguments, sizes in (
        (["tabletop"], (64, 10e6, 0.3)),
        (["crafting"], (512, 60e6, 0.1)),
        (["--embedding", "8", "--weight-decay", "0"], (8, 60e6, 0)),
    ):
        monkeypatch.setattr(sys, "argv", ["planvec", "train", *arguments])
        config = main._parse().config.resolved()
        assert (config.embedding, config.samples, config.weight_decay) == sizes


def test_agents(monkeypatch, capsys):
    planvec("agents", monkeypatch=monkeypatch)
    printed = capsys.readouterr().out
    assert all(name in printed for name in AGENTS) and len(AGENTS) == 11


def test_worlds(monkeypatch, capsys):
    planvec("worlds", monkeypatch=monkeypatch)
    assert "crafting" in capsys.readouterr().out


def test_an_agent_is_listed_with_the_world_that_it_was_trained_in(monkeypatch, capsys):
    """Whatever it is called."""
    homes = {"crafting": "tabletop", "x": "crafting"}
    monkeypatch.setattr(loading, "shipped", lambda: list(homes))
    monkeypatch.setattr(loading, "find", lambda name: name)
    monkeypatch.setattr(runs, "read_config", lambda folder: Config(world=homes[folder]))
    planvec("worlds", monkeypatch=monkeypatch)
    first, second = capsys.readouterr().out.split("tabletop: ")
    assert "trained agents: x\n" in first.replace(" \n", "\n").replace("  ", "")
    assert "trained agents: crafting" in second and "trained agents: crafting" not in first


@pytest.mark.parametrize(
    ("arguments", "agents", "control"),
    [
        ((), TEN, True),
        (("--agents", "all"), TEN, True),
        (("--only-models",), TEN, False),
        (("--agents", "naive, cpv-full"), ("naive", "cpv-full"), True),
        (("--agents", "cpv-full", "--sweep", "ctr=1"), (), False),
        (("--agents", "potential"), ("potential",), False),
        (("--agents", "cpv-full", "--extras", "keep"), ("cpv-full, extras kept",), False),
    ],
)
def test_a_world_of_no_table_is_reproduced(arguments, agents, control, tmp_path, monkeypatch, capsys):
    asked = []

    def reproduce(rows, folder, conditions, episodes, pairs, say, watch):
        asked.extend(rows)
        assert folder.is_dir() and conditions == make("doom-rooms").conditions
        (folder / "table.md").write_text("the table")

    monkeypatch.setattr(running, "reproduce", reproduce)
    command = ("reproduce", "doom-rooms", "--out", tmp_path / "table", *arguments)
    planvec(*command, monkeypatch=monkeypatch, code=0 if agents else 2)
    labels = [row.label for row in asked if not row.control]
    assert labels == list(agents) and any(row.control for row in asked) == control
    assert {row.config.world for row in asked} <= {"doom-rooms"}
    assert not agents or capsys.readouterr().out == "the table\n"


def test_a_training_tells_how_far_it_is_and_how_well_it_does(capsys):
    told = []
    display = Display("naive", lambda done, total=None, description=None: told.append((done, description)))
    row = {"loss": 1.234, "valid_accuracy": 0.5, "samples_per_second": 2000.0}
    for step in (0, 1, 3):
        display.tick(step)
    display.watch(4, [row])
    display.tick(5)
    display.watch(6, [row | {"success_1+1": 0.25}])
    well = "loss 1.23 valid 50% 2,000/s"
    first = (COMPILING, COMPILING, "training naive")
    assert told == [*zip((0, 1, 3), first, strict=True), (4, well), (5, well), (6, well)] and display.reached == 6
    assert capsys.readouterr().err == "after 6 updates: success 25% at 1+1\n"


def test_help_teaches():
    run = subprocess.run([sys.executable, "-m", "planvec", "collect", "--help"], capture_output=True, text=True)
    assert run.returncode == 0 and "Share of the expert's actions" in run.stdout
