"""Scores: thousands of episodes at once, judged against what happened in their references.

Success: all that came about in the references has come about, at some moment within the horizon.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from planvec.agents import Agent
from planvec.agents.agent import EmbeddingAgent
from planvec.errors import InputError
from planvec.evaluation.episodes import episodes, stack
from planvec.evaluation.judge import Judge
from planvec.worlds.protocol import World, take
from planvec.worlds.trials import Trial, strangers


class Score(NamedTuple):
    """One cell of a results table; fractions of episodes."""

    success: float
    exact: float  # … and nothing else was done up to that moment
    stops: float  # … nor after it: until the agent said that nothing is left to do, or to the horizon if it cannot
    diverged: float  # their simulator broke down; they count as failures
    episodes: int
    horizon: int

    @property
    def ci95(self) -> tuple[float, float]:
        """The 95% interval of `success` (Wilson's)."""
        z = 1.96  # 95% of a normal distribution lie within so many of its standard deviations
        n = self.episodes
        share = self.success
        middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
        return max(0.0, middle - half), min(1.0, middle + half)

    def as_dict(self) -> dict[str, Any]:
        return self._asdict() | {"ci95": list(self.ci95)}


def evaluate(
    agents: Sequence[Agent],
    world: World,
    trial: Trial,
    seed: int = 0,
    greedy: bool = False,
    control: bool = False,
    centred: bool = False,
    stop: str = "own",
) -> list[Score]:
    """Score agents of one kind together, on the same episodes.

    `control`: shown the references of another task. `centred`: the plan of doing nothing is once in a sum of plans, as
    it is in a single one, and not with every part. `stop`: who may end an episode, as in `episodes`.
    """
    if centred and not isinstance(agents[0], EmbeddingAgent):
        raise InputError("a model without plan vectors (naive) has no plan of nothing to take away")
    others = np.array(strangers(trial.tasks)) if control else slice(None)
    together = stack(agents, stop)
    plans = sum_plans(together, take(trial.shown, others), centred)
    judge = Judge(len(agents) * len(trial.wanted))
    key = jax.random.key(seed)
    for moment in episodes(together, world, plans, trial.scenes, trial.wanted, key, trial.horizon, greedy, stop):
        judge.see(moment)
    said = judge.verdicts
    verdicts = np.stack([said.success, said.exact, said.stops, said.diverged])
    shares = verdicts.reshape(len(verdicts), len(agents), -1).mean(axis=2).T
    return [Score(*share, episodes=len(trial.wanted), horizon=trial.horizon) for share in shares.tolist()]


@eqx.filter_jit
def sum_plans(agents: Agent, shown: tuple[tuple[Any, Any], ...], centred: bool) -> Any:
    """Each agent's sum of the references' plans. [agent, episode, …]"""

    def plans(agent: Agent) -> Any:
        total = agent.add([agent.encode(first, last) for first, last in shown])
        nothing = [agent.encode(first, first).mean(axis=0) for first, _ in shown[1:] if centred]
        return total - sum(nothing) if nothing else total

    return jax.vmap(plans)(agents)
