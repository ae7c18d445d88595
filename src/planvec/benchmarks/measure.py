"""How a rate is measured, and the row it becomes."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax


class Row(NamedTuple):
    """One line of a benchmark's table."""

    what: str
    unit: str
    batch: int
    rate: float


def rate(program: Callable[..., Any], *arguments: Any, count: int, repeats: int = 3) -> float:
    """How much of `count` a jitted program does in a second: the best of a few runs after compilation."""
    jax.block_until_ready(program(*arguments))
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        jax.block_until_ready(program(*arguments))
        best = min(best, time.perf_counter() - began)
    return count / best


def numbers_of_workers(most: int) -> list[int]:
    """1, 2, 4 and so on up to the most."""
    return sorted({1, 2, most} | {2**power for power in range(most.bit_length())})
