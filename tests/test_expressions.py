import re

import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planvec.errors import InputError
from planvec.expressions import DEEPEST, LONGEST, ExpressionError, parse
from planvec.plans import Plan, ReferencePlan

VALUES = {"A": 3.0, "B": -0.5, "c_2": 7.25}
properties = settings(max_examples=100, deadline=None)


def plan(*numbers, agent="a"):
    return Plan(vector=jnp.array(numbers, jnp.float32), agent=agent)


def blanks(draw):
    return draw(st.sampled_from(["", " ", "  "]))


@st.composite
def numbers(draw, depth=2):
    """The text of a number, worked out or not; never 0."""
    if not depth or draw(st.booleans()):
        return draw(st.sampled_from(["1", "2", "3.5", ".25", "10", "7."]))
    left, right = (draw(numbers(depth=depth - 1)) for _ in range(2))
    return draw(st.sampled_from([f"({left} * {right})", f"{left}/{right}", f"-{left}", f"({left}+{right})"]))


@st.composite
def texts(draw, depth=4):
    """The text of an expression that is right."""
    if not depth or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(list(VALUES)))
    one, other, number = draw(texts(depth=depth - 1)), draw(texts(depth=depth - 1)), draw(numbers())
    gap = blanks(draw)
    shapes = [f"{one}{gap}+{gap}{other}", f"{one} -{gap}{other}", f"({one})*{gap}{number}", f"{number}*({one})"]
    return draw(st.sampled_from([*shapes, f"({one}{gap}- {other})/{number}", f"-{gap}{one}", f"({gap}{one})"]))


@properties
@given(texts())
def test_values_are_those_of_pythons_arithmetic(text):
    if len(text) <= LONGEST:
        assert parse(text).evaluate(VALUES) == pytest.approx(eval(text, dict(VALUES)), rel=1e-12, abs=1e-9)


@properties
@given(st.text(alphabet="AB12. +-*/()$", max_size=20))
def test_whatever_is_written_is_a_plan_or_a_mistake_with_its_place(text):
    try:
        value = parse(text).evaluate({"A": 1.0, "B": 2.0})
    except ExpressionError as error:
        reason, shown, caret = str(error).split("\n")
        assert reason == error.reason and shown == "    " + text and caret.index("^") == 4 + error.at
        assert 0 <= error.at <= len(text)
    else:
        assert value == pytest.approx(eval(text.strip(), {"A": 1.0, "B": 2.0}))


def test_plans():
    a, b, c = plan(1, 2), plan(10, 0), plan(0, 100)
    expression = parse("A + 2*B - (C - A)/2")
    assert expression.evaluate({"A": a, "B": b, "C": c}) == a + 2 * b - (c - a) / 2
    assert expression.names == ("A", "B", "C") and str(expression) == "A + 2*B - (C - A)/2"
    assert parse("B*2 - -B + B").evaluate({"B": b}) == 4 * b
    assert parse("a1").evaluate({"a1": a, "A1": b}) == a


@pytest.mark.parametrize(
    ("text", "at", "reason"),
    [
        ("", 0, "the plan is empty"),
        ("   ", 3, "the plan is empty"),
        ("A * B", 2, "a plan times a plan"),
        ("2*A*(A + B)", 3, "a plan times a plan"),
        ("A + 1", 2, "a plan and a number do not add up"),
        ("3 - A", 2, "a plan and a number do not add up"),
        ("A / 0", 2, "division by zero"),
        ("A/(1 - 1)", 1, "division by zero"),
        ("A / B", 2, "divided by a plan"),
        ("1/A", 1, "divided by a plan"),
        ("A + D", 4, "no demonstration is called 'D'; there is A, B"),
        ("A + a", 4, "no demonstration is called 'a'"),
        ("A $ B", 2, "'$' has no place"),
        ("A + ?", 4, "'?' has no place"),
        ("(A + B", 0, "never closed"),
        ("A + (B + (A)", 4, "never closed"),
        ("A + B)", 5, "closes nothing"),
        ("()", 1, "expected a name, a number or (, found ')'"),
        ("A +", 3, "found the end"),
        ("A + * B", 4, "found '*'"),
        ("2A", 1, "put + - * or / before 'A'"),
        ("(A B)", 3, "put + - * or / before 'B'"),
        ("1e3*A", 1, "put + - * or / before 'e3'"),
        ("  2*3", 2, "this is a number, not a plan"),
        ("9" * 400 + "*A", 0, "too large"),
        ("(" * (DEEPEST + 1) + "A", DEEPEST, "parentheses within each other"),
    ],
)
def test_mistakes_are_shown_where_they_are(text, at, reason):
    with pytest.raises(InputError, match=re.escape(reason)) as caught:
        parse(text).evaluate({"A": 1.0, "B": 2.0})
    assert str(caught.value).split("\n")[1:] == ["    " + text, "    " + " " * at + "^"]


def test_an_expression_that_is_too_long():
    with pytest.raises(InputError, match="500 characters at most"):
        parse("A" + " + A" * LONGEST)
    longest = parse("A" + "+A" * (LONGEST // 2 - 1))
    assert longest.evaluate({"A": 1.0}) == LONGEST // 2


def test_the_caret_stays_below_the_mistake_whatever_the_blanks():
    with pytest.raises(InputError) as caught:
        parse("A\t+\n?")
    assert str(caught.value).endswith("\n    A + ?\n        ^")


def test_what_plans_complain_of_comes_with_the_expression():
    naive = ReferencePlan(first=jnp.ones(2), last=jnp.ones(2), count=1.0, agent="n")
    assert parse("A + A + A").evaluate({"A": naive}).count == 3
    with pytest.raises(InputError, match=r"only \+ has a meaning.*\n    A - A\n      \^") as caught:
        parse("A - A").evaluate({"A": naive})
    assert caught.value.at == 2
    with pytest.raises(InputError, match=r"different agents.*\n    A \+ B\n      \^"):
        parse("A + B").evaluate({"A": plan(1, 2), "B": plan(1, 2, agent="b")})
