"""The models, as data: a conditioning and the weights of the losses; and how they are built. Ten are the paper's."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from planvec.agents.agent import Agent, Concatenate, Difference, Static
from planvec.agents.encoders import Encoder, ImageEncoder, VectorEncoder, ViewEncoder
from planvec.agents.policies import AttendAndPlace, Categorical, Head, LayeredPolicy, PickAndPlace, Policy, Stopping
from planvec.agents.potentials import NetworkPotential, RelationPotential, TilePotential
from planvec.agents.relations import RelationEncoder
from planvec.agents.residual import ResidualPolicy
from planvec.errors import InputError
from planvec.worlds.spaces import Images, Objects, Space, View


class Weights(eqx.Module):
    """How much each loss counts. A plain 0 leaves it out; an array may be traced, even if it holds 0."""

    imitation: float | Array = 1.0
    hom: float | Array = 0.0
    pair: float | Array = 0.0
    contrastive: float | Array = 0.0
    alike: float | Array = 0.0
    sparse: float | Array = 0.0
    stop: float = 0.0  # of saying when nothing is left to do; without it an agent cannot say so
    cancelling: float | Array = 0.0  # no weight, but the share of samples whose plans hold what must mean nothing


@dataclass(frozen=True)
class Spec:
    """One model: what it is, and what it is trained on."""

    description: str
    conditioning: Literal["difference", "static", "concatenate"]
    weights: Weights = Weights()
    normalise: bool = False
    networks: str | None = None  # those of its space, unless it has some of its own


AGENTS: dict[str, Spec] = {
    "naive": Spec("sees its reference's own images; no plan vectors", "concatenate"),
    "tecnet": Spec(
        "unit-length task embeddings, pulled together for pairs (James et al. 2018)",
        "static",
        Weights(imitation=0.1, contrastive=1.0),
        normalise=True,
    ),
    "te-plain": Spec("task embedding given whole to the policy; imitation alone", "static"),
    "te-pair": Spec("te, and paired demonstrations embed alike", "static", Weights(pair=1.0)),
    "te-hom": Spec("te, and the parts of a demonstration add up to the whole", "static", Weights(hom=1.0)),
    "te-full": Spec("te with both regularisers", "static", Weights(hom=1.0, pair=1.0)),
    "cpv-plain": Spec("the policy is given the plan less what is done; imitation alone", "difference"),
    "cpv-pair": Spec("cpv, and paired demonstrations embed alike", "difference", Weights(pair=1.0)),
    "cpv-hom": Spec("cpv, and the parts of a demonstration add up to the whole", "difference", Weights(hom=1.0)),
    "cpv-full": Spec("cpv with both regularisers: the paper's method", "difference", Weights(hom=1.0, pair=1.0)),
    "potential": Spec(
        "past the paper: plans that add by construction, and an agent that stops",
        "difference",
        Weights(alike=1.0, stop=0.3, cancelling=0.75),
        networks="potential",
    ),
}


USUAL = "cpv-full"  # where none is named

TILE = 3  # pixels along the side of a board's cell
FEATURES = 512  # what the network of a policy for images gives …
HIDDEN = (64, 64, 64, 64)  # … and the layers behind it


class Networks(Protocol):
    """The networks for one kind of space."""

    def encoder(self, embedding: int, key: Array) -> Encoder:
        """g, of two observations."""
        ...

    def policy(self, observations: int, plan: int, stops: bool, key: Array) -> Policy:
        """π, of so many observations and a plan of so many numbers; one that can say when nothing is left to do."""
        ...


def ending(head: Head, inputs: int, stops: bool, key: Array) -> Head:
    """A head, and one more output if the agent is to say when nothing is left to do."""
    return Stopping(head, inputs, key=jax.random.fold_in(key, 1)) if stops else head


@dataclass(frozen=True)
class ImageNetworks:
    """Convolutions (appendix A); the policy has its own, and four hidden layers."""

    space: Images

    def encoder(self, embedding: int, key: Array) -> Encoder:
        return ImageEncoder(self.space.shape, observations=2, features=embedding, key=key)

    def policy(self, observations: int, plan: int, stops: bool, key: Array) -> Policy:
        network_key, layers_key, head_key = jax.random.split(key, 3)
        network = ImageEncoder(self.space.shape, observations, FEATURES, key=network_key)
        head = ending(Categorical(HIDDEN[-1], self.space.actions, key=head_key), HIDDEN[-1], stops, head_key)
        return LayeredPolicy(network, (FEATURES + plan, *HIDDEN), head, key=layers_key)


@dataclass(frozen=True)
class ObjectNetworks:
    """g is linear in relations; the policy fully connected, on the observations as they are (appendix A.2). The paper
    gives no sizes."""

    space: Objects

    def encoder(self, embedding: int, key: Array) -> Encoder:
        return RelationEncoder(self.space, embedding, key=key)

    def policy(self, observations: int, plan: int, stops: bool, key: Array) -> Policy:
        layers_key, head_key = jax.random.split(key)
        sizes = (observations * self.space.size + plan, 256, 256, 256)
        head = ending(PickAndPlace(sizes[-1], self.space.objects, key=head_key), sizes[-1], stops, head_key)
        return LayeredPolicy(VectorEncoder(sizes[:1], key=key), sizes, head, key=layers_key)


@dataclass(frozen=True)
class PaperObjectNetworks:
    """Fully connected on positions, g as well as the policy (appendix A.2); sizes as above."""

    space: Objects

    def encoder(self, embedding: int, key: Array) -> Encoder:
        return VectorEncoder((2 * self.space.size, 256, 256, embedding), key=key)

    def policy(self, observations: int, plan: int, stops: bool, key: Array) -> Policy:
        layers_key, head_key = jax.random.split(key)
        sizes = (observations * self.space.size + plan, 256, 256, 256)
        head = ending(AttendAndPlace(sizes[-1], self.space.objects, key=head_key), sizes[-1], stops, head_key)
        return LayeredPolicy(VectorEncoder(sizes[:1], key=key), sizes, head, key=layers_key)


@dataclass(frozen=True)
class ViewNetworks:
    """As for images, with the waypoints beside them. The paper gives no sizes."""

    space: View

    def encoder(self, embedding: int, key: Array) -> Encoder:
        return ViewEncoder(self.space.image, self.space.waypoints, observations=2, features=embedding, key=key)

    def policy(self, observations: int, plan: int, stops: bool, key: Array) -> Policy:
        network_key, layers_key, head_key = jax.random.split(key, 3)
        network = ViewEncoder(self.space.image, self.space.waypoints, observations, FEATURES, key=network_key)
        head = ending(Categorical(HIDDEN[-1], self.space.actions, key=head_key), HIDDEN[-1], stops, head_key)
        return LayeredPolicy(network, (FEATURES + plan, *HIDDEN), head, key=layers_key)


@dataclass(frozen=True)
class ViewPotential(ViewNetworks):
    """g is a potential, a network of one view; the policy as above."""

    def encoder(self, embedding: int, key: Array) -> Encoder:
        return NetworkPotential(ViewEncoder(self.space.image, self.space.waypoints, 1, embedding, key=key))


@dataclass(frozen=True)
class BoardNetworks:
    """g is a potential, the sum over a board's tiles; the policy keeps the board's resolution, and reads large plans as
    it reads small ones."""

    space: Images

    def encoder(self, embedding: int, key: Array) -> Encoder:
        return TilePotential(TILE, self.space.shape[-1], embedding, key=key)

    def policy(self, observations: int, plan: int, stops: bool, key: Array) -> Policy:
        if observations != 1 or not plan:
            raise InputError("this policy sees one picture and a plan; it is for models that act on what is left of it")
        layers_key, head_key = jax.random.split(key)
        features = ResidualPolicy.FEATURES
        head = ending(Categorical(features, self.space.actions, key=head_key), features, stops, head_key)
        return ResidualPolicy(TILE, self.space.shape[-1], plan, head, key=layers_key)


@dataclass(frozen=True)
class ObjectPotential(ObjectNetworks):
    """g is a potential, linear in relations; the policy as above."""

    def encoder(self, embedding: int, key: Array) -> Encoder:
        return RelationPotential(self.space, embedding, key=key)


class Mixed(NamedTuple):
    """The g of one kind of networks, and the policy of another."""

    g: Networks
    pi: Networks

    def encoder(self, embedding: int, key: Array) -> Encoder:
        return self.g.encoder(embedding, key)

    def policy(self, observations: int, plan: int, stops: bool, key: Array) -> Policy:
        return self.pi.policy(observations, plan, stops, key)


class Usual(NamedTuple):
    """Networks, and how large they are and how long they are trained unless told."""

    make: Callable[[Any], Networks]
    embedding: int
    samples: float
    alone: bool = False  # whether one of them fills a device, so that several are trained one after the other


class Family(NamedTuple):
    """How agents are built for a kind of space, by the name of their networks."""

    networks: dict[str, Usual]
    default: str  # the name of the networks it has unless told
    weight_decay: float  # while training
    precision: Any  # to compute in on an accelerator; where millimetres matter, all of it


FAMILIES = {
    Images: Family(
        {
            "paper": Usual(ImageNetworks, embedding=512, samples=60e6),
            "potential": Usual(BoardNetworks, embedding=64, samples=12e6, alone=True),
            "paper-g": Usual(lambda space: Mixed(ImageNetworks(space), BoardNetworks(space)), 512, 12e6, alone=True),
            "paper-policy": Usual(lambda space: Mixed(BoardNetworks(space), ImageNetworks(space)), 64, 12e6),
        },
        default="paper",
        weight_decay=0.1,
        precision=jnp.bfloat16,
    ),
    Objects: Family(
        {
            "relations": Usual(ObjectNetworks, embedding=64, samples=10e6),
            "paper": Usual(PaperObjectNetworks, embedding=64, samples=10e6),
            "potential": Usual(ObjectPotential, embedding=64, samples=10e6),
        },
        default="relations",
        weight_decay=0.3,
        precision=jnp.float32,
    ),
    View: Family(
        {
            "views": Usual(ViewNetworks, embedding=64, samples=10e6),
            "potential": Usual(ViewPotential, embedding=64, samples=10e6),
        },
        default="views",
        weight_decay=0.1,
        precision=jnp.bfloat16,
    ),
}


def family(space: Space) -> Family:
    """How agents for a space are built."""
    if type(space) not in FAMILIES:
        raise InputError(f"there are no networks for {type(space).__name__} yet: such a world has no agents so far")
    return FAMILIES[type(space)]


def networks_of(agent: str, space: Space, name: str | None = None) -> tuple[str, Usual]:
    """The networks of an agent, by name: its own or its space's unless told."""
    kind = family(space)
    chosen = name or AGENTS[agent].networks or kind.default
    if chosen not in kind.networks:
        known = " or ".join(kind.networks)
        raise InputError(f"for {type(space).__name__} there are networks called {known}, not '{chosen}'")
    return chosen, kind.networks[chosen]


def build(
    name: str,
    space: Space,
    embedding: int | None = None,
    networks: str | None = None,
    weights: Weights | None = None,
    *,
    key: Array,
) -> Agent:
    """A fresh agent of the zoo, for what a world shows and lets do. What is None is the model's own."""
    if name not in AGENTS:
        raise InputError(f"there is no agent {name!r}; choose one of {', '.join(AGENTS)}")
    spec = AGENTS[name]
    _, usual = networks_of(name, space, networks)
    made = usual.make(space)
    size = embedding or usual.embedding
    stops = bool((weights or spec.weights).stop)
    encoder_key, policy_key = jax.random.split(key)
    if spec.conditioning == "concatenate":
        return Concatenate(policy=made.policy(observations=4, plan=0, stops=stops, key=policy_key))
    encoder = made.encoder(size, encoder_key)
    if spec.conditioning == "difference":
        policy = made.policy(observations=1, plan=size, stops=stops, key=policy_key)
        return Difference(policy=policy, encoder=encoder)
    policy = made.policy(observations=2, plan=size, stops=stops, key=policy_key)
    return Static(policy=policy, encoder=encoder, normalise=spec.normalise)
