"""Expressions of plans, such as "A + 2*B - (C - A)/2": read by a small parser, checked, then evaluated.

    sum     = product { ("+" | "-") product }
    product = factor { ("*" | "/") factor }
    factor  = { "-" } ( number | name | "(" sum ")" )

Names stand for plans. Numbers are worked out while reading, so that what makes no sense (a plan times a plan, a number
plus a plan, a division by zero) is found before there are any plans, and shown with a caret under it.
"""

import math
import operator
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from planvec.errors import InputError

Term = tuple[str, float]  # a name, and how often what it stands for counts
Value = TypeVar("Value")  # plans, or whatever else can be added and multiplied by numbers

LONGEST = 500  # characters
DEEPEST = 40  # parentheses within parentheses: what Python's own stack bears with ease
NAME = re.compile(r"[^\W\d]\w*")
TOKEN = re.compile(rf"(?P<number>[0-9]+\.?[0-9]*|\.[0-9]+)|(?P<name>{NAME.pattern})|(?P<symbol>[-+*/()])")
OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


class ExpressionError(InputError):
    """A mistake in an expression: a line, the expression, and a caret under the mistake."""

    def __init__(self, reason: str, text: str, at: int) -> None:
        shown = "".join(letter if letter.isprintable() else " " for letter in text)
        super().__init__(f"{reason}\n    {shown}\n    {' ' * at}^")
        self.reason = reason
        self.at = at


@dataclass(frozen=True)
class Name:
    name: str
    at: int  # where it stands in the text


@dataclass(frozen=True)
class Negative:
    inner: "Node"
    at: int


@dataclass(frozen=True)
class Operation:
    symbol: str
    left: "Node | float"
    right: "Node | float"
    at: int


Node = Name | Negative | Operation  # a part of an expression that is a plan; a part that is a number is a float


@dataclass(frozen=True)
class Expression:
    """An expression whose value is a plan, once its names stand for plans."""

    text: str
    tree: Node

    def __str__(self) -> str:
        return self.text

    @property
    def names(self) -> tuple[str, ...]:
        """The names in it, in the order in which they appear."""
        return tuple(dict.fromkeys(node.name for node in _names(self.tree)))

    @property
    def terms(self) -> list[Term]:
        """Each name as it is written, with its factor: expressions are linear."""
        return _terms(self.tree, 1.0)

    def check(self, known: Collection[str]) -> None:
        """Complain about names that are not known."""
        for node in _names(self.tree):
            if node.name not in known:
                there = f"there is {', '.join(known)}" if known else "there is none at all"
                raise ExpressionError(f"no demonstration is called '{node.name}'; {there}", self.text, node.at)

    def evaluate(self, bindings: Mapping[str, Value]) -> Value:
        """Its value, of plans or of anything else that can be added and multiplied by numbers."""
        self.check(bindings)
        return self._value(self.tree, bindings)

    def _value(self, node: Node, bindings: Mapping[str, Value]) -> Value:
        if isinstance(node, Name):
            return bindings[node.name]
        parts = (node.inner,) if isinstance(node, Negative) else (node.left, node.right)
        operation: Callable[..., Any] = operator.neg if isinstance(node, Negative) else OPERATIONS[node.symbol]
        values = [self._value(part, bindings) if isinstance(part, Node) else part for part in parts]
        try:
            return operation(*values)
        except InputError as error:  # naive's plans only add; plans of two agents do not mix
            raise ExpressionError(str(error), self.text, node.at) from None


def parse(text: str) -> Expression:
    """Read an expression."""
    if len(text) > LONGEST:
        raise InputError(f"an expression has {LONGEST} characters at most; this one has {len(text)}")
    return Expression(text=text, tree=_Parser(text).whole())


def _terms(node: Node | float, factor: float) -> list[Term]:
    match node:
        case Name(name):
            return [(name, factor)]
        case Negative(inner):
            return _terms(inner, -factor)
        case Operation("+", left, right):
            return _terms(left, factor) + _terms(right, factor)
        case Operation("-", left, right):
            return _terms(left, factor) + _terms(right, -factor)
        case Operation("/", plan, float(number)):
            return _terms(plan, factor / number)
        case Operation("*", plan, float(number)) | Operation("*", float(number), plan):
            return _terms(plan, number * factor)
    raise ValueError(f"{node} is no part of an expression")


