"""How good agents are: `planvec evaluate`, `planvec measure`, `planvec reproduce` and `planvec demo`."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional

from planvec.cli.console import (
    WORLD,
    check_name,
    log,
    out,
    progress,
    random_trials,
    say,
    score_all,
    scores_table,
    until,
)
from planvec.errors import InputError
from planvec.evaluation.scores import Score
from planvec.training.config import Config, named
from planvec.worlds.protocol import World
from planvec.worlds.trials import Trial, make_trial

if TYPE_CHECKING:
    from planvec.tables.entries import Entry


@dataclass
class Evaluate:
    """Score an agent: how often it does what its references did.

    Example: planvec evaluate runs/cpv-full --conditions 4,1+1 --episodes 1000
    """

    agent: Positional[Annotated[str, named("AGENT")]]
    """A run's folder (a path with a slash in it: runs/x, ./x), or the name of a shipped agent."""
    conditions: Annotated[str | None, named("LIST")] = None
    """How many skills the references have; a sum adds their plans. The paper's unless given; 3 or 1+1+1 work too."""
    task: Annotated[str | None, named("TASK")] = None
    """A task of your own in place of random ones; parts to be added are separated by +."""
    episodes: int = 100
    """Episodes for each condition, all at once."""
    extras: Literal["discard", "keep"] = "discard"
    """Whether references do the task and nothing else, or what happens by the way too (and count it)."""
    control: bool = False
    """Show the references of another task: how much is done without being asked."""
    centred: bool = False
    """In a sum of plans, take the mean plan of doing nothing, g(o, o), away for each part but one (docs/results)."""
    greedy: bool = False
    """Take the likeliest action instead of sampling."""
    stop: Literal["own", "probe", "never"] = "own"
    """Who may end an episode before its horizon: the agent itself, if it is one that can; what is read in the plan
    left, by its metric or its probe; or nobody."""
    seed: int = 0
    """Another seed, other tasks, scenes and sampled actions."""
    json: bool = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        from planvec.training.loading import load_with_config
        from planvec.worlds import make

        agent, config = load_with_config(self.agent)
        world = make(config.world)
        ends = until(agent, self.stop)
        scores = score_all(
            agent, world, self._trials(world), self.seed, self.greedy, self.control, self.centred, self.stop
        )
        if self.json:
            print(json.dumps(self._report(config, scores)))
        else:
            out.print(scores_table(world.name, config.agent, scores, ends, self._how()))

    def _trials(self, world: World) -> dict[str, Callable[[], Trial]]:
        """What to score the agent in, by name."""
        from planvec.tasks import parse_task

        if not self.task:
            conditions = self.conditions.split(",") if self.conditions else world.conditions
            return random_trials(world, conditions, self.episodes, self.seed, self.extras)
        tasks = [parse_task(part, world.skills) for part in self.task.split("+")]
        world.asked([sum(tasks, ())])  # complains where that cannot be asked for
        parts = [[task] * self.episodes for task in tasks]
        return {self.task: lambda: make_trial(world, parts, self.seed, self.extras)}

    def _report(self, config: Config, scores: dict[str, Score]) -> dict[str, Any]:
        """For other programs."""
        from planvec.io.provenance import provenance

        return {
            "world": config.world,
            "agent": config.agent,
            "seed": config.seed,
            "evaluation_seed": self.seed,
            "sampled": not self.greedy,
            "extras": self.extras,
            "control": self.control,
            "centred": self.centred,
            "stop": self.stop,
            "conditions": {name: score.as_dict() for name, score in scores.items()},
            "made": provenance(),
        }

    def _how(self) -> str:
        """What was not as usual."""
        unusual = {
            "references of other tasks": self.control,
            "greedy": self.greedy,
            "centred": self.centred,
            "extras kept": self.extras == "keep",
            "--stop probe": self.stop == "probe",
        }
        return ", ".join(how for how, so in unusual.items() if so)


@dataclass
class Measure:
    """How compositional agents' plans are: whether they add up, what can be read off them, what else is in them.

    Example: planvec measure crafting
    """

    agents: Positional[Annotated[tuple[str, ...], named("AGENT…")]]
    """Runs' folders (paths with a slash in them: runs/x, ./x), or names of shipped agents; all of one world."""
    tasks: int = 512
    """Tasks to demonstrate, each in several scenes; the more, the surer the figures."""
    episodes: int = 64
    """Episodes of each condition in which to tell whether the task is done; 0 leaves it out."""
    seed: int = 0
    """Another seed, other tasks and scenes."""
    out: Annotated[Path | None, named("FILE")] = None
    """A JSON file to write, with a table in Markdown beside it. It keeps what was measured before."""
    json: bool = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        from planvec.analysis import reports

        check_name(self.out, ".json")
        if not self.agents:
            raise InputError(f"say which agent: planvec measure {WORLD}")
        with progress("measuring", 0, "") as update:
            rows = reports.measure(
                self.agents,
                self.tasks,
                self.episodes,
                self.seed,
                self.out,
                lambda what, done, total: update(done, total, what),
            )
        several = len(rows) > 1
        row = rows[0]
        if self.json:
            print(json.dumps({"rows": rows} if several else row))
        elif several:
            say(reports.markdown(rows))
        else:
            out.print(row["without"] if "without" in row else reports.table(row))


