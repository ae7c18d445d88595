"""The command line. Every command is one call into the library."""

import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

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
from tyro.conf import OmitArgPrefixes, Positional, arg

from planvec.errors import InputError
from planvec.evaluation import CONDITIONS, evaluate, make_trial, parse_condition, random_trial
from planvec.training import Config as TrainConfig

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
    """The shipped agent: six conditions scored beside the paper, a GIF of A + B, and a chart. About two minutes."""

    out: Path = Path("out")
    """The folder to write into."""
    episodes: int = 100
    """Episodes for each condition."""
    seed: int = 0
    """Of the tasks, scenes and sampled actions."""

    def run(self) -> None:
        from planvec import demo
        from planvec.loading import load_with_config
        from planvec.worlds import make

        agent, config = load_with_config("crafting")
        world = make(config.world)
        self.out.mkdir(parents=True, exist_ok=True)
        log.print("planvec adds plans: watch an agent do A + B, never having seen the two together", highlight=False)
        with progress("filming", len(CONDITIONS) + 1, "parts") as update:
            update(0)
            gif = demo.film_sum(agent, world, self.out / "a_plus_b.gif", self.seed)
            scores = {}
            for number, condition in enumerate(CONDITIONS, start=1):
                update(number, description=f"scoring {condition}")
                trial = random_trial(world, condition, self.episodes, self.seed, "discard")
                [scores[condition]] = evaluate([agent], world, trial, self.seed)
            update(len(CONDITIONS) + 1)
        demo.draw_scores(config.agent, scores, self.out / "scores.png")
        out.print(scores_table(config.agent, scores))
        out.print(f"{gif}\nand the scores as a chart in {self.out / 'scores.png'}", highlight=False)


@dataclass
class Train:
    """Train an agent on pairs of demonstrations. Goes on where it was stopped.

    Example: planvec train crafting --agent cpv-full --out runs/cpv-full
    """

    config: OmitArgPrefixes[TrainConfig] = field(default_factory=TrainConfig)
    out: Path | None = None
    """The run's folder: config, metrics, weights."""
    data: Path | None = None
    """A folder made by `planvec collect`; without it, the paper's 40,000 pairs are collected into the run's folder."""
    deterministic: bool = False
    """On a GPU: the same weights bit for bit every time, at some cost in speed. A CPU always gives the same."""

    def run(self) -> None:
        if not self.out:
            raise InputError("say where to: planvec train crafting --out runs/cpv-full")
        if self.deterministic:
            os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_gpu_deterministic_ops=true"
        from planvec import datasets, training
        from planvec.reproduce import describe

        config, data = self.config, self.data or self.out.with_name(self.out.name + "-data")
        if not self.data and not (data / datasets.HEADER).exists():
            recipe = datasets.Recipe(config.world, 40_000, (2, 4), 0.1, "discard", 0)
            with progress(f"collecting {config.world}", recipe.pairs, "pairs") as update:
                datasets.collect(recipe, data, update)
        pairs = datasets.load(data)
        with progress(f"training {config.agent}", config.updates * config.batch, "samples") as update:

            def watch(step: int, metrics: list[dict[str, float]]) -> None:
                [row] = metrics
                shown = "  ".join(
                    f"{name} {row[name]:.3f}" for name in row if name in ("loss", "accuracy", "valid_accuracy")
                )
                update(step * config.batch, description=f"{config.agent}  {shown}")

            training.train([config], [self.out], pairs, describe(data), watch)
        out.print(f"the trained agent is in {self.out}; score it with: planvec evaluate ./{self.out}", highlight=False)


@dataclass
class Evaluate:
    """Score an agent: how often it does what its references did.

    Example: planvec evaluate runs/cpv-full --conditions 4,1+1 --episodes 1000
    """

    agent: Positional[str]
    """A run's folder (written with a slash), or the name of a shipped agent."""
    conditions: str = "4,8,16,1+1,2+2,4+4"
    """How many skills the references have; a sum adds their plans. Any others work too: 3, 32, 1+1+1."""
    task: str | None = None
    """A task of your own in place of random ones; parts to be added are separated by +."""
    episodes: int = 100
    """Episodes for each condition, all at once."""
    extras: Literal["discard", "keep"] = "discard"
    """Whether references do the task and nothing else, or what happens by the way too (and count it)."""
    control: bool = False
    """Show each episode another one's references: how much is done without being asked."""
    greedy: bool = False
    """Take the likeliest action instead of sampling."""
    seed: int = 0
    """Of the tasks, scenes and sampled actions."""
    json: bool = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        from planvec.loading import load_with_config
        from planvec.tasks import parse_task
        from planvec.worlds import make

        agent, config = load_with_config(self.agent)
        world = make(config.world)
        names = [self.task] if self.task else [part.strip() for part in self.conditions.split(",")]
        if not self.task:
            list(map(parse_condition, names))
        scores = {}
        with progress("evaluating", len(names), "conditions") as update:
            for number, name in enumerate(names):
                update(number, description=f"evaluating {name}")
                if self.task:
                    parts = [[parse_task(part, world.skills)] * self.episodes for part in self.task.split("+")]
                    trial = make_trial(world, parts, self.seed, self.extras)
                else:
                    trial = random_trial(world, name, self.episodes, self.seed, self.extras)
                [scores[name]] = evaluate([agent], world, trial, self.seed, self.greedy, self.control)
            update(len(names))
        if self.json:
            report = {
                "world": config.world,
                "agent": config.agent,
                "seed": config.seed,
                "sampled": not self.greedy,
                "extras": self.extras,
                "control": self.control,
                "conditions": {name: score.as_dict() for name, score in scores.items()},
            }
            print(json.dumps(report))
            return
        out.print(scores_table(config.agent, scores))


