import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from planvec.plans import Plan, ReferencePlan, length, unit

SIZE = 6
vectors = st_numpy.arrays(np.float32, SIZE, elements=st.floats(-100, 100, width=32))
plans = vectors.map(lambda vector: Plan(vector=jnp.asarray(vector), agent="a"))
scalars = st.floats(-8, 8, width=32)
properties = settings(max_examples=40, deadline=None)


def plan(*numbers: float, agent: str = "a") -> Plan:
    return Plan(vector=jnp.array(numbers, jnp.float32), agent=agent)


def reference(first: float, last: float, agent: str = "n") -> ReferencePlan:
    return ReferencePlan(first=jnp.full((2, 2), first), last=jnp.full((2, 2), last), count=1.0, agent=agent)


def near(one: Plan, other: Plan) -> bool:
    """Equal but for the rounding of numbers up to a few hundred."""
    return one.isclose(other, rtol=1e-5, atol=1e-2)


@properties
@given(plans, plans)
def test_addition_commutes(a, b):
    assert a + b == b + a


@properties
@given(plans, plans, plans)
def test_addition_associates(a, b, c):
    assert near((a + b) + c, a + (b + c))


@properties
@given(plans, plans)
def test_subtraction_undoes_addition(a, b):
    assert near((a + b) - b, a)
    assert (a - a).norm() == 0
    assert a - b == a + (-b)


@properties
@given(plans, plans, scalars)
def test_multiples_distribute(a, b, k):
    assert near(k * (a + b), a * k + b * k)
    assert near((a * 4) / 4, a)


@properties
@given(plans, plans)
def test_similarity_is_a_cosine(a, b):
    assert -1.0001 <= float(a.similarity(b)) <= 1.0001
    np.testing.assert_allclose(a.similarity(b), b.similarity(a), atol=1e-6)
    np.testing.assert_allclose((2 * a).similarity(b), a.similarity(b), atol=1e-5)


def test_norm_and_similarity_by_hand():
    assert plan(3, 4).norm() == 5
    assert plan(1, 0).similarity(plan(0, 2)) == 0
    np.testing.assert_allclose(plan(1, 0).similarity(plan(1, 1)), np.sqrt(0.5), rtol=1e-6)
    assert plan(0, 0).similarity(plan(1, 1)) == 0


def test_equality_is_within_tolerance():
    assert plan(1, 2) == plan(1, 2 + 1e-6)
    assert plan(1, 2) != plan(1, 2.01)
    assert plan(1, 2) != plan(1, 2, agent="b")
    assert plan(1, 2) != "a plan"
    assert plan(1, 2).isclose(plan(1, 2.01), rtol=0.1)


def test_numpy_and_jax_numbers_multiply_from_either_side():
    for two in (2, 2.0, np.float32(2), np.array(2.0), jnp.float32(2)):
        assert two * plan(1, 2) == plan(1, 2) * two == plan(2, 4)


def test_sum_of_a_list():
    assert sum([plan(1, 2), plan(3, 4)]) == plan(4, 6)
    assert sum([reference(0, 2), reference(2, 4)]) == reference(0, 2) + reference(2, 4)


@pytest.mark.parametrize("operation", [lambda a: a + 1, lambda a: 1 + a, lambda a: a * a, lambda a: a * np.ones(2)])
def test_what_is_no_plan_or_number_does_not_mix(operation):
    with pytest.raises(TypeError):
        operation(plan(1, 2))


@pytest.mark.parametrize("operation", ["__add__", "__sub__", "similarity", "isclose"])
def test_plans_of_different_agents_do_not_mix(operation):
    with pytest.raises(ValueError, match="different agents"):
        getattr(plan(1, 2), operation)(plan(1, 2, agent="b"))


def test_a_vector_and_a_reference_plan_do_not_mix():
    for one, other in [(plan(1, 2), reference(1, 2)), (reference(1, 2), plan(1, 2))]:
        with pytest.raises(ValueError, match="different agents"):
            one + other
    with pytest.raises(ValueError, match="different agents"):
        reference(1, 2) + reference(1, 2, agent="b")


def test_plans_pass_through_jit():
    doubled = jax.jit(lambda a, b: 2 * (a + b))(plan(1, 2), plan(3, 4))
    assert doubled == plan(8, 12)
    assert doubled.agent == "a"
    both = jax.jit(lambda a, b: a + b)(reference(0, 2), reference(2, 4))
    assert both == reference(0, 2) + reference(2, 4)


def test_batches_of_plans():
    rows = Plan(vector=jnp.array([[3.0, 4.0], [0.0, 2.0]]), agent="a")
    np.testing.assert_array_equal(rows.norm(), [5, 2])
    assert rows + rows == 2 * rows


def test_plans_are_frozen():
    with pytest.raises(AttributeError):
        plan(1, 2).vector = jnp.zeros(2)


def test_reference_plan_is_read_as_a_mean():
    three = reference(0, 10) + reference(30, 20) + reference(60, 60)
    first, last = three.mean()
    np.testing.assert_array_equal(first, np.full((2, 2), 30))
    np.testing.assert_array_equal(last, np.full((2, 2), 30))
    assert three.count == 3
    assert reference(0, 2) != reference(0, 2) + reference(0, 2)


@pytest.mark.parametrize(
    "operation",
    [
        lambda a: a - a,
        lambda a: 2 * a,
        lambda a: a * 2,
        lambda a: a / 2,
        lambda a: -a,
        lambda a: a.similarity(a),
    ],
)
def test_reference_plans_only_add(operation):
    with pytest.raises(ValueError, match=r"without plan vectors.*only \+ has a meaning"):
        operation(reference(1, 2))


def test_length_and_unit_are_safe_at_zero():
    zero = jnp.zeros(3)
    assert length(zero) == 0
    np.testing.assert_array_equal(unit(zero), zero)
    np.testing.assert_array_equal(jax.grad(length)(zero), zero)
    assert np.isfinite(jax.jacobian(unit)(zero)).all()
