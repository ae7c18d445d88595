"""Play the crafting world in a terminal."""

import itertools
import os
import re
import select
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import jax
import numpy as np

from planvec.errors import InputError
from planvec.tasks import Task, encode_tasks, parse_task, show_task
from planvec.worlds.crafting import game, render
from planvec.worlds.crafting.game import Game
from planvec.worlds.crafting.rules import DOWN, DROP, LEFT, PICKUP, RIGHT, UP
from planvec.worlds.crafting.world import Crafting

try:
    import termios
except ImportError:  # on Windows
    termios = None

ACTION_OF = {
    **dict.fromkeys(("w", "\x1b[A", "\x1bOA"), UP),
    **dict.fromkeys(("s", "\x1b[B", "\x1bOB"), DOWN),
    **dict.fromkeys(("a", "\x1b[D", "\x1bOD"), LEFT),
    **dict.fromkeys(("d", "\x1b[C", "\x1bOC"), RIGHT),
    **dict.fromkeys(("e", " "), PICKUP),
    "q": DROP,
}
NEW_SCENE = "r"
QUIT = ("x", "\x03", "\x04")  # Ctrl-C and Ctrl-D as well
HELP = "arrows, WASD: move   e, space: pick up   q: put down   r: new scene   x: quit"
KEY = re.compile(r"\x1b[\[O][0-9;]*[A-Za-z~]|.", re.DOTALL)
UNFINISHED = re.compile(rb"\x1b([\[O][0-9;]*)?\Z")
PATIENCE = 0.05  # seconds within which the rest of an arrow key's code arrives

OPEN = "\x1b[?1049h\x1b[?25l\x1b[?7l"  # a screen of its own, no cursor, long lines cut
CLOSE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
HOME = "\x1b[H"
END_OF_LINE = "\x1b[K"  # clears what is left of the line …
END_OF_SCREEN = "\x1b[J"  # … and of the screen
PANEL = 26  # the left edge of the task beside the board
HEIGHT = 10  # how many skills stand in a column of it


def play(world: Crafting, task: str | Iterable[str], seed: int = 0) -> None:
    """Let a person do the task with the keyboard, and say at the end how it went."""
    task = parse_task(task, world.skills)
    codes = encode_tasks([task], world.skills)
    world.check_tasks(codes)
    _check_terminal()
    begin = jax.jit(partial(game.begin, world))
    advance = jax.jit(partial(game.advance, world))
    keys = (jax.random.fold_in(jax.random.key(seed), number) for number in itertools.count())
    now = begin(next(keys), codes[0])
    advance(now, UP)  # compiles, so that the first key is answered at once
    with suppress(KeyboardInterrupt), _terminal() as presses:
        _show(_screen(world, task, now))
        for press in presses:
            if press in QUIT:
                break
            if press == NEW_SCENE:
                now = begin(next(keys), codes[0])
            elif press in ACTION_OF and not _finished(now):
                now, _ = advance(now, ACTION_OF[press])
            _show(_screen(world, task, now))
    print(f"{show_task(task)}: {_summary(task, world, now)}")


def _check_terminal() -> None:
    if termios is None:
        raise InputError("playing with the keyboard works on Linux and macOS; on Windows, run it inside WSL")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InputError("playing needs a terminal: run it in one, without pipes or redirections")


def _finished(now: Game) -> bool:
    return bool(np.all(np.asarray(now.done) >= np.asarray(now.asked)))


def _extras(now: Game) -> int:
    """How many skills were done beyond the task."""
    return int(np.maximum(np.asarray(now.done, int) - np.asarray(now.asked, int), 0).sum())


def _ticks(task: Task, world: Crafting, now: Game) -> list[bool]:
    """Which of the task's entries are done; of equal ones, the first."""
    done = dict(zip(world.skills, np.asarray(now.done).tolist(), strict=True))
    return [task[: place + 1].count(skill) <= done[skill] for place, skill in enumerate(task)]


def _summary(task: Task, world: Crafting, now: Game) -> str:
    ticked = sum(_ticks(task, world, now))
    return f"skills done: {ticked} of {len(task)}, steps: {now.time}, extras: {_extras(now)}"


def _screen(world: Crafting, task: Task, now: Game) -> str:
    """Everything to see: the board, the task beside it, how it stands and what the keys do."""
    board = render.text(world.rules, jax.device_get(now.state), colour="NO_COLOR" not in os.environ)
    news = "Task done! Press r for a new scene, x to quit." if _finished(now) else ""
    lines = [*board.split("\n"), "", _summary(task, world, now), news, HELP]
    lines = lines[: shutil.get_terminal_size().lines]
    drawn = HOME + "\n".join(line + END_OF_LINE for line in lines) + END_OF_SCREEN
    width = max(map(len, task)) + 6
    for place, (skill, done) in enumerate(zip(task, _ticks(task, world, now), strict=True)):
        column, row = divmod(place, HEIGHT)
        drawn += f"\x1b[{row + 1};{PANEL + column * width}H[{'x' if done else ' '}] {skill}"
    return drawn


def _show(screen: str) -> None:
    sys.stdout.write(screen)
    sys.stdout.flush()


@contextmanager
def _terminal() -> Iterator[Iterator[str]]:
    """Keys as they are pressed, on a screen of its own; the terminal is always put back as it was."""
    assert termios is not None  # _check_terminal has seen to it
    source = sys.stdin.fileno()
    before = termios.tcgetattr(source)
    raw = termios.tcgetattr(source)
    raw[3] &= ~(termios.ICANON | termios.ECHO | termios.ISIG)
    raw[6][termios.VMIN] = 1
    raw[6][termios.VTIME] = 0
    try:
        termios.tcsetattr(source, termios.TCSADRAIN, raw)
        _show(OPEN)
        yield _presses(source)
    finally:
        termios.tcsetattr(source, termios.TCSADRAIN, before)
        _show(CLOSE)


def _presses(source: int) -> Iterator[str]:
    """The keys pressed, one by one, until the terminal is gone. An arrow key is a code of several letters."""
    while typed := os.read(source, 1024):
        while UNFINISHED.search(typed) and select.select([source], [], [], PATIENCE)[0]:
            typed += os.read(source, 1024)
        for key in KEY.findall(typed.decode(errors="replace")):
            yield key if key.startswith("\x1b") else key.lower()
