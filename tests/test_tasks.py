import pytest

from planvec.errors import InputError
from planvec.tasks import decode_tasks, encode_tasks, parse_range, parse_task, show_task

SKILLS = ("ChopTree", "Stack(red,blue)", "EatBread")


def test_reading_tasks():
    assert parse_task("ChopTree, Stack(red,blue),eatbread", SKILLS) == (
        "ChopTree",
        "Stack(red,blue)",
        "EatBread",
    )
    assert parse_task(["EatBread"], SKILLS) == ("EatBread",)
    assert parse_task(show_task(SKILLS), SKILLS) == SKILLS


@pytest.mark.parametrize("text", ["", ",", "Fly", "ChopTree,Fly", [], 5, [3]])
def test_bad_tasks(text):
    with pytest.raises(InputError, match="there are ChopTree"):
        parse_task(text, SKILLS)


def test_reading_ranges():
    assert parse_range("2-4") == (2, 4) and parse_range("3") == (3, 3)
    for text in ("4-2", "0-3", "a", "-", ""):
        with pytest.raises(InputError, match="write for example"):
            parse_range(text)


def test_encoding():
    tasks = [("EatBread",), ("ChopTree", "EatBread", "EatBread")]
    codes = encode_tasks(tasks, SKILLS)
    assert codes.tolist() == [[2, -1, -1], [0, 2, 2]]
    assert decode_tasks(codes, SKILLS) == tasks