def _names(node: Node | float) -> list[Name]:
    if isinstance(node, Name):
        return [node]
    if isinstance(node, Negative):
        return _names(node.inner)
    return _names(node.left) + _names(node.right) if isinstance(node, Operation) else []


class _Token(NamedTuple):
    kind: str  # number, name, or the symbol itself; "" at the end
    text: str
    at: int


class _Parser:
    """Goes through an expression from left to right, one method for each line of the grammar."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.depth = 0
        self.position = 0
        self.next = self._read()

    def whole(self) -> Node:
        if not self.next.kind:
            raise self._mistake("the plan is empty; write for example A + B", self.next.at)
        tree = self._sum()
        if self.next.kind == ")":
            raise self._mistake("this parenthesis closes nothing", self.next.at)
        self._expect("")
        if not isinstance(tree, Node):
            raise self._mistake("this is a number, not a plan; name a demonstration in it", self._start())
        return tree

    def _sum(self) -> Node | float:
        left = self._product()
        while self.next.kind in ("+", "-"):
            sign = self._take()
            left = self._combine(sign, left, self._product())
        return left

    def _product(self) -> Node | float:
        left = self._factor()
        while self.next.kind in ("*", "/"):
            sign = self._take()
            left = self._combine(sign, left, self._factor())
        return left

    def _factor(self) -> Node | float:
        minuses = []
        while self.next.kind == "-":
            minuses.append(self._take().at)
        value = self._atom()
        for at in reversed(minuses):
            value = Negative(value, at) if isinstance(value, Node) else -value
        return value

    def _atom(self) -> Node | float:
        token = self._take()
        if token.kind == "number":
            return self._finite(float(token.text), token.at)
        if token.kind == "name":
            return Name(token.text, token.at)
        if token.kind == "(":
            return self._parenthesis(token)
        found = f"'{token.text}'" if token.kind else "the end"
        raise self._mistake(f"expected a name, a number or (, found {found}", token.at)

    def _parenthesis(self, opening: _Token) -> Node | float:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self._mistake(f"more than {DEEPEST} parentheses within each other", opening.at)
        inner = self._sum()
        if not self.next.kind:
            raise self._mistake("this parenthesis is never closed", opening.at)
        self._expect(")")
        self._take()
        self.depth -= 1
        return inner

    def _combine(self, sign: _Token, left: Node | float, right: Node | float) -> Node | float:
        """Two numbers make a number; of two plans there is a sum or a difference, of a plan and a number the rest."""
        numbers = isinstance(left, float) + isinstance(right, float)
        if sign.kind == "/" and right == 0:
            raise self._mistake("a division by zero", sign.at)
        if sign.kind == "/" and not isinstance(right, float):
            raise self._mistake("nothing can be divided by a plan; divide by a number", sign.at)
        if numbers == 2:
            return self._finite(OPERATIONS[sign.kind](left, right), sign.at)
        if sign.kind == "*" and numbers == 0:
            raise self._mistake("a plan times a plan means nothing; multiply a plan by a number", sign.at)
        if sign.kind in "+-" and numbers == 1:
            raise self._mistake("a plan and a number do not add up; multiply the number by a plan", sign.at)
        return Operation(sign.kind, left, right, sign.at)

    def _finite(self, number: float, at: int) -> float:
        if not math.isfinite(number):
            raise self._mistake("this number is too large", at)
        return number

    def _expect(self, kind: str) -> None:
        """After a whole sum, anything else than the expected token lacks an operation before it."""
        if self.next.kind != kind:
            raise self._mistake(f"put + - * or / before '{self.next.text}'", self.next.at)

    def _take(self) -> _Token:
        token = self.next
        self.next = self._read()
        return token

    def _read(self) -> _Token:
        """The token at the present position."""
        self.position = self._start(self.position)
        if self.position == len(self.text):
            return _Token("", "", self.position)
        match = TOKEN.match(self.text, self.position)
        if not match:
            raise self._mistake(f"{self.text[self.position]!r} has no place in a plan", self.position)
        self.position = match.end()
        kind = "number" if match["number"] else "name" if match["name"] else match["symbol"]
        return _Token(kind, match[0], match.start())

    def _start(self, position: int = 0) -> int:
        """Where something stands after the blanks at a position."""
        return len(self.text) - len(self.text[position:].lstrip())

    def _mistake(self, reason: str, at: int) -> ExpressionError:
        return ExpressionError(reason, self.text, at)
