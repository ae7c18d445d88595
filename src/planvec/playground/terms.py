"""What an expression of demonstrations says, for people: its terms as they are written, and the skills it asks for."""

from collections.abc import Mapping
from functools import reduce

from planvec.data.demonstrations import Demonstration
from planvec.errors import InputError
from planvec.evaluation.acting import MOST, skills_of
from planvec.expressions import Expression, Name, Operation, Term
from planvec.tasks import Task

TERMS = 5  # so many are shown one by one
DIGITS = 6  # of counts: thirds add up to ones


def terms(expression: Expression) -> list[Term]:
    """What is added up, as it is written; where that is long, each demonstration once."""
    if len(expression.terms) <= TERMS:
        return expression.terms
    total = {name: sum(factor for other, factor in expression.terms if other == name) for name in expression.names}
    return list(total.items())


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
    added = [(name, factor) for name, factor in expression.terms if factor > 0]
    everything = tuple(skill for name in expression.names for skill in demos[name].task)
    if not added:
        return everything
    nodes = [Operation("*", factor, Name(name, 0), 0) for name, factor in added]
    total = Expression(expression.text, reduce(lambda left, right: Operation("+", left, right, 0), nodes))
    try:
        return skills_of(total, demos) or everything
    except InputError:  # far more than is left in the end
        return skills_of(expression, demos) or everything