@dataclass
class Reproduce:
    """A whole table, of the paper or past it: data, trainings, practice, evaluation. Stop it at any time; the same
    command goes on.

    Example: planvec reproduce crafting --agents cpv-full,te-full --seeds 3 --out results/crafting
    """

    world: Positional[Annotated[str, named("WORLD")]] = WORLD
    """Whose table of the paper; or beyond, which goes past it, and beyond-tabletop, beyond-doom, beyond-doom-rooms;
    beyond-parts: what each part of that is worth; or beyond-play: without pairs."""
    agents: Annotated[str | None, named("AGENTS")] = None
    """Which models, separated by commas, or all ten; unless given those of its table, with cpv-plain in doom."""
    rows: Annotated[str | None, named("LABELS")] = None
    """Past the paper: the rows to fill, by their labels with semicolons between; all unless given."""
    seeds: int = 3
    """Trainings of each, at most."""
    out: Annotated[Path | None, named("FOLDER")] = None
    """The folder for data, runs, results.json, table.md and chart.png; results/WORLD unless given."""
    samples: Annotated[float | None, named("N")] = None
    """Samples in each training; as in `planvec train`."""
    steps: Annotated[float | None, named("N")] = None
    """Past the paper: actions in each practice."""
    episodes: int = 1000
    """Episodes in each cell of the table."""
    pairs: Annotated[int | None, named("N")] = None
    """Pairs of demonstrations to train on; the world's usual number unless given."""
    conditions: Annotated[str | None, named("LIST")] = None
    """The table's columns; the paper's unless given."""
    sweep: tuple[str, ...] = ()
    """Train each once for every value of an option, embedding=64,128 or ctr=1,0.1; of several options, all
    combinations: optimizer=adam learning_rate=1e-3,3e-3."""
    extras: Literal["discard", "keep"] = "discard"
    """In crafting: demonstrations and references that do their task alone, or with what happens by the way."""
    only_models: bool = False
    """Leave out the rows beside those of the models, such as the control."""
    interval: int = 5000
    """Updates between two checkpoints."""

    def run(self) -> None:
        from planvec.tables import beyond, running
        from planvec.worlds import make

        past = beyond.TABLES.get(self.world)
        usual = past.conditions if past else make(self.world).conditions
        conditions = self.conditions.split(",") if self.conditions else usual
        rows = self._rows_past_the_paper() if past else self._rows()
        folder = self.out or Path("results") / self.world
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with progress("beginning", 0, "") as update:
                running.reproduce(
                    rows,
                    folder,
                    conditions,
                    self.episodes,
                    self.pairs,
                    say=lambda line: log.print(line, highlight=False),
                    watch=lambda what, done, total: update(done, total, what),
                )
        except KeyboardInterrupt:
            log.print(f"stopped; all that was done is safe in {folder}, and the same command goes on from there")
            raise
        say((folder / "table.md").read_text())

    def _rows(self) -> "list[Entry]":
        """Of a table of the paper."""
        from planvec.tables import entries

        rows = entries.entries(
            config=Config(world=self.world, samples=self.samples, interval=self.interval),
            agents=self._agents(),
            seeds=self.seeds,
            extra_rows=not (self.only_models or self.sweep or self.extras == "keep"),
            extras=self.extras,
        )
        for option in self.sweep:
            rows = entries.sweep(rows, option)
        return rows

    def _rows_past_the_paper(self) -> "list[Entry]":
        from planvec.tables import beyond

        config = Config(samples=self.samples, interval=self.interval)
        practice = {"steps": self.steps} if self.steps else {}
        labels = [label.strip() for label in self.rows.split(";")] if self.rows else []
        return beyond.entries(self.world, config, practice, self.seeds, labels)

    def _agents(self) -> list[str]:
        """The models by name."""
        from planvec.tables.entries import TEN, models

        if self.agents is None:
            return list(models(self.world))
        if self.agents == "all":
            return list(TEN)
        return [name.strip() for name in self.agents.split(",")]


@dataclass
class Demo:
    """A film of an agent doing a sum of eight demonstrations; and the six conditions of the paper's table scored: the
    paper's figures, its method here, and an agent that has practised sums. About a minute."""

    out: Path = Path("out")
    """The folder to write into."""
    episodes: int = 50
    """Episodes for each condition."""
    seed: int = 0
    """Another seed, other tasks, scenes and sampled actions."""

    def run(self) -> None:
        from planvec.agents.zoo import USUAL
        from planvec.cli import demo
        from planvec.training.loading import load
        from planvec.worlds import make

        world = make(WORLD)
        agent = load(WORLD)
        self.out.mkdir(parents=True, exist_ok=True)
        log.print("planvec adds plans: no sum was ever demonstrated to the agents you will see", highlight=False)
        with progress("filming a sum of eight plans", 1, "film") as update:
            update(0)
            gif = demo.film_sum(agent, world, self.out / "sum_of_eight.gif", self.seed)
            update(1)
        trials = random_trials(world, world.conditions, self.episodes, self.seed)
        papers, new = (score_all(one, world, trials, self.seed) for one in (load(f"{WORLD}-{USUAL}"), agent))
        demo.chart(world.name, USUAL, papers, new, self.out / "scores.png")
        out.print(demo.table(world.name, USUAL, papers, new, self.episodes))
        say(f"{gif}\nThe scores as a chart: {self.out / 'scores.png'}")
