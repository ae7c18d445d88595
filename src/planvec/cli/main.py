"""The command line. Every command is one call into the library."""

import io
import json
import re
import sys
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from tyro.conf import FlagCreatePairsOff, OmitArgPrefixes, Positional, UseAppendAction, arg

import planvec
from planvec.agents import Agent
from planvec.agents.agent import EmbeddingAgent
from planvec.cli.console import complain, log, out, progress, random_trials, say, score_all, scores_table
from planvec.errors import Failure, InputError
from planvec.evaluation.scores import evaluate, make_trial
from planvec.training import compilation
from planvec.training.config import Config as TrainConfig
from planvec.training.config import named
from planvec.worlds.protocol import World


@dataclass
class Collect:
    """Record pairs of demonstrations by the expert into a folder. Goes on where it was stopped; never overwrites.

    Example: planvec collect crafting --pairs 40000 --out data/crafting
    """

    world: Positional[Annotated[str | None, named("WORLD")]] = None
    """Which world; see `planvec worlds`."""
    pairs: Annotated[int | None, named("N")] = None
    """How many pairs; the world's usual number unless given. The two of a pair do the same task in different scenes."""
    skills: Annotated[str | None, named("RANGE")] = None
    """How many skills a task has: a range, or one number. Unless given 2-4 in crafting, 1-2 on the tabletop, 1-3 in
    doom."""
    noise: float = 0.1
    """Share of the expert's actions that are random; on the tabletop the error of its hand, in sides of a cube."""
    extras: Literal["discard", "keep"] = "discard"
    """Demonstrations that did more than their task: discard them, or keep them (as the paper's authors do)."""
    seed: int = 0
    """The same seed gives the same bytes."""
    out: Annotated[Path | None, named("FOLDER")] = None
    """The folder to write."""
    inspect: Annotated[Path | None, named("FOLDER")] = None
    """Instead of collecting, say what is in this folder and draw a contact sheet of it."""

    def run(self) -> None:
        from planvec.data import folders, inspecting
        from planvec.tasks import parse_range
        from planvec.worlds import make

        if self.inspect:
            inspecting.show(self.inspect, out)
            return
        if not self.world or not self.out:
            raise InputError("say which world and where to: planvec collect crafting --out data/crafting")
        world = make(self.world)
        pairs = world.pairs if self.pairs is None else self.pairs
        skills = parse_range(self.skills) if self.skills else world.sizes
        recipe = folders.Recipe(self.world, pairs, skills, self.noise, self.extras, self.seed)
        with progress(f"collecting {self.world}", pairs, "pairs") as update:
            try:
                header = folders.collect(recipe, self.out, update)
            except KeyboardInterrupt:
                log.print(f"stopped; {folders.kept(self.out)} pairs are safe, and the same command goes on from there")
                raise
        out.print(inspecting.rates_table(header))
        say(f"{pairs} pairs in {self.out}")


@dataclass
class Render:
    """Watch the expert do a task, as a GIF, keep it as a demonstration, or play the world yourself.

    Example: planvec render crafting --task ChopTree,BuildHouse --gif out.gif
    """

    world: Positional[Annotated[str, named("WORLD")]] = "crafting"
    """Which world; see `planvec worlds`."""
    task: Annotated[str | None, named("TASK")] = None
    """The skills to do, separated by commas; a random task unless given."""
    gif: Annotated[Path | None, named("FILE")] = None
    """Where to write the animation."""
    save: Annotated[Path | None, named("FILE")] = None
    """Where to write the demonstration itself, for `planvec act`: a name that ends in .safetensors."""
    interactive: bool = False
    """Play it yourself in the terminal, with the keyboard (crafting)."""
    seed: int = 0
    """Another seed, another scene."""
    noise: float = 0.0
    """As in `planvec collect`."""

    def run(self) -> None:
        from planvec.data.demonstrations import save_demonstration
        from planvec.media.filming import film
        from planvec.worlds import make

        check_name(self.gif, ".gif")
        check_name(self.save, ".safetensors")
        world = make(self.world)
        [random] = world.sample_tasks((self.seed,), 1, *world.sizes)
        task = random if self.task is None else self.task
        if self.interactive:
            if self.world != "crafting":
                raise InputError("only the crafting world can be played with the keyboard; write --gif out.gif instead")
            from planvec.worlds.crafting import keyboard

            keyboard.play(world, task, self.seed)
        elif self.gif or self.save:
            demo = world.demonstrate(task, self.seed, self.noise)
            if self.gif:
                film(world, demo, self.gif)
            if self.save:
                save_demonstration(self.save, demo, world)
            say(f"{len(demo)} steps in {' and '.join(str(path) for path in (self.gif, self.save) if path)}")
        else:
            raise InputError("say what to do: --gif out.gif, --save demo.safetensors, or --interactive")


