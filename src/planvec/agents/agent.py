"""Agents: an encoder g and a policy π, and how a plan reaches the policy.

People use `plan`, `act`, `read` and `progress`, one episode at a time. Programs use `encode`, `outputs` and `choose`,
which take batches and may be jitted, vmapped and differentiated.
"""

import hashlib
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from planvec.agents.encoders import Encoder, Observation
from planvec.agents.metric import Metric
from planvec.agents.policies import Policy
from planvec.agents.probe import HALF, TINY, Probe, Reading, progress
from planvec.data.tiles import Tiled
from planvec.errors import InputError
from planvec.plans import AnyPlan, Plan, ReferencePlan, unit

Values = Any  # a batch of plans inside a program: vectors (N, embedding), or naive's (first, last) observations


class Ends(Protocol):
    """What has a first and a last observation: a demonstration, or a stretch of an episode."""

    @property
    def first(self) -> Observation: ...

    @property
    def last(self) -> Observation: ...


class Choice(NamedTuple):
    """What an agent does next: an action; or none, where it says that nothing is left to do."""

    action: Any  # not meant where it says stop
    stop: Array  # bool; agents whose head cannot say it never do


class Agent(eqx.Module):
    """What all agents do; a subclass is one conditioning."""

    policy: Policy
    probe: Probe | None = eqx.field(default=None, kw_only=True)  # reads plans; fitted afterwards, never trained
    metric: Metric | None = eqx.field(default=None, kw_only=True)  # how much is in a plan; fitted afterwards as well

    segments: ClassVar[tuple[str, ...]]  # parts of a training sample (losses.SEGMENTS) that `outputs` wants

    @abstractmethod
    def encode(self, first: Observation, last: Observation) -> Values:
        """What the demonstrations from `first` to `last` (batched) ask for."""

    @abstractmethod
    def outputs(self, first: Observation, now: Observation, plans: Values, done: Values | None = None) -> Any:
        """What the head needs to act `now` (batched). `done` is encode(first, now), where that is known."""

    @property
    def can_stop(self) -> bool:
        """Whether it can say by itself that nothing is left to do."""
        return self.policy.head.can_stop

    def choose(self, first: Observation, now: Observation, plans: Values, key: Array, greedy: bool = False) -> Choice:
        """An action or a stop in each of a batch of moments, each in its own episode."""
        return self.decide(self.outputs(first, now, plans), key, greedy)

    def decide(self, outputs: Any, key: Array, greedy: bool = False) -> Choice:
        """What the head makes of its outputs."""
        head = self.policy.head
        return Choice(head.greedy(outputs) if greedy else head.sample(outputs, key), head.stops(outputs))

    def finished(self, first: Observation, now: Observation, plans: Values) -> Array:
        """`done` for programs, of a batch of plans: whether less than half a skill is left; or, where there is no
        metric, whether the probe reads half a turn or more of no skill in what is left. bool (N,)"""
        left = jax.tree.map(jnp.subtract, plans, self.encode(first, now))
        if self.metric is not None:
            return self.metric(left) < HALF
        return jnp.max(self.reader(left), axis=-1) < HALF

    @abstractmethod
    def wrap(self, values: Values) -> AnyPlan:
        """Values as a plan: to be added, compared, kept. Of a batch of values, a batch of plans."""

    @abstractmethod
    def unwrap(self, plan: AnyPlan) -> Values:
        """The values of a plan, unchecked."""

    def add(self, parts: Sequence[Values]) -> Values:
        """The sum of plans (batched), as `wrap` and `+` would make it, for programs."""
        return jax.tree.map(lambda *leaves: sum(leaves), *parts)

    def plan(self, shown: Ends | tuple[Observation, Observation]) -> AnyPlan:
        """The plan of one demonstration, or of any pair (first, last) of observations."""
        ends = shown if isinstance(shown, tuple) else (shown.first, shown.last)
        first, last = _batch_of_one(ends)
        return self.wrap(_only(_encode(self, first, last)))

    def values(self, plan: AnyPlan) -> Values:
        """The values of a plan, for `outputs`. The plan must be of this agent's own making."""
        if plan.agent != self.fingerprint:
            raise InputError(
                f"this plan was made by agent {plan.agent}, and this is agent {self.fingerprint}: "
                "make the plan with the agent that is to act on it"
            )
        return self.unwrap(plan)

    def act(self, first: Observation, now: Observation, plan: AnyPlan, key: Array, greedy: bool = False) -> Choice:
        """What to do next in one episode that began with `first` and has come to `now`: an action; or nothing more,
        where `stop` is true."""
        first, now, plans = _batch_of_one((first, now, self.values(plan)))
        return _only(_choose(self, first, now, plans, key, greedy))

    @property
    def reader(self) -> Probe:
        """The probe; complains where there is none."""
        if self.probe is None:
            raise InputError(
                "this agent has no probe to read plans with, or one of other weights; "
                "fit one with `planvec probe RUN`, and load the agent again"
            )
        return self.probe

    def read(self, plan: AnyPlan) -> Reading:
        """Which skills a plan holds, and how often."""
        vector = self.values(plan)
        probe = self.reader
        if vector.ndim != 1:
            raise InputError(f"read one plan at a time; these are {len(vector)}")
        return probe.read(vector)

    def remaining(self, plan: AnyPlan, first: Observation, now: Observation) -> AnyPlan:
        """What is left to do of a plan in an episode that began with `first` and has come to `now`."""
        return plan - self.plan((first, now))

    def progress(self, plan: AnyPlan, first: Observation, now: Observation) -> float:
        """How much of a plan has been done, from 0 to 1: of its length where there is a metric, else of its skills."""
        if self.metric is not None:
            rest = self.metric(self.values(self.remaining(plan, first, now)))
            return float(jnp.clip(1 - rest / jnp.maximum(self.metric(self.values(plan)), TINY), 0, 1))
        whole = self.read(plan).counts
        left = self.read(self.remaining(plan, first, now)).counts
        return float(progress(jnp.array(list(whole.values())), jnp.array(list(left.values()))))

    def done(self, plan: AnyPlan, first: Observation, now: Observation) -> bool:
        """Whether a plan has been done: less than half a skill is left; or, where there is no metric, of no skill half
        a turn or more."""
        left = self.remaining(plan, first, now)
        if self.metric is not None:
            return bool(self.metric(self.values(left)) < HALF)
        return self.read(left).most < HALF

    @property
    def bare(self) -> Self:
        """The agent without what was fitted to it afterwards."""
        return replace(self, probe=None, metric=None)

    def cast(self, dtype: Any) -> Self:
        """The same agent with its weights, and so its computations, in another dtype; but for what keeps its own."""

        def keeps(module: Any) -> bool:
            return getattr(module, "keeps_precision", False)

        return jax.tree.map(
            lambda leaf: leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf, self, is_leaf=keeps
        )

    @cached_property
    def fingerprint(self) -> str:
        """Names these very weights: equal wherever the same agent is loaded, with a probe or without."""
        digest = hashlib.sha256(type(self).__name__.encode())
        for leaf in jax.tree.leaves(self.bare):
            digest.update(np.asarray(leaf).tobytes())
        return digest.hexdigest()[:12]


