"""The command line. Every command is one call into the library."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from tyro.conf import Positional, arg

from planvec.errors import InputError

out, log = Console(), Console(stderr=True)


@dataclass
class Collect:
    """Record pairs of demonstrations by the expert into a folder. Goes on where it was stopped; never overwrites.

    Example: planvec collect crafting --pairs 40000 --out data/crafting
    """

    world: Positional[str | None] = None
    """Which world: crafting."""
    pairs: int = 40_000
    """How many pairs. The two of a pair do the same task in different scenes."""
    skills: str = "2-4"
    """How many skills a task has: a range, or one number."""
    noise: float = 0.1
    """Share of the expert's actions that are replaced by random ones."""
    extras: Literal["discard", "keep"] = "discard"
    """Demonstrations that did more than their task: discard them, or keep them (as the paper's authors do)."""
    seed: int = 0
    """The same seed gives the same bytes."""
    out: Path | None = None
    """The folder to write."""
    inspect: Path | None = None
    """Instead of collecting, say what is in this folder and draw a contact sheet of it."""

    def run(self) -> None:
        from planvec import datasets, inspection
        from planvec.tasks import parse_range

        if self.inspect:
            inspection.show(self.inspect, out)
            return
        if not self.world or not self.out:
            raise InputError("say which world and where to: planvec collect crafting --out data/crafting")
        recipe = datasets.Recipe(self.world, self.pairs, parse_range(self.skills), self.noise, self.extras, self.seed)
        with progress(f"collecting {self.world}", self.pairs, "pairs") as update:
            try:
                header = datasets.collect(recipe, self.out, update)
            except KeyboardInterrupt:
                log.print(f"stopped; whole files are safe in {self.out}, and the same command goes on from there")
                raise
        out.print(inspection.rates_table(header))
        out.print(f"{self.pairs} pairs in {self.out}")


@dataclass
class Render:
    """Watch the expert do a task, as a GIF, or play the world yourself.

    Example: planvec render crafting --task ChopTree,BuildHouse --gif out.gif
    """

    world: Positional[str] = "crafting"
    """Which world: crafting."""
    task: str = "ChopTree,MakeBread,EatBread"
    """The skills to do, separated by commas."""
    gif: Path | None = None
    """Where to write the animation."""
    interactive: bool = False
    """Play it yourself in the terminal, with the keyboard."""
    seed: int = 0
    """Another seed, another scene."""
    noise: float = 0.0
    """Share of the expert's actions that are replaced by random ones."""

    def run(self) -> None:
        from planvec.filming import film
        from planvec.worlds import make

        world = make(self.world)
        if self.interactive:
            from planvec.worlds.crafting import keyboard

            keyboard.play(world, self.task, self.seed)
        elif self.gif:
            demo = world.demonstrate(self.task, self.seed, self.noise)
            film(world, demo, self.gif)
            out.print(f"{len(demo)} steps in {self.gif}")
        else:
            raise InputError("say what to do: --gif out.gif, or --interactive")


@dataclass
class Demo:
    """The expert doing a composed task, as a GIF."""

    out: Path = Path("out")
    """The folder to write into."""

    def run(self) -> None:
        from planvec.filming import film
        from planvec.worlds import make

        self.out.mkdir(parents=True, exist_ok=True)
        world = make("crafting")
        with log.status("the expert is thinking (the first time, programs are compiled: some seconds)"):
            demo = world.demonstrate(("ChopTree", "BuildHouse", "MakeBread", "EatBread"), seed=3)
        path = self.out / "expert.gif"
        film(world, demo, path)
        out.print(f"The expert did {', '.join(demo.task)} in {len(demo)} steps: see {path}")


@dataclass
class Bench:
    """Measure speeds on this machine, beside whatever comparable is installed."""

    what: Positional[Literal["crafting"]] = "crafting"
    """What to measure."""
    batch: tuple[int, ...] = ()
    """Batch sizes to try instead of the usual ones."""
    json: Annotated[Path | None, arg(name="json")] = None
    """Also write the table to this file."""

    def run(self) -> None:
        from planvec import files
        from planvec.benchmarks import crafting, others
        from planvec.provenance import provenance

        rows = []
        with log.status("measuring") as status:
            for row in crafting.run(self.batch or None):
                rows.append(row)
                status.update(f"measured {row.what}: {row.rate:,.0f} {row.unit}")
        table = Table("what", "batch", "rate", title=f"planvec bench {self.what}")
        for row in rows:
            table.add_row(row.what, f"{row.batch:,}", f"{row.rate:,.0f} {row.unit}")
        out.print(table)
        for package, reason in others.missing().items():
            out.print(f"not compared with {package}: {reason}", highlight=False)
        if self.json:
            files.write(
                self.json,
                json.dumps(provenance() | {"rows": [row._asdict() for row in rows]}, indent=1) + "\n",
            )


@dataclass
class Worlds:
    """List the worlds."""

    def run(self) -> None:
        from planvec.worlds import WORLDS, make

        for name, description in WORLDS.items():
            out.print(f"[bold]{name}[/]: {description}. Skills: {', '.join(make(name).skills)}")


COMMANDS = {"demo": Demo, "collect": Collect, "render": Render, "bench": Bench, "worlds": Worlds}


def main() -> None:
    """Exit code 0: done; 2: bad input, with a line that says what to change; 1: anything else."""
    command = tyro.extras.subcommand_cli_from_dict(
        COMMANDS, prog="planvec", description="Plans from demonstrations, and arithmetic with them."
    )
    try:
        command.run()
    except InputError as error:
        log.print(f"planvec: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(1)
    except OSError as error:
        log.print(f"planvec: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)


@contextmanager
def progress(what: str, total: int, unit: str) -> Iterator[Callable[..., None]]:
    """A bar with the remaining time, on stderr, from the first word of progress on. Yields the function to tell it."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(unit))
    bar = Progress(*columns, TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), console=log)
    task = bar.add_task(what, total=total)

    def update(done: int, **changes: str) -> None:
        bar.start()
        bar.update(task, completed=done, **changes)

    try:
        yield update
    finally:
        bar.stop()
