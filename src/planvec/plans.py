"""Plans: what a demonstration asks for, as something to add, subtract and compare.

An agent makes a plan of a demonstration (`agent.plan`) and acts on one (`agent.act`). `chop + bread` does
both; `both - chop` is what is left. Plans are frozen, and pytrees, so that they pass through jit.
"""

from collections.abc import Callable
from numbers import Real
from typing import Any, NoReturn, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from planvec.errors import InputError


def length(vector: Array) -> Array:
    """‖v‖₂ over the last axis, with gradient 0 (not NaN) at v = 0."""
    squared = jnp.sum(vector**2, axis=-1)
    positive = squared > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, squared, 1.0)), 0.0)


def unit(vector: Array) -> Array:
    """v / ‖v‖₂ over the last axis; the zero vector stays zero."""
    size = length(vector)[..., None]
    return vector / jnp.where(size > 0, size, 1.0)


class Plan(eqx.Module):
    """The vector g(first, last) of a demonstration, or any sum, difference or multiple of such vectors.

    The vector is raw: an agent that reads unit vectors (tecnet) normalises when it reads, never here.
    """

    vector: Array  # (embedding,), or (N, embedding): N plans at once
    agent: str = eqx.field(static=True)  # fingerprint of the agent that made it

    __array_ufunc__ = None  # lets numpy numbers stand on the left: np.float32(2) * plan

    def __add__(self, other: "AnyPlan") -> "Plan":
        return self._combine(other, jnp.add)

    def __sub__(self, other: "AnyPlan") -> "Plan":
        return self._combine(other, jnp.subtract)

    def __radd__(self, start: int) -> "Plan":
        return self if _is_zero(start) else NotImplemented

    def __mul__(self, factor: float) -> "Plan":
        return self._with(self.vector * factor) if _is_number(factor) else NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> "Plan":
        return self._with(self.vector / divisor) if _is_number(divisor) else NotImplemented

    def __neg__(self) -> "Plan":
        return self._with(-self.vector)

    def __eq__(self, other: object) -> bool:
        """Equal up to rounding, and made by the same agent."""
        return isinstance(other, Plan) and self.agent == other.agent and self.isclose(other)

    def isclose(self, other: "Plan", rtol: float = 1e-5, atol: float = 1e-6) -> bool:
        """Whether ‖a − b‖ ≤ atol + rtol · max(‖a‖, ‖b‖)."""
        apart = (self - other).norm()
        return bool(jnp.all(apart <= atol + rtol * jnp.maximum(self.norm(), other.norm())))

    def norm(self) -> Array:
        """How much there is to do: the vector's L2 length."""
        return length(self.vector)

    def similarity(self, other: "Plan") -> Array:
        """The cosine of the angle between two plans, from −1 to 1; 0 if either is the zero plan."""
        return jnp.sum(unit(self.vector) * unit(_of_same_agent(self, other).vector), axis=-1)

    def _combine(self, other: "AnyPlan", operation: Callable[[Array, Array], Array]) -> "Plan":
        if not isinstance(other, AnyPlan):
            return NotImplemented
        return self._with(operation(self.vector, _of_same_agent(self, other).vector))

    def _with(self, vector: Array) -> "Plan":
        return Plan(vector=vector, agent=self.agent)


def _meaningless(self: "ReferencePlan", *_: object) -> NoReturn:
    raise InputError(
        "this plan was made by a model without plan vectors (naive): it is the references' own observations, "
        "read as their mean, so only + has a meaning; use a te or cpv agent for -, *, / and similarity"
    )


class ReferencePlan(eqx.Module):
    """naive's plan: the first and last observations of references, summed and counted, read as their mean."""

    first: Any  # an observation: a pytree of float32 sums
    last: Any
    count: float  # how many references the sums hold
    agent: str = eqx.field(static=True)

    __array_ufunc__ = None

    def __add__(self, other: "AnyPlan") -> "ReferencePlan":
        if not isinstance(other, AnyPlan):
            return NotImplemented
        other = _of_same_agent(self, other)
        first, last = jax.tree.map(jnp.add, (self.first, self.last), (other.first, other.last))
        return ReferencePlan(first=first, last=last, count=self.count + other.count, agent=self.agent)

    def __radd__(self, start: int) -> "ReferencePlan":
        return self if _is_zero(start) else NotImplemented

    def __eq__(self, other: object) -> bool:
        """As many references, with the same mean up to rounding, and made by the same agent."""
        return (
            isinstance(other, ReferencePlan)
            and (self.agent, self.count) == (other.agent, other.count)
            and self.isclose(other)
        )

    def isclose(self, other: "ReferencePlan", rtol: float = 1e-5, atol: float = 1e-3) -> bool:
        """Whether the two means agree in every number of the observations."""
        other = _of_same_agent(self, other)
        close = jax.tree.map(lambda a, b: jnp.allclose(a, b, rtol=rtol, atol=atol), self.mean(), other.mean())
        return all(bool(leaf) for leaf in jax.tree.leaves(close))

    def mean(self) -> tuple[Any, Any]:
        """The mean first and the mean last observation: what the agent reads."""
        return jax.tree.map(lambda total: total / self.count, (self.first, self.last))

    __sub__ = __mul__ = __rmul__ = __truediv__ = __neg__ = norm = similarity = _meaningless


AnyPlan = Plan | ReferencePlan
Kind = TypeVar("Kind", Plan, ReferencePlan)


def _of_same_agent(one: Kind, other: AnyPlan) -> Kind:
    """The other plan; complains unless it is of the agent that made the one, and so of its kind."""
    if one.agent != other.agent or not isinstance(other, type(one)):
        raise InputError(
            f"these plans were made by different agents ({one.agent} and {other.agent}) and do not mix: "
            "make all of them with the agent that is to act on them"
        )
    return other


def _is_zero(start: object) -> bool:
    """0 + plan is the plan, which is what makes sum(plans) work."""
    return isinstance(start, int) and start == 0


def _is_number(value: object) -> bool:
    return isinstance(value, Real) or (isinstance(value, Array | np.ndarray) and value.ndim == 0)
