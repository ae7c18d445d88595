"""What an expression of demonstrations asks for, and what its scene must offer."""

from types import SimpleNamespace

import pytest

from planvec.expressions import parse
from planvec.playground import terms

DEMOS = {
    name: SimpleNamespace(task=tuple(task.split()))
    for name, task in {"A": "Chop", "B": "Bread", "C": "Chop Rock"}.items()
}


@pytest.mark.parametrize(
    ("text", "wanted", "offered"),
    [
        ("A + B", "Chop Bread", "Chop Bread"),
        ("A + B - A", "Bread", "Chop Bread"),  # so that leaving it out is the agent's doing
        ("C - A", "Rock", "Chop Rock"),
        ("2*A - A", "Chop", "Chop Chop"),
        ("A - A", "", "Chop"),
        ("-A", "", "Chop"),
        ("B/2", "", "Bread"),
    ],
)
def test_a_scene_offers_what_is_taken_away_too(text, wanted, offered):
    assert terms.wanted(parse(text), DEMOS) == tuple(wanted.split())
    assert terms.offered(parse(text), DEMOS) == tuple(offered.split())


def test_counts_are_exact():
    assert terms.counts(parse("A/2 - C"), DEMOS) == {"Chop": -0.5, "Rock": -1.0}