class EmbeddingAgent(Agent):
    """An agent with an encoder, whose plans are vectors."""

    encoder: Encoder

    def encode(self, first: Observation, last: Observation) -> Array:
        """g(first, last): (N, embedding)."""
        return self.encoder((first, last))

    def wrap(self, values: Array) -> Plan:
        return Plan(vector=values, agent=self.fingerprint)

    def unwrap(self, plan: Plan) -> Array:
        return plan.vector


class Difference(EmbeddingAgent):
    """cpv: the policy sees oₜ and what is left to do, plan − g(o₀, oₜ)."""

    segments: ClassVar[tuple[str, ...]] = ("reference", "done")

    def outputs(self, first: Observation, now: Observation, plans: Array, done: Array | None = None) -> Array:
        done = self.encode(first, now) if done is None else done
        return self.policy((now,), now, plans - done)


class Static(EmbeddingAgent):
    """te and tecnet: the policy sees o₀, oₜ and the whole plan, of unit length if `normalise`."""

    normalise: bool = eqx.field(static=True)

    segments: ClassVar[tuple[str, ...]] = ("reference",)

    def outputs(self, first: Observation, now: Observation, plans: Array, done: Array | None = None) -> Array:
        return self.policy((first, now), now, unit(plans) if self.normalise else plans)


class Concatenate(Agent):
    """naive: no encoder; the policy sees o₀, oₜ and the reference's own first and last observations.

    Numbers of tiles have no mean: pictures made of tiles are drawn before they are added.
    """

    segments: ClassVar[tuple[str, ...]] = ("reference",)

    def encode(self, first: Observation, last: Observation) -> tuple[Observation, Observation]:
        return first, last

    def outputs(
        self, first: Observation, now: Observation, plans: tuple[Observation, ...], done: Values = None
    ) -> Array:
        return self.policy((first, now, *plans), now)

    @property
    def reader(self) -> Probe:
        raise InputError("a model without plan vectors (naive) cannot read plans; use a te, cpv or tecnet agent")

    def add(self, parts: Sequence[tuple[Observation, Observation]]) -> tuple[Observation, Observation]:
        """The mean of the references' observations."""
        numbers = [_as_numbers(part) for part in parts]
        return jax.tree.map(lambda *leaves: sum(leaves) / len(leaves), *numbers)

    def wrap(self, values: tuple[Observation, Observation]) -> ReferencePlan:
        first, last = _as_numbers(values)
        return ReferencePlan(first=first, last=last, count=1.0, agent=self.fingerprint)

    def unwrap(self, plan: ReferencePlan) -> tuple[Observation, Observation]:
        return plan.mean()


def _as_numbers(observations: Any) -> Any:
    """Observations as float32, which can be added; with pictures drawn that are made of tiles."""

    def tiled(leaf: Any) -> bool:
        return isinstance(leaf, Tiled)

    drawn = jax.tree.map(lambda leaf: leaf.draw() if tiled(leaf) else leaf, observations, is_leaf=tiled)
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), drawn)


def _batch_of_one(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], tree)


def _only(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[0], tree)


@eqx.filter_jit
def _encode(agent: Agent, first: Observation, last: Observation) -> Values:
    return agent.encode(first, last)


@eqx.filter_jit
def _choose(agent: Agent, first: Observation, now: Observation, plans: Values, key: Array, greedy: bool) -> Choice:
    return agent.choose(first, now, plans, key, greedy)
