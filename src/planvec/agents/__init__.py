"""Agents: encoders, policies, how a plan reaches the policy, and the ten models of the paper."""

from planvec.agents.agent import Agent
from planvec.agents.zoo import AGENTS, FAMILIES, Spec, Weights, build

__all__ = ["AGENTS", "FAMILIES", "Agent", "Spec", "Weights", "build"]
