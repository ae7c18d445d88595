"""What an expression of demonstrations says, for people: its terms as they are written, and the skills it asks for."""

from collections.abc import Mapping
from functools import reduce

from planvec.data.demonstrations import Demonstration
from planvec.errors import InputError
from planvec.evaluation.acting import MOST, skills_of
from planvec.expressions import Expression, Name, Negative, Node, Operation
from planvec.tasks import Task

Term = tuple[str, float]  # a demonstration, and how often it counts
TERMS = 5  # so many are shown one by one
DIGITS = 6  # of counts: thirds add up to ones


def terms(expression: Expression) -> list[Term]:
    """What is added up, as it is written; where that is long, each demonstration once."""
    written = _occurrences(expression.tree, 1.0)
    if len(written) <= TERMS:
        return written
    return [(name, sum(factor for other, factor in written if other == name)) for name in expression.names]


def counts(expression: Expression, demos: Mapping[str, Demonstration]) -> dict[str, float]:
    """How often each skill is asked for, exactly: a half is a half, and what is taken away is below zero."""
    mentioned = dict.fromkeys(skill for name in expression.names for skill in demos[name].task)
    shown = {
        skill: expression.evaluate({name: float(demos[name].task.count(skill)) for name in expression.names})
        for skill in mentioned
    }
    return {skill: round(count, DIGITS) for skill, count in shown.items()}


def wanted(expression: Expression, demos: Mapping[str, Demonstration]) -> Task:
    """The whole skills that are asked for, which end an episode and are judged."""
    try:
        return skills_of(expression, demos)
    except InputError:
        raise InputError(f"this asks for more than {MOST} skills; ask for fewer") from None


def offered(expression: Expression, demos: Mapping[str, Demonstration]) -> Task:
    """What the scene must offer: also what is taken away again, so that leaving it out is the agent's doing."""
    added = [(name, factor) for name, factor in _occurrences(expression.tree, 1.0) if factor > 0]
    everything = tuple(skill for name in expression.names for skill in demos[name].task)
    if not added:
        return everything
    nodes = [Operation("*", factor, Name(name, 0), 0) for name, factor in added]
    total = Expression(expression.text, reduce(lambda left, right: Operation("+", left, right, 0), nodes))
    try:
        return skills_of(total, demos) or everything
    except InputError:  # far more than is left in the end
        return skills_of(expression, demos) or everything


def _occurrences(node: Node, factor: float) -> list[Term]:
    """Each name in an expression, with its factor: expressions are linear."""
    if isinstance(node, Name):
        return [(node.name, factor)]
    if isinstance(node, Negative):
        return _occurrences(node.inner, -factor)
    if node.symbol in "+-":
        sign = 1.0 if node.symbol == "+" else -1.0
        return _occurrences(node.left, factor) + _occurrences(node.right, sign * factor)
    if node.symbol == "/":
        return _occurrences(node.left, factor / node.right)
    number, plan = (node.left, node.right) if isinstance(node.left, float) else (node.right, node.left)
    return _occurrences(plan, number * factor)
