"""One ViZDoom engine that draws states. It is put into each of them anew and remembers none.

Nothing of an engine outlives its process, however that ends: the engine is started so that the kernel ends it with its
parent, and as soon as it runs, all its names are taken away: of its shared memory, and of the folder with its files.
Until then another process watches over them.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from contextlib import chdir
from pathlib import Path

import numpy as np

from planvec.errors import InputError
from planvec.worlds.doom.level import CLOSET, LEVELS, PLACE_AGENT, PLACE_MARKER, SCALE, WAYPOINTS
from planvec.worlds.doom.motion import HEADINGS, State

try:
    import vizdoom
except ModuleNotFoundError as error:
    raise InputError("the doom world needs ViZDoom: pip install 'planvec[doom]'") from error

ENGINE_ERRORS = (
    vizdoom.ViZDoomErrorException,
    vizdoom.ViZDoomIsNotRunningException,
    vizdoom.ViZDoomUnexpectedExitException,
)
SMALL = (160, 120)  # width and height; the engine has none smaller
LARGE = (320, 240)

_GUARD = [sys.executable, "-IS", str(Path(__file__).with_name("guard.py"))]
_SWEEP = [sys.executable, "-IS", str(Path(__file__).with_name("sweep.py"))]
_HIDDEN = (round(SCALE * CLOSET[0]), round(SCALE * CLOSET[1]))
_ANGLES = np.rint(65536 / HEADINGS * np.arange(HEADINGS)).astype(int).tolist()  # as fractions of Doom's circle


class Engine:
    """Draws states of one level, 80×60 as agents see them, or `large`, 320×240 for people."""

    def __init__(self, level: str, large: bool = False) -> None:
        self._large = large
        self._shown = [_HIDDEN] * len(WAYPOINTS)  # where the markers are
        with (
            tempfile.TemporaryDirectory(prefix="planvec-doom-") as folder,
            subprocess.Popen([*_SWEEP, folder], stdin=subprocess.PIPE, start_new_session=True) as sweeper,
        ):
            self.game = _start(level, LARGE if large else SMALL, Path(folder))
            _forget_shared_memory()
            assert sweeper.stdin is not None  # as it is a pipe
            sweeper.stdin.write(b"started\n")

    def draw(self, states: State) -> np.ndarray:
        """A picture of each. uint8 [state, height, width, 3]"""
        agents, markers, visited = (part.tolist() for part in states)
        return np.stack([self._draw(*state) for state in zip(agents, markers, visited, strict=True)])

    def close(self) -> None:
        self.game.close()

    def pose(self) -> tuple[float, float, float]:
        """Where the engine has the agent: x and y in map units, and degrees."""
        variables = self.game.get_state().game_variables
        assert variables is not None  # as `_start` asks for them
        x, y, degrees = variables
        return x, y, degrees

    def _draw(self, agent: list[int], markers: list[list[int]], visited: list[bool]) -> np.ndarray:
        for number, (x, y) in enumerate(markers):
            self._show(number, _HIDDEN if visited[number] else (x, y))
        self._run(PLACE_AGENT, *agent[:2], _ANGLES[agent[2]])
        self.game.advance_action(1)  # scripts do their work at the beginning of a tic, pictures are drawn at its end
        picture = self.game.get_state().screen_buffer
        return picture.transpose(1, 2, 0) if self._large else halve(picture)

    def _show(self, number: int, place: tuple[int, int]) -> None:
        """Move a marker, if it is elsewhere: between two pictures most are not."""
        if self._shown[number] != place:
            self._run(PLACE_MARKER, number + 1, *place)
            self._shown[number] = place

    def _run(self, script: int, *arguments: int) -> None:
        self.game.send_game_command(f"puke {-script} {' '.join(map(str, arguments))}")  # negative: any number in a tic


def halve(picture: np.ndarray) -> np.ndarray:
    """Half as wide and high, by integer adds. uint8 [3, height, width] to [height / 2, width / 2, 3]"""
    pairs = picture.view(np.uint16)  # neighbours in a row, whichever comes first
    rows = (pairs & 255) + (pairs >> 8)
    means = (rows[:, ::2] + rows[:, 1::2] + 2) >> 2
    return means.astype(np.uint8).transpose(1, 2, 0)


def _start(level: str, size: tuple[int, int], folder: Path) -> vizdoom.DoomGame:
    """An engine that runs, its player in the level."""
    wad = folder / "level.wad"
    wad.write_bytes(LEVELS[level].wad)
    game = vizdoom.DoomGame()
    game.set_vizdoom_path(str(_guarded(vizdoom.exe_path, folder)))
    game.set_doom_game_path(str(Path(vizdoom.root_path) / "freedoom2.wad"))
    game.set_doom_scenario_path(str(wad))
    game.set_doom_map("MAP01")
    game.set_doom_config_path(os.devnull)
    game.set_screen_resolution(getattr(vizdoom.ScreenResolution, "RES_{}X{}".format(*size)))
    game.set_screen_format(vizdoom.ScreenFormat.CRCGCB)
    for part in ("hud", "weapon", "crosshair", "decals", "particles", "effects_sprites", "messages", "screen_flashes"):
        getattr(game, f"set_render_{part}")(False)
    game.set_window_visible(False)
    game.set_sound_enabled(False)
    game.set_available_buttons([vizdoom.Button.TURN_LEFT_RIGHT_DELTA, vizdoom.Button.MOVE_FORWARD_BACKWARD_DELTA])
    variables = vizdoom.GameVariable
    game.set_available_game_variables([variables.POSITION_X, variables.POSITION_Y, variables.ANGLE])
    game.set_episode_start_time(10)  # before that the player cannot move
    game.set_episode_timeout(0)
    with chdir(folder):  # where the engine leaves files of its own
        game.init()
    return game


def _guarded(engine: str, folder: Path) -> Path:
    """A program that is the engine, but dies with this process."""
    script = folder / "engine"
    command = [*_GUARD, str(os.getpid()), engine]
    script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    script.chmod(0o700)
    return script


def _forget_shared_memory() -> None:
    """Take its name from the memory that the engine shares with this process: it then goes when both have gone."""
    if sys.platform == "linux":
        used = {line.split(maxsplit=5)[-1] for line in Path("/proc/self/maps").read_text().splitlines()}
        for path in used:
            if path.startswith("/dev/shm/ViZDoom") and not path.endswith("(deleted)"):
                os.unlink(path)
