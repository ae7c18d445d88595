"""The layers of an agent like cpv-full, for those who count them or copy them."""

from typing import NamedTuple

from planvec.agents import Agent
from planvec.agents.agent import Difference
from planvec.agents.encoders import ImageEncoder, Linear
from planvec.agents.policies import Categorical, LayeredPolicy


class Layers(NamedTuple):
    encoder: ImageEncoder  # g
    network: ImageEncoder  # of the policy, on what is seen now
    linear: tuple[Linear, ...]  # of the policy, on that and the plan; the last gives the actions' logits


def layers(agent: Agent) -> Layers:
    """Of an agent that sees images, chooses among actions, and is given the plan less what is done."""
    assert isinstance(agent, Difference)
    policy = agent.policy
    assert isinstance(policy, LayeredPolicy)
    assert isinstance(agent.encoder, ImageEncoder)
    assert isinstance(policy.network, ImageEncoder)
    assert isinstance(policy.head, Categorical)
    return Layers(agent.encoder, policy.network, (*policy.layers, policy.head.linear))
