"""Agents: encoders, policies, how a plan reaches the policy, and the models."""

from planvec.agents.agent import Agent
from planvec.agents.zoo import AGENTS, Spec, Weights, build, family, networks_of

__all__ = ["AGENTS", "Agent", "Spec", "Weights", "build", "family", "networks_of"]
