"""How a rate is measured, and the row it becomes."""

import time
from collections.abc import Callable, Sequence
from functools import partial
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
    [best] = rates([partial(program, *arguments)], count, repeats)
    return best


def rates(programs: Sequence[Callable[[], Any]], count: int, repeats: int) -> list[float]:
    """The same of several, in turn: a machine that is slower for a while is so for all of them."""
    for program in programs:
        jax.block_until_ready(program())
    best = [float("inf")] * len(programs)
    for _ in range(repeats):
        for i, program in enumerate(programs):
            began = time.perf_counter()
            jax.block_until_ready(program())
            best[i] = min(best[i], time.perf_counter() - began)
    return [count / seconds for seconds in best]


def numbers_of_workers(most: int) -> list[int]:
    """1, 2, 4 and so on up to the most."""
    return sorted({1, 2, most} | {2**power for power in range(most.bit_length())})
