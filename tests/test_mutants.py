"""The table of mutants is about the code that is there. `make mutants` runs them."""

import re
from pathlib import Path

import pytest
from mutants.table import MUTANTS

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.what)
def test_what_a_mutant_changes_is_there_exactly_once(mutant):
    text = (ROOT / mutant.path).read_text()
    assert text.count(mutant.old) == 1
    assert "\n" not in mutant.old + mutant.new and mutant.old != mutant.new
    if mutant.path.suffix == ".py":
        compile(mutant.applied(text), mutant.path.name, "exec")


def test_every_mutant_is_another_one():
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS}) == len(MUTANTS) >= 60
    assert len({mutant.what for mutant in MUTANTS}) == len(MUTANTS)


def test_the_tests_that_mutants_name_are_there():
    for mutant in MUTANTS:
        for test in mutant.tests:
            name, _, function = test.partition("::")
            if function:
                assert re.search(rf"^def {re.escape(function.partition('[')[0])}\(", text_of(name), re.MULTILINE), test


def text_of(name):
    return (ROOT / "tests" / name).read_text()