@dataclass
class Act:
    """Let an agent act on plans that are added, subtracted and multiplied.

    Example: planvec act crafting --plan "A + B - C" --demo A=ChopTree,MakeBread --demo B=BreakRock --demo C=MakeBread
    """

    world: Positional[Annotated[str, named("WORLD")]]
    """Which world; see `planvec worlds`."""
    plan: str
    """An expression of demonstrations' names: A + 2*B - (C - A)/2. With a minus in front, write --plan=-A+B."""
    demo: UseAppendAction[tuple[str, ...]] = ()
    """A name and what it stands for: a task for the expert, A=ChopTree,MakeBread, or a file, A=demo.safetensors."""
    agent: Annotated[str | None, named("AGENT")] = None
    """A run's folder (a path with a slash in it: runs/x, ./x), or the name of a shipped agent; unless given the world's
    own."""
    task: Annotated[str | None, named("TASK")] = None
    """What the scene offers and what is judged; unless given the plan's expression of the demonstrations' skills,
    counts rounded (halves down), those below zero left out."""
    gif: Annotated[Path | None, named("FILE")] = None
    """Where to write an animation: the demonstrations (three at most) beside the agent."""
    greedy: bool = False
    """Take the likeliest action instead of sampling."""
    seed: int = 0
    """Another seed, other demonstrations, another scene and other sampled actions."""
    json: bool = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        from planvec.evaluation import acting
        from planvec.training.loading import load_with_config
        from planvec.worlds import make

        check_name(self.gif, ".gif")
        world, demos = make(self.world), acting.parse_demos(self.demo)
        agent, config = load_with_config(self.agent or self.world)
        if config.world != world.name:
            raise InputError(
                f"this agent lives in '{config.world}'; write planvec act {config.world}, or another --agent"
            )
        with log.status("demonstrating and acting"):
            done = acting.act(agent, world, self.plan, demos, self.seed, self.task, self.greedy)
            if self.gif:
                done.save(self.gif)
        if self.json:
            print(json.dumps({"world": world.name, "agent": config.agent, **done.as_dict(), "seed": self.seed}))
            return
        say(done.describe())
        if self.gif:
            say(f"the film is in {self.gif}")


@dataclass
class Probe:
    """Fit what reads plans: which skills are in one, and how often. It is written beside the agent's weights.

    Example: planvec probe runs/cpv-full/
    """

    agent: Positional[Annotated[str, named("AGENT")]]
    """A run's folder (a path with a slash in it: runs/x, ./x)."""
    demos: Annotated[int | None, named("N")] = None
    """Demonstrations to fit it to, 2560 unless given; a fifth of them tells its error."""
    seed: int = 0
    """Another seed, other tasks and scenes."""

    def run(self) -> None:
        from planvec.training.loading import SHIPPED, find, load_with_config
        from planvec.worlds import make

        agent, config = load_with_config(self.agent)
        folder = find(self.agent)
        if folder.parent == SHIPPED:
            raise InputError("shipped agents have their probe; name the folder of a run, a path with a slash in it")
        make_probe(agent, make(config.world), folder, self.demos, self.seed)


