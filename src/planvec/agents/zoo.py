"""The ten models of the paper, as data: a conditioning and the weights of the losses; and how they are built."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from planvec.agents.agent import Agent, Concatenate, Difference, Static
from planvec.agents.encoders import Encoder, ImageEncoder, VectorEncoder, ViewEncoder
from planvec.agents.policies import AttendAndPlace, Categorical, PickAndPlace, Policy
from planvec.agents.relations import RelationEncoder
from planvec.errors import InputError
from planvec.worlds.spaces import Images, Objects, Space, View


class Weights(eqx.Module):
    """How much each loss counts. A plain 0 leaves it out; an array may be traced, even if it holds 0."""

    imitation: float | Array = 1.0
    hom: float | Array = 0.0
    pair: float | Array = 0.0
    contrastive: float | Array = 0.0


@dataclass(frozen=True)
class Spec:
    """One model: what it is, and what it is trained on."""

    description: str
    conditioning: Literal["difference", "static", "concatenate"]
    weights: Weights = Weights()
    normalise: bool = False


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
}


USUAL = "cpv-full"  # where none is named

FEATURES, HIDDEN = 512, (64, 64, 64, 64)  # of the policy for images: its own network's output, and its layers


class Networks(Protocol):
    """The networks for one kind of space."""

    def encoder(self, embedding: int, key: Array) -> Encoder:
        """g, of two observations."""
        ...

    def policy(self, observations: int, plan: int, key: Array) -> Policy:
        """π, of so many observations and a plan of so many numbers."""
        ...


@dataclass(frozen=True)
class ImageNetworks:
    """Convolutions (appendix A); the policy has its own, and four hidden layers."""

    space: Images

    def encoder(self, embedding: int, key: Array) -> Encoder:
        return ImageEncoder(self.space.shape, observations=2, features=embedding, key=key)

    def policy(self, observations: int, plan: int, key: Array) -> Policy:
        network_key, layers_key, head_key = jax.random.split(key, 3)
        network = ImageEncoder(self.space.shape, observations, FEATURES, key=network_key)
        head = Categorical(HIDDEN[-1], self.space.actions, key=head_key)
        return Policy(network, (FEATURES + plan, *HIDDEN), head, key=layers_key)


@dataclass(frozen=True)
class ObjectNetworks:
    """g is linear in relations; the policy fully connected, on the observations as they are (appendix A.2). The paper
    gives no sizes."""

    space: Objects

    def encoder(self, embedding: int, key: Array) -> Encoder:
        return RelationEncoder(self.space, embedding, key=key)

    def policy(self, observations: int, plan: int, key: Array) -> Policy:
        layers_key, head_key = jax.random.split(key)
        sizes = (observations * self.space.size + plan, 256, 256, 256)
        head = PickAndPlace(sizes[-1], self.space.objects, key=head_key)
        return Policy(VectorEncoder(sizes[:1], key=key), sizes, head, key=layers_key)


@dataclass(frozen=True)
class PaperObjectNetworks:
    """Fully connected on positions, g as well as the policy (appendix A.2); sizes as above."""

    space: Objects

    def encoder(self, embedding: int, key: Array) -> Encoder:
        return VectorEncoder((2 * self.space.size, 256, 256, embedding), key=key)

    def policy(self, observations: int, plan: int, key: Array) -> Policy:
        layers_key, head_key = jax.random.split(key)
        sizes = (observations * self.space.size + plan, 256, 256, 256)
        head = AttendAndPlace(sizes[-1], self.space.objects, key=head_key)
        return Policy(VectorEncoder(sizes[:1], key=key), sizes, head, key=layers_key)


@dataclass(frozen=True)
class ViewNetworks:
    """As for images, with the waypoints beside them. The paper gives no sizes."""

    space: View

    def encoder(self, embedding: int, key: Array) -> Encoder:
        return ViewEncoder(self.space.image, self.space.waypoints, observations=2, features=embedding, key=key)

    def policy(self, observations: int, plan: int, key: Array) -> Policy:
        network_key, layers_key, head_key = jax.random.split(key, 3)
        network = ViewEncoder(self.space.image, self.space.waypoints, observations, FEATURES, key=network_key)
        head = Categorical(HIDDEN[-1], self.space.actions, key=head_key)
        return Policy(network, (FEATURES + plan, *HIDDEN), head, key=layers_key)


class Family(NamedTuple):
    """How agents are built for a kind of space, by the name of their networks, and how large they are unless told."""

    networks: dict[str, Callable[[Any], Networks]]
    default: str  # the name of the networks it has unless told
    embedding: int  # the paper's best
    samples: float  # to train on
    weight_decay: float  # while training
    precision: Any  # to compute in on an accelerator; where millimetres matter, all of it


FAMILIES = {
    Images: Family(
        {"paper": ImageNetworks},
        default="paper",
        embedding=512,
        samples=60e6,
        weight_decay=0.1,
        precision=jnp.bfloat16,
    ),
    Objects: Family(
        {"relations": ObjectNetworks, "paper": PaperObjectNetworks},
        default="relations",
        embedding=64,
        samples=10e6,
        weight_decay=0.3,
        precision=jnp.float32,
    ),
    View: Family(
        {"views": ViewNetworks},
        default="views",
        embedding=64,
        samples=10e6,
        weight_decay=0.1,
        precision=jnp.bfloat16,
    ),
}


def family(space: Space) -> Family:
    """How agents for a space are built."""
    if type(space) not in FAMILIES:
        raise InputError(f"there are no networks for {type(space).__name__} yet: such a world has no agents so far")
    return FAMILIES[type(space)]


def build(name: str, space: Space, embedding: int | None = None, networks: str | None = None, *, key: Array) -> Agent:
    """A fresh agent of the zoo, for what a world shows and lets do. `networks`: the space's default unless told."""
    if name not in AGENTS:
        raise InputError(f"there is no agent {name!r}; choose one of {', '.join(AGENTS)}")
    spec = AGENTS[name]
    kind = family(space)
    name_of_networks = networks or kind.default
    if name_of_networks not in kind.networks:
        raise InputError(f"there are no networks '{networks}' for this world; choose {' or '.join(kind.networks)}")
    made = kind.networks[name_of_networks](space)
    size = embedding or kind.embedding
    encoder_key, policy_key = jax.random.split(key)
    if spec.conditioning == "concatenate":
        return Concatenate(policy=made.policy(observations=4, plan=0, key=policy_key))
    encoder = made.encoder(size, encoder_key)
    if spec.conditioning == "difference":
        return Difference(policy=made.policy(observations=1, plan=size, key=policy_key), encoder=encoder)
    policy = made.policy(observations=2, plan=size, key=policy_key)
    return Static(policy=policy, encoder=encoder, normalise=spec.normalise)
