import subprocess
import sys

import pytest

from planvec import cli


def planvec(*arguments, monkeypatch=None, code=0):
    """Run a command in this process; returns nothing, checks the exit code."""
    monkeypatch.setattr(sys, "argv", ["planvec", *map(str, arguments)])
    if code:
        with pytest.raises(SystemExit) as stop:
            cli.main()
        assert stop.value.code == code
    else:
        cli.main()


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("collect",), "say which world"),
        (("collect", "mars", "--out", "x"), "no world is called 'mars'"),
        (("collect", "crafting", "--out", "x", "--skills", "4-2"), "write for example"),
        (("collect", "crafting", "--out", "x", "--noise", "2"), "noise"),
        (("collect", "--inspect", "nowhere"), "nowhere"),
        (("render", "crafting", "--task", "Fly", "--gif", "x.gif"), "no skill is called 'Fly'"),
        (("render", "crafting"), "--gif"),
    ],
)
def test_bad_input_is_one_line_and_code_2(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    planvec(*arguments, monkeypatch=monkeypatch, code=2)
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error and len(error.strip().splitlines()) == 1
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


def test_render_and_demo(tmp_path, monkeypatch, capsys):
    gif = tmp_path / "out.gif"
    planvec("render", "crafting", "--task", "ChopTree,BuildHouse,EatBread", "--gif", gif, monkeypatch=monkeypatch)
    assert gif.read_bytes().startswith(b"GIF89a")
    planvec("demo", "--out", tmp_path / "demo", monkeypatch=monkeypatch)
    assert (tmp_path / "demo" / "expert.gif").exists() and "expert.gif" in capsys.readouterr().out


def test_worlds(monkeypatch, capsys):
    planvec("worlds", monkeypatch=monkeypatch)
    assert "crafting" in capsys.readouterr().out


def test_help_teaches():
    run = subprocess.run([sys.executable, "-m", "planvec", "collect", "--help"], capture_output=True, text=True)
    assert run.returncode == 0 and "Share of the expert's actions" in run.stdout
