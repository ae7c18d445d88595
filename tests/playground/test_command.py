"""`planvec play` and `planvec bench play`, from outside."""

import builtins
import signal
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest

from planvec.benchmarks import play
from planvec.cli import main


def test_the_command_serves_until_it_is_interrupted():
    command = [sys.executable, "-m", "planvec", "play", "--no-open", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        assert line.startswith("the playground is at http://127.0.0.1:")
        with urllib.request.urlopen(line.split()[4], timeout=30) as page:
            assert b"Plan arithmetic" in page.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert "Traceback" not in process.stderr.read()


def test_the_bench_measures_every_visitor(playground, monkeypatch):
    monkeypatch.setattr(play, "server", lambda: nullcontext(playground.address))
    with ThreadPoolExecutor() as threads:  # the browser's tests have an event loop in this one
        rows = threads.submit(lambda: list(play.run((3,), seconds=0.5, worlds=["crafting", "mars"]))).result()
    assert [(row.unit, row.batch, "crafting" in row.what) for row in rows] == [("frames/s", 3, True)] * 2
    assert 0 < rows[0].rate <= rows[1].rate


def play_(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["planvec", "play", "--no-open", *arguments])
    with pytest.raises(SystemExit) as stop:
        main.main()
    assert stop.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--world", "mars"), "no world is called 'mars'"),
        (("--agent", "./nowhere/"), "nowhere is not a run"),
        (("--port", "99999"), "--port 0"),
    ],
)
def test_bad_input(monkeypatch, capsys, arguments, message):
    assert message in play_(monkeypatch, capsys, *arguments)


def test_without_the_extra_it_says_what_to_install(monkeypatch, capsys):
    original = builtins.__import__

    def without(name, *arguments):
        if name == "planvec.playground.server":
            raise ModuleNotFoundError("No module named 'starlette'", name="starlette")
        return original(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without)
    assert "pip install 'planvec[play]'" in play_(monkeypatch, capsys)
