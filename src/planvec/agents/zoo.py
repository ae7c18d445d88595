"""The ten models of the paper, as data: a conditioning and the weights of the losses."""

from dataclasses import dataclass
from typing import Literal

import equinox as eqx
import jax
from jax import Array

from planvec.agents.agent import Agent, Concatenate, Difference, Static
from planvec.agents.encoders import ImageEncoder
from planvec.agents.policies import Categorical, Policy
from planvec.errors import InputError

FEATURES = 512  # what the policy's own network makes of what it sees


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


def build(
    name: str, observation_shape: tuple[int, int, int], actions: int, embedding: int = 512, *, key: Array
) -> Agent:
    """A fresh agent of the zoo, for images of this shape and this many discrete actions."""
    if name not in AGENTS:
        raise InputError(f"there is no agent {name!r}; choose one of {', '.join(AGENTS)}")
    spec = AGENTS[name]
    encoder_key, network_key, policy_key = jax.random.split(key, 3)

    def policy(sees: int, plan: int) -> Policy:
        network = ImageEncoder(observation_shape, observations=sees, features=FEATURES, key=network_key)
        return Policy(network, inputs=FEATURES + plan, head=Categorical(actions), key=policy_key)

    if spec.conditioning == "concatenate":
        return Concatenate(policy=policy(sees=4, plan=0))
    encoder = ImageEncoder(observation_shape, observations=2, features=embedding, key=encoder_key)
    if spec.conditioning == "difference":
        return Difference(policy=policy(sees=1, plan=embedding), encoder=encoder)
    return Static(policy=policy(sees=2, plan=embedding), encoder=encoder, normalise=spec.normalise)
