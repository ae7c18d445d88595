"""What commands show while they work and when they are done: bars and tables."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from planvec.agents import Agent
from planvec.errors import InputError
from planvec.evaluation.episodes import may_stop
from planvec.evaluation.scores import Score, evaluate
from planvec.tables import paper
from planvec.tasks import parse_condition
from planvec.worlds.protocol import World
from planvec.worlds.registry import USUAL
from planvec.worlds.trials import OneTask, Trial, random_trial

WORLD = USUAL  # where none is named
out = Console()
log = Console(stderr=True)


class Update(Protocol):
    """Tells a bar how much is done; and of how much, and what it is, where these change."""

    def __call__(self, done: int, total: int | None = None, description: str | None = None) -> None: ...


@contextmanager
def progress(what: str, total: int, unit: str) -> Iterator[Update]:
    """A bar with the remaining time, on stderr, from the first word of progress on. Yields the function to tell it.

    Where less is done than before, something new has begun, and its time counts anew.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(unit))
    bar = Progress(*columns, TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), console=log)
    task = bar.add_task(what, total=total)

    def update(done: int, total: int | None = None, description: str | None = None) -> None:
        bar.start()
        if done < bar.tasks[task].completed:
            bar.reset(task)
        bar.update(task, completed=done, total=total, description=description)

    try:
        yield update
    finally:
        if bar.live.is_started:
            bar.stop()


def say(text: str) -> None:
    """A line for people, as it is: never wrapped, no markup in it."""
    out.print(text, markup=False, highlight=False, soft_wrap=True)


def complain(text: object) -> None:
    """A line on stderr."""
    log.print(f"planvec: {text}", style="red", markup=False, highlight=False, soft_wrap=True)


def check_name(path: Path | None, suffix: str) -> None:
    """Complain about a name that is not one for such a file."""
    if path and (path.suffix.lower() != suffix or path.is_dir()):
        raise InputError(f"{path} is no name for such a file; write one that ends in {suffix}")


def score_all(
    agent: Agent,
    world: World,
    trials: dict[str, Callable[[], Trial]],
    seed: int = 0,
    greedy: bool = False,
    control: bool = False,
    centred: bool = False,
    stop: str = "own",
) -> dict[str, Score]:
    """Score an agent in one trial after another, with a bar."""
    scores = {}
    with progress("scoring", len(trials), "conditions") as update:
        for number, (name, trial) in enumerate(trials.items()):
            update(number, description=f"scoring {name}")
            try:
                [scores[name]] = evaluate([agent], world, trial(), seed, greedy, control, centred, stop)
            except OneTask as reason:
                complain(f"{name} is left out: {reason}")
                continue
            if broken := scores[name].diverged:
                complain(f"{name}: the simulator broke down in {broken:.1%} of episodes, which count as failures")
        update(len(trials))
    if not scores:
        raise InputError("nothing could be scored; ask for other conditions or tasks")
    return scores


def random_trials(
    world: World, conditions: Iterable[str], episodes: int, seed: int = 0, extras: str = "discard"
) -> dict[str, Callable[[], Trial]]:
    """A trial for each condition, made when it is its turn."""
    conditions = [condition.strip() for condition in conditions]
    for condition in conditions:
        parse_condition(condition)  # complains before anything is scored
    return {name: partial(random_trial, world, name, episodes, seed, extras) for name in conditions}


SCORES = "success: all that the references did was done; exact: and nothing else before; stops: nor after it"


def until(agent: Agent, stop: str = "own") -> str:
    """When an agent's episodes end; complains where it cannot stop in the way that is asked for."""
    if not may_stop(agent, stop):
        return "each to its horizon"
    if stop == "own":
        return "each until the agent stops"
    return f"each until its {'probe' if agent.metric is None else 'metric'} reads nothing left"


def scores_table(world: str, agent: str, scores: dict[str, Score], ends: str, how: str = "") -> Table:
    """Scores; beside the paper's, unless they were measured in a way of their own (`how`). `ends`: as `until` says."""
    known = {} if how else {name: paper.figure(world, agent, name) for name in scores}
    beside = any(known.values())
    episodes = min(score.episodes for score in scores.values())
    about = f"{agent}, {world}, {how}" if how else f"{agent}, {world}"
    table = Table(title=f"{about}: % of {episodes} episodes, {ends}", caption=SCORES)
    for column in ("condition", "success", "95% interval", "exact", "stops"):
        table.add_column(column, justify="right")
    if beside:
        table.add_column("paper's success", justify="right")
    for name, score in scores.items():
        low, high = score.ci95
        interval = f"{100 * low:.0f}–{100 * high:.0f}"
        cells = [name, f"{100 * score.success:.0f}", interval, f"{100 * score.exact:.0f}", f"{100 * score.stops:.0f}"]
        if beside:
            cells.append(str(known[name] or ""))
        table.add_row(*cells)
    return table
