"""How an agent practises: every option of `planvec practice` that changes its weights."""

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeVar

from planvec.errors import InputError
from planvec.tasks import check_seed, parse_condition
from planvec.training.config import named
from planvec.training.ppo import Rules
from planvec.worlds.protocol import PureWorld, World

AnyValue = TypeVar("AnyValue")

# What is usual on an accelerator, where steps cost next to nothing; and with simulators, where they cost most.
PURE: dict[str, Any] = {
    "steps": 50e6,
    "pool": 8192,
    "envs": 4096,
    "rollout": 64,
    "minibatch": 8192,
    "passes": 1,
    "learning_rate": 3e-4,
}
HOSTED: dict[str, Any] = {
    "steps": 4e6,
    "pool": 4096,
    "envs": 512,
    "minibatch": 512,
    "passes": 4,
    "learning_rate": 1e-4,  # where millimetres matter, three times that ruins what was imitated
}
PATIENCE = 3  # an episode may take so many times as long as the expert


@dataclass(frozen=True)
class PracticeConfig:
    """How an agent practises.

    What is None is left to the world: `resolved` looks it up there.
    """

    sums: Annotated[str | None, named("LIST")] = None
    """What is practised: sums of plans of so many skills each, equally often; unless given the world's own."""
    steps: Annotated[float | None, named("N")] = None
    """Actions in all, about; unless given 50e6, with simulators 4e6."""
    reward: Literal["plan", "labels"] = "plan"
    """What is worth something: that the plan goes away; or, to compare, that skills asked for are done."""
    scenes: Literal["offering", "blind"] = "offering"
    """Scenes in which what the references did can be done; or those made for other references."""
    seed: int = 0
    """Which episodes, and what is tried in them, follows from it."""
    pool: Annotated[int | None, named("N")] = None
    """Episodes of each sum, made beforehand by the expert, and drawn from again and again; 8192, with simulators
    4096."""
    envs: Annotated[int | None, named("N")] = None
    """Episodes at a time; 4096, with simulators 512."""
    rollout: Annotated[int | None, named("N")] = None
    """Actions of each between two looks at what they taught; 64. With simulators a round is whole episodes, and this is
    how long they are expected to be: a third of what they may take unless given."""
    minibatch: Annotated[int | None, named("N")] = None
    """Actions in an update of the weights; 8192, with simulators 512."""
    passes: Annotated[int | None, named("N")] = None
    """How often a round's actions are learned from; once, with simulators 4 times."""
    learning_rate: Annotated[float | None, named("X")] = None
    """The largest step size; it falls to zero along a line. 3e-4, with simulators 1e-4."""
    interval: int = 10
    """Rounds between two log lines; a checkpoint is written with each."""

    def __post_init__(self) -> None:
        for sum_of in (self.sums or "1").split(","):
            parse_condition(sum_of)
        for name in ("steps", "pool", "envs", "rollout", "minibatch", "passes", "learning_rate", "interval"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InputError(f"{name} must be a number more than 0; got {value}")
        check_seed(self.seed)

    def resolved(self, world: World) -> "PracticeConfig":
        """The same practice, with all that is left to the world filled in. Complains about what cannot be there."""
        pure = isinstance(world, PureWorld)
        sums = self.sums or ",".join(world.sums)
        usual = {"sums": sums, **PURE} if pure else {"sums": sums, "rollout": _expected(world, sums), **HOSTED}
        filled = replace(self, **{name: value for name, value in usual.items() if getattr(self, name) is None})
        if pure and filled.round % given(filled.minibatch):
            raise InputError(
                f"a round of {filled.envs} × {filled.rollout} actions is no multiple of {filled.minibatch}"
            )
        if not pure and filled.reward == "labels":
            raise InputError(f"labels as the reward are for worlds on the accelerator; {world.name} is a simulator")
        return filled

    @property
    def round(self) -> int:
        """Actions in a round; with simulators, about so many."""
        return given(self.envs) * given(self.rollout)

    @property
    def rounds(self) -> int:
        return math.ceil(given(self.steps) / self.round)

    @property
    def rules(self) -> Rules:
        return Rules(rollout=given(self.rollout), minibatch=given(self.minibatch))


def given(value: AnyValue | None) -> AnyValue:
    """A value of a config that is resolved."""
    assert value is not None, "left to the world: resolve the config first"
    return value


def _expected(world: World, sums: str) -> int:
    """How many actions an episode takes, on average, where the agent is about as good as the expert."""
    horizons = [world.horizon(parse_condition(text)) for text in sums.split(",")]
    return math.ceil(sum(horizons) / len(horizons) / PATIENCE)