@dataclass
class Play:
    """Try plan arithmetic in the browser: add and subtract demonstrations, and watch an agent do it.

    Example: planvec play --agent runs/te-full/
    """

    world: str = "crafting"
    """The world to begin with; see `planvec worlds`."""
    agent: UseAppendAction[tuple[str, ...]] = ()
    """A run's folder (a path with a slash in it: runs/x, ./x), besides the shipped agents; may be given again."""
    port: int = 8642
    """On loopback; 0 for any free one."""
    open: bool = True
    """Whether to open the browser."""

    def run(self) -> None:
        try:
            from planvec.playground.server import serve
        except ModuleNotFoundError as error:
            raise InputError(f"the playground needs {error.name}: pip install 'planvec[play]'") from None
        with suppress(KeyboardInterrupt):
            serve(self.world, self.agent, self.port, self.open, say)


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
            raise InputError("say which agent: planvec measure crafting")
        with progress("measuring", 0, "") as update:
            rows = reports.survey(
                self.agents,
                self.tasks,
                self.episodes,
                self.seed,
                self.out,
                lambda what, done, total: update(done, total=total, description=what),
            )
        [row, *more] = rows
        if self.json:
            print(json.dumps({"rows": rows} if more else row))
        elif more:
            say(reports.markdown(rows))
        else:
            out.print(row["without"] if "without" in row else reports.table(row))


@dataclass
class Demo:
    """The shipped agent: six conditions scored beside the paper, a GIF of A + B, and a chart. About a minute."""

    out: Path = Path("out")
    """The folder to write into."""
    episodes: int = 100
    """Episodes for each condition."""
    seed: int = 0
    """Another seed, other tasks, scenes and sampled actions."""

    def run(self) -> None:
        from planvec.cli import demo
        from planvec.training.loading import load_with_config
        from planvec.worlds import make

        agent, config = load_with_config("crafting")
        world = make(config.world)
        self.out.mkdir(parents=True, exist_ok=True)
        log.print("planvec adds plans: watch an agent do A + B, never having seen the two together", highlight=False)
        with progress("filming A + B", 1, "film") as update:
            update(0)
            gif = demo.film_sum(agent, world, self.out / "a_plus_b.gif", self.seed)
            update(1)
        scores = score_all(agent, world, random_trials(world, world.conditions, self.episodes, self.seed), self.seed)
        demo.draw_scores(world.name, config.agent, scores, self.out / "scores.png")
        out.print(scores_table(world.name, config.agent, scores))
        say(f"{gif}\nand the scores as a chart in {self.out / 'scores.png'}")


