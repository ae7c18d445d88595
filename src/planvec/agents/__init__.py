"""Agents: encoders, policies, how a plan reaches the policy, and the ten models of the paper."""

from planvec.agents.agent import Agent
from planvec.agents.zoo import AGENTS, Spec, Weights, build, family

__all__ = ["AGENTS", "Agent", "Spec", "Weights", "build", "family"]
