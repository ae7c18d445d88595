"""The command line. Every command is one call into the library."""

import io
import re
import sys
from contextlib import redirect_stderr
from typing import Any

import tyro
from tyro.conf import FlagCreatePairsOff

import planvec
from planvec.cli.bench import Bench
from planvec.cli.console import complain
from planvec.cli.demonstrating import Collect, Render
from planvec.cli.learning import Probe, Train
from planvec.cli.listing import Agents, Worlds
from planvec.cli.practising import Practice
from planvec.cli.scoring import Demo, Evaluate, Measure, Reproduce
from planvec.cli.trying import Act, Play
from planvec.errors import Failure, InputError
from planvec.training import compilation

COMMANDS = {
    "demo": Demo,
    "collect": Collect,
    "train": Train,
    "practice": Practice,
    "evaluate": Evaluate,
    "reproduce": Reproduce,
    "probe": Probe,
    "measure": Measure,
    "act": Act,
    "play": Play,
    "render": Render,
    "bench": Bench,
    "worlds": Worlds,
    "agents": Agents,
}


def main() -> None:
    """Exit code 0: done; 2: bad input, with a line that says what to change; 1: anything else."""
    if sys.argv[1:] == ["--version"]:
        print(f"planvec {planvec.__version__}")
        return
    command = _parse()
    compilation.keep_compiled_programs()
    try:
        command.run()
    except InputError as error:
        complain(error)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(1)
    except (OSError, Failure) as error:
        complain(error)
        sys.exit(1)


def _parse() -> Any:
    """The command that was asked for. What tyro says of bad input in a box of many lines becomes one line."""
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            return tyro.extras.subcommand_cli_from_dict(
                COMMANDS,
                prog="planvec",
                description="Plans from demonstrations, and arithmetic with them.",
                args=sys.argv[1:] or ["--help"],
                config=(FlagCreatePairsOff,),
            )
    except SystemExit as stop:
        if stop.code:
            _, *lines = re.sub(r"[─│╭╮╰╯]+|-{3,}", " ", said.getvalue()).strip().splitlines()  # less the box's title
            text = " ".join(" ".join(lines).split()).replace("__tyro-dummy-inner__.", "")
            complain(text)
        raise
