"""From demonstrations to an agent: `planvec train` and `planvec probe`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import jax
from tyro.conf import OmitArgPrefixes, Positional

from planvec.agents import Agent
from planvec.agents.agent import EmbeddingAgent
from planvec.cli.console import WORLD, Update, log, out, progress, random_trials, say, score_all, scores_table, until
from planvec.data.samples import Samples
from planvec.errors import InputError
from planvec.evaluation.scores import evaluate
from planvec.training.config import Config, named
from planvec.worlds.protocol import World

COMPILING = "compiling (a minute, the first time)"
SUCCESS = "success_"  # and a condition: what the log calls the success under it


@dataclass
class Train:
    """Train an agent on pairs of demonstrations. Goes on where it was stopped.

    Example: planvec train crafting --agent cpv-full --out runs/cpv-full
    """

    config: OmitArgPrefixes[Config]
    out: Annotated[Path | None, named("FOLDER")] = None
    """The run's folder: config, metrics, weights."""
    data: Annotated[Path | None, named("FOLDER")] = None
    """A folder made by `planvec collect`; without it, the world's usual number of pairs (or as much play) is collected
    into OUT-data."""
    episodes: int = 100
    """Episodes for each condition when the trained agent is scored; 0 leaves it out."""
    deterministic: bool = False
    """On a GPU: the same weights bit for bit every time, at some cost in speed. A CPU always gives the same."""

    def run(self) -> None:
        if not self.out:
            raise InputError(f"say where to: planvec train {WORLD} --out runs/cpv-full")
        from planvec.data import folders
        from planvec.worlds import make

        config = self.config.resolved()
        world = make(config.world)
        data = self.data or collect(world, config, self.out)
        with progress("loading the demonstrations", 0, "steps") as update:
            samples = (folders.load_play if config.plays else folders.load)(data, world, update)
        agent = train(config, self.out, world, samples, folders.describe(data, world), self.deterministic)
        if isinstance(agent, EmbeddingAgent):
            make_probe(agent, world, self.out)
            make_metric(agent, samples, self.out)
        if self.episodes:
            score(agent, world, config.agent, self.out, self.episodes)
        say(f"the trained agent is in {self.out}; score it again: planvec evaluate {self.out}/")


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


def collect(world: World, config: Config, run: Path) -> Path:
    """The world's usual demonstrations, or as much play, in a folder beside the run's."""
    from planvec.data import folders

    folder = run.with_name(run.name + "-data")
    recipe = folders.usual(config.world, world, config.plays)
    with progress(f"collecting {config.world}", recipe.count, folders.HELD[recipe.format].unit) as update:
        folders.ensure(recipe, folder, world, update)
    return folder


def train(
    config: Config, run: Path, world: World, samples: Samples, data: dict[str, Any], deterministic: bool
) -> Agent:
    """Train one agent, with a bar."""
    from planvec.training import loop

    with progress(COMPILING, config.updates, "updates") as update:
        display = Display(config.agent, update)
        try:
            [agent] = loop.train(
                [config], [run], samples, data, display.watch, partial(glance, world), display.tick, deterministic
            )
        except KeyboardInterrupt:
            log.print(f"stopped after {display.reached} updates, which are safe; the same command goes on from there")
            raise
    return agent


class Display:
    """What a training shows: how far it is, and beside the bar what it does, then how well."""

    def __init__(self, agent: str, update: Update) -> None:
        self.agent = agent
        self.update = update
        self.reached = 0  # updates
        self.text = COMPILING

    def tick(self, step: int) -> None:
        """Told every few seconds. It has compiled when a second update follows the first one seen."""
        if self.text == COMPILING and step > self.reached > 0:
            self.text = f"training {self.agent}"
        self.reached = step
        self.update(step, description=self.text)

    def watch(self, step: int, metrics: list[dict[str, float]]) -> None:
        """Told at the end of each interval."""
        [row] = metrics
        self.text = f"loss {row['loss']:.2f} valid {row['valid_accuracy']:.0%} {row['samples_per_second']:,.0f}/s"
        self.tick(step)
        scores = [f"{row[name]:.0%} at {name.removeprefix(SUCCESS)}" for name in row if name.startswith(SUCCESS)]
        if scores:
            log.print(f"after {step} updates: success {', '.join(scores)}", highlight=False)


def glance(world: World, agents: Sequence[Agent]) -> list[dict[str, float]]:
    """How agents do while they are trained, in the few conditions that their world has for that; for the log."""
    trials = random_trials(world, world.glance, episodes=100)
    scores = {name: evaluate(agents, world, trial()) for name, trial in trials.items()}
    return [{f"{SUCCESS}{name}": each[i].success for name, each in scores.items()} for i in range(len(agents))]


def score(agent: Agent, world: World, name: str, run: Path, episodes: int) -> None:
    """Score a trained agent under all conditions; into its run, and for people."""
    from planvec.io.checkpoints import save_json

    scores = score_all(agent, world, random_trials(world, world.conditions, episodes))
    save_json(run / "scores.json", {condition: value.as_dict() for condition, value in scores.items()})
    out.print(scores_table(world.name, name, scores, until(agent)))


def make_metric(agent: EmbeddingAgent, samples: Samples, folder: Path) -> None:
    """Where plans are differences of a potential, write beside the weights what says how much there is in one."""
    from planvec.agents.metric import save_metric
    from planvec.agents.potentials import Potential
    from planvec.training.metric import fit_metric

    if isinstance(agent.encoder, Potential):
        save_metric(folder, fit_metric(agent, samples, jax.random.key(0)), agent.fingerprint)


def make_probe(agent: Agent, world: World, folder: Path, demos: int | None = None, seed: int = 0) -> None:
    """Fit a probe, write it beside the agent's weights, and say how good it is."""
    from planvec.agents.probe import save_probe
    from planvec.analysis.probes import fit_probe

    with progress("fitting a probe", 0, "demonstrations") as update:
        probe = fit_probe(agent, world, demos, seed, update)
    save_probe(folder, probe, agent.fingerprint)
    errors = ", ".join(f"{skill} ±{error:.2f}" for skill, error in zip(probe.skills, probe.error, strict=True))
    say(f"the probe reads plans off by: {errors}")
