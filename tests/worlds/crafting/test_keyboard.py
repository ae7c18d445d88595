import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections import deque

import pytest

from planvec.errors import InputError
from planvec.worlds.crafting import keyboard
from planvec.worlds.crafting.world import Crafting

PROGRAM = "from planvec.worlds.crafting.keyboard import play, Crafting; play(Crafting(), 'MakeBread', seed=1)"
MOVES = {(-1, 0): "w", (1, 0): "\x1b[B", (0, -1): "\x1bOD", (0, 1): "D"}  # letters and arrows in both codes


class Player:
    """The game in a terminal of its own."""

    def __init__(self, program=PROGRAM):
        self.master, self.slave = pty.openpty()
        self.before = termios.tcgetattr(self.slave)
        self.output = ""
        self.process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            env=os.environ | {"NO_COLOR": "1", "LINES": "24", "COLUMNS": "80"},
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def type(self, keys):
        os.write(self.master, keys.encode())

    def wait_for(self, text):
        """Read until the text is on the screen, or below it."""
        deadline = time.monotonic() + 60
        while text not in self.screen:
            assert time.monotonic() < deadline, f"'{text}' did not come; the screen is {self.screen!r}"
            if select.select([self.master], [], [], 0.1)[0]:
                self.output += os.read(self.master, 65536).decode()

    @property
    def screen(self):
        """What was drawn last."""
        return self.output.rpartition("\x1b[H")[2]

    @property
    def board(self):
        """The letters of the board, row by row, and the agent's cell."""
        rows = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.screen).split("\r\n")[:10]
        agent = next((i, row.index("@") // 2) for i, row in enumerate(rows) if "@" in row)
        return [row[1:20:2] for row in rows], agent

    def walk_to(self, letter):
        """The keys that lead over empty cells to the nearest such thing."""
        rows, start = self.board
        paths = deque([(start, "")])
        seen = {start}
        while paths:
            (row, column), keys = paths.popleft()
            if rows[row][column] == letter:
                return keys
            for (down, right), key in MOVES.items():
                cell = row + down, column + right
                inside = 0 <= cell[0] < 10 and 0 <= cell[1] < 10
                if inside and cell not in seen and rows[cell[0]][cell[1]] in (".", letter):
                    seen.add(cell)
                    paths.append((cell, keys + key))
        raise AssertionError(f"no way to {letter}")

    def assert_ended_cleanly(self, summary):
        self.wait_for(f"{keyboard.CLOSE}{summary}")
        assert self.process.wait(timeout=30) == 0
        assert termios.tcgetattr(self.slave) == self.before
        assert "Traceback" not in self.output


def test_a_whole_game():
    with Player() as player:
        player.wait_for("[ ] MakeBread")
        assert termios.tcgetattr(player.slave)[3] & (termios.ECHO | termios.ICANON) == 0

        player.type("?é\x1b[Z")  # means nothing
        to_axe = player.walk_to("A")
        player.type(to_axe + "e")
        player.wait_for("holding: axe")
        player.type("q")
        player.wait_for("holding: nothing")
        player.type(" ")
        player.wait_for("holding: axe")

        to_wheat = player.walk_to("W")
        player.type(to_wheat)
        player.wait_for("[x] MakeBread")
        assert "Task done!" in player.screen
        player.type("wasdx")  # only x means something now
        steps = len(keyboard.KEY.findall(to_axe + to_wheat)) + 3
        player.assert_ended_cleanly(f"MakeBread: skills done: 1 of 1, steps: {steps}, extras: 0")


def test_a_new_scene_and_two_ways_to_interrupt():
    with Player(f"{PROGRAM}; play(Crafting(), 'MakeBread', seed=2)") as player:
        player.wait_for("[ ] MakeBread")
        before = player.board
        player.type("d")
        player.wait_for("steps: 1")
        player.type("r")
        player.wait_for("steps: 0")
        assert player.board != before
        player.type("\x03")
        player.wait_for(f"{keyboard.CLOSE}MakeBread: skills done: 0 of 1, steps: 0, extras: 0")

        player.output = player.output.rpartition("extras")[2]
        player.wait_for("[ ] MakeBread")
        player.process.send_signal(signal.SIGINT)
        player.assert_ended_cleanly("MakeBread: skills done: 0 of 1")


def test_an_error_restores_the_terminal():
    broken = "from planvec.worlds.crafting import keyboard; keyboard._screen = None; " + PROGRAM
    with Player(broken) as player:
        player.wait_for("TypeError")
        player.process.wait(timeout=30)
        assert termios.tcgetattr(player.slave) == player.before
        assert keyboard.CLOSE in player.output


def test_without_a_terminal(monkeypatch):
    with open(os.devnull) as nowhere:
        monkeypatch.setattr(sys, "stdin", nowhere)
        with pytest.raises(InputError, match="needs a terminal"):
            keyboard.play(Crafting(), "MakeBread", seed=0)


def test_on_windows(monkeypatch):
    monkeypatch.setattr(keyboard, "termios", None)
    with pytest.raises(InputError, match="WSL"):
        keyboard.play(Crafting(), "MakeBread", seed=0)


def test_a_task_that_does_not_exist():
    with pytest.raises(ValueError, match="no skill is called 'Fly'"):
        keyboard.play(Crafting(), "Fly", seed=0)