@dataclass
class Train:
    """Train an agent on pairs of demonstrations. Goes on where it was stopped.

    Example: planvec train crafting --agent cpv-full --out runs/cpv-full
    """

    config: OmitArgPrefixes[TrainConfig]
    out: Annotated[Path | None, named("FOLDER")] = None
    """The run's folder: config, metrics, weights."""
    data: Annotated[Path | None, named("FOLDER")] = None
    """A folder made by `planvec collect`; without it, the world's usual number of pairs is collected into OUT-data."""
    episodes: int = 100
    """Episodes for each condition when the trained agent is scored; 0 leaves it out."""
    deterministic: bool = False
    """On a GPU: the same weights bit for bit every time, at some cost in speed. A CPU always gives the same."""

    def run(self) -> None:
        if not self.out:
            raise InputError("say where to: planvec train crafting --out runs/cpv-full")
        from planvec.data import folders
        from planvec.io.checkpoints import save_json
        from planvec.tables.running import describe
        from planvec.training import loop
        from planvec.worlds import make

        config, data = self.config.resolved(), self.data or self.out.with_name(self.out.name + "-data")
        world = make(config.world)
        if not self.data:
            recipe = folders.Recipe(config.world, world.pairs, world.sizes, 0.1, "discard", 0)
            with progress(f"collecting {config.world}", recipe.pairs, "pairs") as update:
                folders.ensure(recipe, data, update)
        with progress("loading the demonstrations", 0, "steps") as update:
            pairs = folders.load(data, world, lambda done, total: update(done, total=total))
        reached, text = 0, "compiling (a minute, the first time)"
        with progress(text, config.updates, "updates") as update:

            def tick(step: int) -> None:
                nonlocal reached, text
                if step > reached > 0 and text.startswith("compiling"):
                    text = f"training {config.agent}"
                reached = step
                update(step, description=text)

            def watch(step: int, metrics: list[dict[str, float]]) -> None:
                nonlocal text
                [row] = metrics
                text = f"loss {row['loss']:.2f} valid {row['valid_accuracy']:.0%} {row['samples_per_second']:,.0f}/s"
                tick(step)
                if scores := [f"{row[name]:.0%} at {name[8:]}" for name in row if name.startswith("success_")]:
                    log.print(f"after {step} updates: success {', '.join(scores)}", highlight=False)

            def score(agents: list[Agent]) -> list[dict[str, float]]:
                trials = {name: trial() for name, trial in random_trials(world, world.glance, episodes=100).items()}
                scores = {name: evaluate(agents, world, trial) for name, trial in trials.items()}
                return [{f"success_{name}": s[i].success for name, s in scores.items()} for i in range(len(agents))]

            try:
                [agent] = loop.train(
                    [config], [self.out], pairs, describe(data), watch, score, tick, self.deterministic
                )
            except KeyboardInterrupt:
                log.print(f"stopped after {reached} updates, which are safe; the same command goes on from there")
                raise
        if isinstance(agent, EmbeddingAgent):
            make_probe(agent, world, self.out)
        if self.episodes:
            scores = score_all(agent, world, random_trials(world, world.conditions, self.episodes))
            save_json(self.out / "scores.json", {name: value.as_dict() for name, value in scores.items()})
            out.print(scores_table(world.name, config.agent, scores))
        say(f"the trained agent is in {self.out}; score it again: planvec evaluate {self.out}/")


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
    seed: int = 0
    """Another seed, other tasks, scenes and sampled actions."""
    json: bool = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        from planvec.io.provenance import provenance
        from planvec.tasks import parse_task
        from planvec.training.loading import load_with_config
        from planvec.worlds import make

        agent, config = load_with_config(self.agent)
        world = make(config.world)
        if self.task:
            tasks = [parse_task(part, world.skills) for part in self.task.split("+")]
            world.asked([sum(tasks, ())])  # complains where that cannot be asked for
            parts = [[task] * self.episodes for task in tasks]
            trials = {self.task: lambda: make_trial(world, parts, self.seed, self.extras)}
        else:
            conditions = self.conditions.split(",") if self.conditions else world.conditions
            trials = random_trials(world, conditions, self.episodes, self.seed, self.extras)
        scores = score_all(agent, world, trials, self.seed, self.greedy, self.control, self.centred)
        if self.json:
            report = {
                "world": config.world,
                "agent": config.agent,
                "seed": config.seed,
                "evaluation_seed": self.seed,
                "sampled": not self.greedy,
                "extras": self.extras,
                "control": self.control,
                "centred": self.centred,
                "conditions": {name: score.as_dict() for name, score in scores.items()},
                "made": provenance(),
            }
            print(json.dumps(report))
            return
        hows = {"references of other tasks": self.control, "greedy": self.greedy, "centred": self.centred}
        hows |= {"extras kept": self.extras == "keep"}
        out.print(scores_table(world.name, config.agent, scores, ", ".join(how for how in hows if hows[how])))


