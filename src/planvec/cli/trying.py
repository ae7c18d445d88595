"""Plan arithmetic to try: `planvec act` in one line, `planvec play` in a browser."""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, UseAppendAction

from planvec.cli.console import WORLD, check_name, log, say
from planvec.errors import InputError
from planvec.training.config import named


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
    stop: Literal["own", "probe", "never"] = "own"
    """Who may end the episode before its horizon: the agent itself, if it is one that can; what is read in the plan
    left, by its metric or its probe; or nobody."""
    seed: int = 0
    """Another seed, other demonstrations, another scene and other sampled actions."""
    json: bool = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        from planvec.evaluation import acting
        from planvec.training.loading import load_with_config
        from planvec.worlds import make

        check_name(self.gif, ".gif")
        world = make(self.world)
        demos = acting.parse_demos(self.demo)
        agent, config = load_with_config(self.agent or self.world)
        if config.world != self.world:
            raise InputError(
                f"this agent lives in '{config.world}'; write planvec act {config.world}, or another --agent"
            )
        with log.status("demonstrating and acting"):
            done = acting.act(agent, world, self.plan, demos, self.seed, self.task, self.greedy, self.stop)
            if self.gif:
                done.save(self.gif)
        if self.json:
            report = {"world": self.world, "agent": config.agent, **done.as_dict()}
            print(json.dumps(report | {"stop": self.stop, "seed": self.seed}))
            return
        say(done.describe())
        if self.gif:
            say(f"the film is in {self.gif}")


@dataclass
class Play:
    """Try plan arithmetic in the browser: add and subtract demonstrations, and watch an agent do it.

    Example: planvec play --agent runs/te-full/
    """

    world: str = WORLD
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
