"""How to train one agent: every option of `planvec train` that changes its weights."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Literal, get_args, get_origin

from jax import Array
from tyro.conf import Positional, arg

from planvec.agents import AGENTS, Agent, Weights, build, family, networks_of
from planvec.agents.zoo import USUAL as AGENT
from planvec.data.play import WINDOW
from planvec.errors import InputError
from planvec.tasks import check_seed
from planvec.worlds import make
from planvec.worlds.registry import USUAL as WORLD

ENDED = 1 / 8  # of the samples, where an agent learns to say that nothing is left to do
OWN = ("alike", "stop", "cancelling", "sparse")  # weights that are the model's own unless given
JITTER = 2  # actions
SPARSE = 0.3  # weight of the sparse penalty where stretches are their own references


def named(metavar: str) -> object:
    """What a value is called in the help of an option; there, no default is better than None."""
    return arg(metavar=metavar, help_behavior_hint=lambda default: "" if default == "None" else f"(default: {default})")


@dataclass(frozen=True)
class Config:
    """How to train one agent.

    What is None is left to the world: `resolved` looks it up there.
    """

    world: Positional[Annotated[str, named("WORLD")]] = WORLD
    """Which world its demonstrations are from."""
    agent: str = AGENT
    """Which of the models; see `planvec agents`."""
    seed: int = 0
    """Initial weights and the order of samples follow from it."""
    embedding: Annotated[int | None, named("N")] = None
    """Numbers in a plan vector; unless given the networks' own: 512 for the paper's in crafting, else 64."""
    networks: Annotated[str | None, named("NAME")] = None
    """On the tabletop: relations (g sees how objects stand to each other, a place for each object), or paper (positions
    alone, one place); for the model `potential` potential, or in crafting paper-g or paper-policy: all but that."""
    samples: Annotated[float | None, named("N")] = None
    """How many samples to train on, in all; unless given 60e6 in crafting (`potential` 12e6), else 10e6."""
    batch: int = 1024
    """Samples in an update."""
    optimizer: Literal["muon", "adam"] = "muon"
    """Muon for the weight matrices (Adam for the rest), or Adam for all as in the paper."""
    learning_rate: float = 3e-3
    """The largest step size."""
    warmup: int = 4000
    """Updates over which the step size rises from zero; at most a tenth of all."""
    schedule: Literal["cosine", "constant"] = "cosine"
    """Whether the step size then falls to zero along half a cosine, or stays."""
    weight_decay: Annotated[float | None, named("X")] = None
    """Decoupled weight decay; unless given 0.1, on the tabletop 0.3. 0 is none, as in the paper."""
    ctr: Annotated[float | None, named("X")] = None
    """tecnet's weight of imitation against its contrastive loss; 0.1 unless given."""
    alike: Annotated[float | None, named("X")] = None
    """Weight of the squared Pair loss; the model's own unless given: 1 for `potential`, else 0. With random segments it
    needs jitter."""
    stop: Annotated[float | None, named("X")] = None
    """Weight of saying when nothing is left to do; 0.3 for `potential`, else 0, and then an agent cannot say so."""
    cancelling: Annotated[float | None, named("X")] = None
    """Share of samples to whose plan another pair's is added and taken away; 0.75 for `potential`, else 0. With random
    segments 0 unless given, and it needs jitter."""
    sparse: Annotated[float | None, named("X")] = None
    """Weight of the sparse penalty, on what single actions change in plans; 0.3 with random segments, else 0."""
    segments: Literal["pairs", "random"] = "pairs"
    """What a reference is: the other demonstration of a pair; or, in play, a random stretch is its own."""
    window: int = WINDOW
    """Random segments: the actions of a stretch, at most."""
    jitter: Annotated[int | None, named("N")] = None
    """Random segments: for the losses on pairs, by how many actions at most the ends of a stretch are moved to make
    another in which nearly the same was done; 2 unless given. 0 leaves those losses out."""
    precision: Literal["auto", "bfloat16", "float32"] = "auto"
    """What the networks compute in; weights are kept in float32. auto: bfloat16 for images on an accelerator."""
    interval: int = 1000
    """Updates between two log lines; a checkpoint is written with each."""

    def __post_init__(self) -> None:
        if self.agent not in AGENTS:
            raise InputError(f"there is no agent '{self.agent}'; choose one of {', '.join(AGENTS)}")
        for name, kind in type(self).__annotations__.items():
            if get_origin(kind) is Literal and getattr(self, name) not in get_args(kind):
                raise InputError(f"{name} is one of {', '.join(get_args(kind))}; got '{getattr(self, name)}'")
        if self.ctr is not None and not AGENTS[self.agent].weights.contrastive:
            raise InputError(f"ctr weighs imitation against tecnet's contrastive loss; {self.agent} has none")
        for name in ("embedding", "samples", "batch", "learning_rate", "interval", "window", "ctr"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InputError(f"{name} must be a number more than 0; got {value}")
        for name in ("warmup", "weight_decay", "jitter", *OWN):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise InputError(f"{name} must be 0 or more; got {value}")
        if (self.cancelling or 0) > 1:
            raise InputError(f"cancelling is a share of the samples, at most 1; got {self.cancelling}")
        self._check_segments()
        check_seed(self.seed)
        if self.batch < 2:
            raise InputError("a batch needs at least 2 samples: each is contrasted with the next")

    def _check_segments(self) -> None:
        """Complain of what means nothing with these segments."""
        if not self.plays and self.jitter:
            raise InputError("jitter moves the ends of stretches: it is for --segments random")
        if self.plays and self.jitter == 0:
            for name in ("alike", "cancelling"):
                if getattr(self, name):
                    raise InputError(
                        f"{name} needs two that are nearly alike: with --segments random give it a --jitter"
                    )

    @property
    def plays(self) -> bool:
        """Whether it learns from play: stretches that are their own references."""
        return self.segments == "random"

    def resolved(self) -> "Config":
        """The same training, with all that is left to the world filled in and the networks named."""
        space = make(self.world).space
        networks, usual = networks_of(self.agent, space, self.networks)
        weights = _own_weights(self)
        left = {
            "embedding": usual.embedding,
            "jitter": JITTER if self.plays else 0,
            "samples": usual.samples,
            "weight_decay": family(space).weight_decay,
            "alike": weights.alike,
            "stop": weights.stop,
            "cancelling": weights.cancelling,
            "sparse": weights.sparse,
        }
        filled = {name: value for name, value in left.items() if getattr(self, name) is None}
        return replace(self, networks=networks, **filled)

    @property
    def updates(self) -> int:
        """How many it takes, in a config that is resolved."""
        assert self.samples is not None, "how many samples is left to the world: resolve the config first"
        return math.ceil(self.samples / self.batch)

    @property
    def weights(self) -> Weights:
        chosen = {"imitation": self.ctr} | {name: getattr(self, name) for name in OWN}
        return replace(_own_weights(self), **{name: value for name, value in chosen.items() if value is not None})

    @property
    def ended(self) -> float:
        """The share of samples that are the last moment of a demonstration."""
        return ENDED if self.weights.stop else 0.0

    @property
    def program(self) -> tuple:
        """Equal for configs that may train together: those that differ in the seed and the losses' weights alone."""
        spec = AGENTS[self.agent]
        shared = asdict(self)
        for name in ("agent", "ctr", "alike", "cancelling", "sparse", "seed", "interval"):
            del shared[name]
        return spec.conditioning, spec.normalise, *shared.values()

    def build(self, key: Array) -> Agent:
        return build(self.agent, make(self.world).space, self.embedding, self.networks, self.weights, key=key)


def _own_weights(config: Config) -> Weights:
    """The model's weights of the losses. In play a plan says whatever has changed, unless that costs something. Without
    jitter a stretch has none to be like but itself; and what is done in one and not in nearly the same is a skill too
    often for a policy to learn that it means nothing, so nothing is added to plans that should cancel."""
    weights = AGENTS[config.agent].weights
    if not config.plays:
        return weights
    return replace(weights, alike=0.0 if config.jitter == 0 else weights.alike, cancelling=0.0, sparse=SPARSE)