@dataclass
class Reproduce:
    """A whole table of the paper: data, trainings, evaluation. Stop it at any time; the same command goes on.

    Example: planvec reproduce crafting --agents cpv-full,te-full --seeds 3 --out results/crafting
    """

    world: Positional[Literal["crafting", "tabletop", "doom"]] = "crafting"
    """Whose table."""
    agents: Annotated[str | None, named("AGENTS")] = None
    """Which models, separated by commas, or all; unless given those of the paper's table, with cpv-plain in doom."""
    seeds: int = 3
    """Trainings of each; they train together."""
    out: Annotated[Path | None, named("FOLDER")] = None
    """The folder for data, runs, results.json, table.md and chart.png; results/WORLD unless given."""
    samples: Annotated[float | None, named("N")] = None
    """Samples in each training; as in `planvec train`."""
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
        from planvec.agents import AGENTS
        from planvec.tables import running
        from planvec.worlds import make

        folder = self.out or Path("results") / self.world
        conditions = self.conditions.split(",") if self.conditions else make(self.world).conditions
        named = {None: running.MODELS.get(self.world, AGENTS), "all": AGENTS}
        agents = list(named.get(self.agents) or map(str.strip, self.agents.split(",")))
        config = TrainConfig(world=self.world, samples=self.samples, interval=self.interval)
        plain = not (self.only_models or self.sweep or self.extras == "keep")
        rows = running.entries(config, agents, self.seeds, extra_rows=plain, extras=self.extras)
        for option in self.sweep:
            rows = running.sweep(rows, option)
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
                    watch=lambda what, done, total: update(done, total=total, description=what),
                )
        except KeyboardInterrupt:
            log.print(f"stopped; all that was done is safe in {folder}, and the same command goes on from there")
            raise
        say((folder / "table.md").read_text())


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
    """Measure speeds on this machine, beside whatever comparable is installed.

    Example: planvec bench crafting --batch 1024 --json out/bench.json
    """

    what: Positional[Literal["crafting", "tabletop", "doom", "training", "play"]] = "crafting"
    """What to measure: the crafting world; the tabletop; doom; training and evaluation of cpv-full; the playground."""
    batch: tuple[int, ...] = ()
    """Batch sizes to try instead of the usual ones; on the tabletop of each core, in doom of each engine; of the
    playground, how many watch at once."""
    json: Annotated[Path | None, arg(name="json")] = None
    """Also write the table to this file, row by row."""

    def run(self) -> None:
        from planvec.benchmarks import crafting, others
        from planvec.io.checkpoints import save_json
        from planvec.io.provenance import provenance

        rows, notes, made = [], [], provenance()  # before the file that is written makes the tree another one
        if self.what == "crafting":
            measured = crafting.run(self.batch or None)
        elif self.what == "tabletop":
            from planvec.benchmarks import tabletop  # needs MuJoCo

            measured = tabletop.run(self.batch or None, warn=notes.append)
        elif self.what == "doom":
            from planvec.benchmarks import doom  # needs ViZDoom

            measured = doom.run(self.batch or None)
        elif self.what == "play":
            from planvec.benchmarks import play

            measured = play.run(self.batch or None)
        else:
            measured = training.run(self.batch or None, warn=notes.append)
        table = Table("what", "batch", "rate", title=f"planvec bench {self.what}")
        with log.status("measuring") as status:
            for row in measured:
                rows.append(row)
                figure = f"{row.rate:,.0f}" if row.rate >= 100 else f"{row.rate:.3g}"
                status.update(f"measured {row.what}: {figure} {row.unit}")
                table.add_row(row.what, f"{row.batch:,}", f"{figure} {row.unit}")
                if self.json:
                    save_json(self.json, made | {"rows": [row._asdict() for row in rows]})
        out.print(table)
        if self.what == "crafting":
            notes = [f"not compared with {package}: {reason}" for package, reason in others.missing().items()]
        for note in notes:
            out.print(note, highlight=False, markup=False)


@dataclass
class Worlds:
    """List the worlds, their skills, and the trained agents that come with planvec."""

    def run(self) -> None:
        from planvec.training.loading import shipped
        from planvec.worlds import VARIANTS, WORLDS, make

        for name, description in {**WORLDS, **VARIANTS}.items():
            agents = [agent for agent in shipped() if agent.partition("-")[0] == name]
            try:
                skills = f"skills: {', '.join(make(name).skills)}"
            except InputError as error:  # an extra that is not installed
                skills = escape(str(error))
            out.print(f"[bold]{name}[/]: {description}", highlight=False)
            out.print(Padding(skills, (0, 0, 0, 4)), highlight=False)
            if agents:
                out.print(Padding(f"trained agents: {', '.join(agents)}", (0, 0, 0, 4)), highlight=False)


def make_probe(agent: Agent, world: World, folder: Path, demos: int | None = None, seed: int = 0) -> None:
    """Fit a probe, write it beside the agent's weights, and say how good it is."""
    from planvec.agents.probe import save_probe
    from planvec.analysis.probes import fit_probe

    with progress("fitting a probe", 0, "demonstrations") as update:
        probe = fit_probe(agent, world, demos, seed, lambda done, total: update(done, total=total))
    save_probe(folder, probe, agent.fingerprint)
    errors = ", ".join(f"{skill} ±{error:.2f}" for skill, error in zip(probe.skills, probe.error, strict=True))
    say(f"the probe reads plans off by: {errors}")


def check_name(path: Path | None, suffix: str) -> None:
    """Complain about a name that is not one for such a file."""
    if path and (path.suffix.lower() != suffix or path.is_dir()):
        raise InputError(f"{path} is no name for such a file; write one that ends in {suffix}")


COMMANDS = {
    "demo": Demo,
    "collect": Collect,
    "train": Train,
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