def scores_table(agent: str, scores: dict[str, Any]) -> Table:
    """Scores beside the paper's."""
    from planvec.reproduce import PAPER

    table = Table(title=f"{agent}: % of episodes")
    for title in ("condition", "success", "± (95%)", "exact", "stops", "paper's success"):
        table.add_column(title, justify="right")
    for name, score in scores.items():
        paper = dict(zip(CONDITIONS, PAPER.get(agent, ()), strict=False)).get(name)
        figures = (f"{100 * value:.1f}" for value in (score.success, score.ci95, score.exact, score.stops))
        table.add_row(name, *figures, f"{paper[0]} ± {paper[1]}" if paper else "")
    return table


@dataclass
class Reproduce:
    """A whole table of the paper: data, trainings, evaluation. Stop it at any time; the same command goes on.

    Example: planvec reproduce crafting --agents cpv-full,te-full --seeds 3 --out results/crafting
    """

    world: Positional[Literal["crafting"]] = "crafting"
    """Whose table."""
    agents: str = "all"
    """Which models, separated by commas."""
    seeds: int = 3
    """Trainings of each; they train together."""
    out: Path = Path("results/crafting")
    """The folder for data, runs, results.json, table.md and chart.png."""
    samples: float = 60e6
    """Samples in each training."""
    episodes: int = 1000
    """Episodes in each cell of the table."""
    pairs: int = 40_000
    """Pairs of demonstrations to train on."""
    conditions: str = "4,8,16,1+1,2+2,4+4"
    """The table's columns."""
    sweep: str | None = None
    """Train each once for every value of an option: embedding=64,128,256,512 or ctr=1,0.1."""
    only_the_ten: bool = False
    """Leave out the further rows: control, extras kept, trained on 1-4 skills."""
    interval: int = 5000
    """Updates between two checkpoints."""

    def run(self) -> None:
        from planvec import reproduce
        from planvec.agents import AGENTS

        agents = list(AGENTS) if self.agents == "all" else [name.strip() for name in self.agents.split(",")]
        config = TrainConfig(world=self.world, samples=self.samples, interval=self.interval)
        rows = reproduce.entries(config, agents, self.seeds, extra_rows=not (self.only_the_ten or self.sweep))
        rows = reproduce.sweep(rows, self.sweep) if self.sweep else rows
        self.out.mkdir(parents=True, exist_ok=True)
        with progress("training", config.updates, "updates") as update:
            reproduce.reproduce(
                rows,
                self.out,
                self.conditions.split(","),
                self.episodes,
                self.pairs,
                say=lambda line: log.print(line, highlight=False),
                watch=lambda entry, step: update(step, description=f"training {entry.label}"),
            )
        out.print((self.out / "table.md").read_text(), highlight=False)


@dataclass
class Agents:
    """List the ten models."""

    def run(self) -> None:
        from planvec.agents import AGENTS

        table = Table("agent", "what it is", box=None)
        for name, spec in AGENTS.items():
            table.add_row(name, spec.description)
        out.print(table)


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


COMMANDS = {
    "demo": Demo,
    "collect": Collect,
    "train": Train,
    "evaluate": Evaluate,
    "reproduce": Reproduce,
    "render": Render,
    "bench": Bench,
    "worlds": Worlds,
    "agents": Agents,
}


def main() -> None:
    """Exit code 0: done; 2: bad input, with a line that says what to change; 1: anything else."""
    command = _parse()
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


def _parse() -> Any:
    """The command that was asked for. What tyro says of bad input in a box of many lines becomes one line."""
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            return tyro.extras.subcommand_cli_from_dict(
                COMMANDS, prog="planvec", description="Plans from demonstrations, and arithmetic with them."
            )
    except SystemExit as stop:
        if stop.code:
            words = re.sub(r"[─│╭╮╰╯]+|-{3,}", " ", said.getvalue()).split()
            text = " ".join(words).replace("__tyro-dummy-inner__.", "")
            log.print(f"planvec: {text}", style="red", markup=False, highlight=False, soft_wrap=True)
        raise


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
