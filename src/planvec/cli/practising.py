"""From an agent to a better one: `planvec practice`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import OmitArgPrefixes, Positional

from planvec.agents.agent import EmbeddingAgent
from planvec.cli.console import Update, log, progress, say
from planvec.cli.learning import make_probe, score
from planvec.errors import InputError
from planvec.training.config import named
from planvec.training.practice_config import PracticeConfig


@dataclass
class Practice:
    """Let an agent practise sums of plans: what goes away of a plan is its reward. Goes on where it was stopped.

    Example: planvec practice runs/potential/ --out runs/practised
    """

    agent: Positional[Annotated[str, named("AGENT")]]
    """A run's folder (a path with a slash in it: runs/x, ./x), or the name of a shipped agent."""
    practice: OmitArgPrefixes[PracticeConfig]
    out: Annotated[Path | None, named("FOLDER")] = None
    """The new run's folder: config, metrics, weights."""
    data: Annotated[Path | None, named("FOLDER")] = None
    """A folder made by `planvec collect`, whose pairs, or play if it was trained on that, say how much there is in a
    plan; fresh ones unless given."""
    world: Annotated[str | None, named("WORLD")] = None
    """Another world than the agent was trained in, with the same observations and actions."""
    episodes: int = 100
    """Episodes for each condition when the agent is scored afterwards; 0 leaves it out."""
    deterministic: bool = False
    """On a GPU: the same weights bit for bit every time, at some cost in speed. A CPU always gives the same."""

    def run(self) -> None:
        if not self.out:
            raise InputError(f"say where to: planvec practice {self.agent} --out runs/practised")
        from dataclasses import replace

        from planvec.training.loading import load_with_config
        from planvec.training.practice import metric_pairs, practise, ready
        from planvec.worlds import make

        agent, config = load_with_config(self.agent)
        if self.world:
            config = replace(config, world=self.world).resolved()
        world = make(config.world)
        _, practice = ready(agent, world, self.practice)  # complains before anything is prepared
        with progress("preparing what is practised", practice.rounds, "rounds") as update:
            display = Display(update)
            pairs, described = metric_pairs(world, self.data, practice.seed, config.plays)
            try:
                agent = practise(
                    config,
                    practice,
                    agent,
                    self.out,
                    pairs,
                    described,
                    say=lambda line: log.print(line, highlight=False),
                    watch=display.watch,
                    tick=display.tick,
                    deterministic=self.deterministic,
                )
            except KeyboardInterrupt:
                log.print(
                    f"stopped after {display.reached} rounds, which are safe; the same command goes on from there"
                )
                raise
        if isinstance(agent, EmbeddingAgent):
            make_probe(agent, world, self.out)
        if self.episodes:
            score(agent, world, config.agent, self.out, self.episodes)
        say(f"the agent is in {self.out}; score it again: planvec evaluate {self.out}/")


class Display:
    """What practice shows: how far it is, and beside the bar how well it goes."""

    def __init__(self, update: Update) -> None:
        self.update = update
        self.reached = 0  # rounds
        self.text = "practising (compiling, a minute the first time)"

    def tick(self, rounds: int) -> None:
        """Told after each round."""
        self.reached = rounds
        self.update(rounds, description=self.text)

    def watch(self, rounds: int, row: dict[str, float]) -> None:
        """Told at the end of each interval."""
        self.text = (
            f"exact {row['exact_by_plan']:.0%} by the plan, {row['exact_by_labels']:.0%} in truth, "
            f"return {row['return']:.1f}, KL {row['kl']:.4f}, {row['steps_per_second']:,.0f} steps/s"
        )
        self.tick(rounds)
