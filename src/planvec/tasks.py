"""Skills, tasks and conditions: the vocabulary that all worlds share."""

import re
from collections.abc import Iterable, Sequence

import numpy as np

from planvec.errors import InputError

Task = tuple[str, ...]
"""The skills to do, by name. Used to make data and to judge, never shown to a model."""

NO_SKILL = -1  # pads encoded tasks
FRESH = 1_000_000  # and up: second words of the seeds of what agents are measured on; those of data are shard numbers


def check_seed(seed: int) -> None:
    """Complain about a number that is no seed."""
    if not 0 <= seed < 2**32:
        raise InputError(f"a seed is a whole number from 0 to {2**32 - 1}; got {seed}")


def parse_task(text: str | Iterable[str], skills: Sequence[str]) -> Task:
    """Read "ChopTree,MakeBread" (or a list of names) as a task; commas inside parentheses do not separate."""
    names = _split(text) if isinstance(text, str) else list(text) if isinstance(text, Iterable) else [text]
    if not all(isinstance(name, str) for name in names):
        raise InputError(f"a task is a list of skills' names, not {text!r}; there are {', '.join(skills)}")
    if not names:
        raise InputError(f"a task needs at least one skill; there are {', '.join(skills)}")
    by_lowercase = {skill.lower(): skill for skill in skills}
    unknown = [name for name in names if name.lower() not in by_lowercase]
    if unknown:
        raise InputError(f"no skill is called '{unknown[0]}'; there are {', '.join(skills)}")
    return tuple(by_lowercase[name.lower()] for name in names)


def _split(text: str) -> list[str]:
    """Split at the commas outside parentheses."""
    parts = [""]
    depth = 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def parse_range(text: str) -> tuple[int, int]:
    """Read "2-4" as (2, 4) and "3" as (3, 3): how many skills a task has."""
    low, _, high = text.partition("-")
    try:
        bounds = int(low), int(high or low)
    except ValueError:
        bounds = (0, 0)
    if not 1 <= bounds[0] <= bounds[1]:
        raise InputError(f"'{text}' is not a range of skills; write for example 2-4, or 3")
    return bounds


def show_task(task: Task) -> str:
    """A task as people write it, and as `parse_task` reads it."""
    return ",".join(task)


def encode_tasks(tasks: Sequence[Task], skills: Sequence[str]) -> np.ndarray:
    """Tasks as numbers into the list of skills, padded to the longest. int8 [task, most]"""
    codes = np.full((len(tasks), max(map(len, tasks))), NO_SKILL, np.int8)
    for row, task in zip(codes, tasks, strict=True):
        row[: len(task)] = [skills.index(skill) for skill in task]
    return codes


def decode_tasks(codes: np.ndarray, skills: Sequence[str]) -> list[Task]:
    """The inverse of `encode_tasks`."""
    return [tuple(skills[int(code)] for code in row if code != NO_SKILL) for row in np.asarray(codes)]


def parse_condition(text: str) -> tuple[int, ...]:
    """Read "2+2" as (2, 2)."""
    if not re.fullmatch(r"[1-9]\d*(\+[1-9]\d*)*", text.strip()):
        raise InputError(f"'{text}' is not a condition; write a number of skills like 4, or a sum like 2+2")
    return tuple(map(int, text.strip().split("+")))
