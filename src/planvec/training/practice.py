"""Practice: an agent gets better at sums of plans by doing them, the plan being its own reward.

A plain loop around its rounds, that logs, saves and resumes as training does.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from planvec.agents.agent import Agent, Difference
from planvec.agents.encoders import Linear
from planvec.agents.metric import save_metric
from planvec.agents.policies import Stopping
from planvec.data import folders
from planvec.data.pairs import PairSet
from planvec.data.play import PlaySet, as_many
from planvec.data.samples import Samples
from planvec.errors import InputError
from planvec.io.checkpoints import load_tree, save_tree
from planvec.tasks import FRESH, parse_condition
from planvec.training import ppo, rounds_hosted, rounds_pure
from planvec.training.config import Config
from planvec.training.loop import Diverged
from planvec.training.metric import PAIRS, fit_metric
from planvec.training.ppo import Learner, Pool
from planvec.training.practice_config import PracticeConfig, given
from planvec.training.rounds import Practising, Programs
from planvec.training.runs import WEIGHTS as TRAINED
from planvec.training.runs import Run, open_run, read_metrics, resume
from planvec.training.update import precision, random_key
from planvec.worlds import make
from planvec.worlds.protocol import PureWorld, World, take
from planvec.worlds.trials import Trial, make_trial

APART = 1000  # and up: the numbers of sets of episodes that are practised on
BEST = "best.safetensors"  # the weights with which most episodes ended exactly, by the plan
WEIGHTS, BEGIN, ACT, LEARN, METRIC = range(5)  # what a random key is for
COLLAPSE = 0.2  # so much smaller a share of episodes that end exactly than at best …
LONG = 5  # … in so many intervals one after the other, is a collapse


def practise(
    config: Config,
    practice: PracticeConfig,
    agent: Agent,
    folder: Path,
    pairs: Samples,
    data: dict[str, Any],
    say: Callable[[str], None] = lambda line: None,
    watch: Callable[[int, dict[str, float]], None] = lambda step, metrics: None,
    tick: Callable[[int], None] = lambda step: None,
    deterministic: bool = False,
) -> Agent:
    """Let an agent practise, into a run's folder; goes on from its last checkpoint.

    `config`: how it was trained. `pairs`, or play, make the metric in which plans are measured. `watch` is told after
    each interval, `tick` after each round.
    """
    config = practising(config.resolved())
    world = make(config.world)
    agent, practice = ready(agent, world, practice)
    open_run(config, folder, data, practice=asdict(practice) | {"start": agent.fingerprint})
    key = partial(random_key, jnp.uint32(practice.seed))
    metric = fit_metric(agent, pairs, key(METRIC, 0))
    what = "what comes and goes is" if isinstance(pairs, PlaySet) else "two demonstrations of one task differ by"
    say(f"{what} {float(metric.noise):.2f} of a skill")
    pool, asked = make_pool(agent, world, practice)
    programs = make_programs(world, practice, precision(config), deterministic)
    start = before_any_round(agent, programs, pool, asked, key(WEIGHTS, 0), key(BEGIN, 0))
    state = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), resume([folder], [start]))
    run = Run(folder, int(state.step))
    if not state.step:
        save_tree(folder / TRAINED, agent)  # the last good weights, should it go wrong from the first round on
    shares = [row["exact_by_plan"] for row in read_metrics(folder)]
    try:
        while state.step < practice.rounds and not collapsed(shares):
            began = time.perf_counter()
            before = int(state.step)
            until = min(before - before % practice.interval + practice.interval, practice.rounds)
            rows = []
            for step in range(before, until):
                state, figures = programs.round(state, pool, metric, asked, key(ACT, step), key(LEARN, step))
                rows.append(figures)
                tick(step + 1)
            row = _means(jax.device_get(rows))
            row["steps_per_second"] = (until - before) * row["actions"] / (time.perf_counter() - began)
            if not all(map(math.isfinite, row.values())):
                raise Diverged(f"practice has diverged; {folder} holds the agent as it was after {before} rounds")
            shares.append(row["exact_by_plan"])
            if shares[-1] == max(shares):
                save_tree(folder / BEST, state.agent)
            run.save(state, row)
            watch(until, row)
    except KeyboardInterrupt:
        run.keep(state)
        raise
    finally:
        run.close()
    best = state.agent
    if collapsed(shares):
        say(f"practice has collapsed from {max(shares):.0%} exact episodes to {shares[-1]:.0%}; the best agent is kept")
        best = load_tree(folder / BEST, best)
        save_tree(folder / TRAINED, best)
    save_metric(folder, metric, best.fingerprint)
    return best


def before_any_round(
    agent: Difference, programs: Programs, pool: Pool, asked: Any, weights_key: Array, begin_key: Array
) -> Practising:
    """Where practice begins."""
    learner = Learner(agent, Linear(agent.policy.features, 1, fan=-2, key=weights_key))
    memory = programs.optimizer.init(eqx.filter(learner, ppo.trainable(learner)))
    underway, done = programs.begin(pool, asked, begin_key)
    return Practising(learner, memory, underway, done, step=jnp.int32(0))


def metric_pairs(world: World, folder: Path | None, seed: int, plays: bool = False) -> tuple[Samples, dict[str, Any]]:
    """The pairs, or the play, that plans are measured by, and what a run remembers of them: those of a folder, or fresh
    ones."""
    if folder:
        load = folders.load_play if plays else folders.load
        return load(folder, world), folders.describe(folder, world)
    kind, pairs = PlaySet if plays else PairSet, min(PAIRS, world.pairs)
    fresh = kind.fresh(world, as_many(world, pairs) if plays else pairs, (seed, FRESH + 51))
    return fresh, {"world": world.name, kind.unit: len(fresh), "fresh": seed, "fingerprint": world.fingerprint}


def ready(agent: Agent, world: World, practice: PracticeConfig) -> tuple[Difference, PracticeConfig]:
    """What practises, and how, with all filled in that is left to the world. Complains where that cannot be."""
    practice = practice.resolved(world)
    check_sums(world, given(practice.sums))
    return with_stop(agent), practice


def check_sums(world: World, sums: str) -> None:
    """Complain about sums that hold a longer reference than anybody demonstrates, or that are too large."""
    most = world.sizes[1]
    for text in sums.split(","):
        sizes = parse_condition(text)
        if max(sizes) > most:
            raise InputError(f"in {world.name} nobody demonstrates more than {most} skills; {text} has {max(sizes)}")
        world.check_size(sum(sizes))


def collapsed(shares: Sequence[float]) -> bool:
    """Whether ever fewer episodes end exactly, by the plan: for LONG intervals COLLAPSE less than at best."""
    return len(shares) > LONG and max(shares[-LONG:]) < max(shares) - COLLAPSE


def make_pool(agent: Difference, world: World, practice: PracticeConfig) -> tuple[Pool, Any]:
    """Scenes and sums of plans; and, for the log, what the references did: int32 [episode, …]. On the accelerator, if
    that is where the world is; simulators are asked from here, and may want more digits."""
    trials = []
    for number, text in enumerate(given(practice.sums).split(",")):
        sizes = parse_condition(text)
        apart = APART * (number + 1)
        parts = world.sample_parts((practice.seed, FRESH + apart + 2), given(practice.pool), sizes)
        trial = make_trial(world, parts, practice.seed, apart=apart)
        if practice.scenes == "blind":
            others = [*trial.tasks[1:], trial.tasks[0]]
            trial = trial._replace(scenes=world.scenes(others, (practice.seed, FRESH + apart + 4)))
        horizons = np.full(len(trial.wanted), trial.horizon, np.int32)
        trials.append((Pool(trial.scenes, _plans(agent, trial), horizons), trial.wanted))
    join = jnp.concatenate if isinstance(world, PureWorld) else np.concatenate
    return jax.tree.map(lambda *leaves: join(leaves), *trials)


def _plans(agent: Difference, trial: Trial, most: int = 2048) -> Array:
    """The sum of the references' plans. [episode, embedding]"""
    encode = eqx.filter_jit(lambda agent, first, last: agent.encode(first, last))
    rows = []
    for begin in range(0, len(trial.wanted), most):
        part = slice(begin, begin + most)
        rows.append(agent.add([encode(agent, *take(ends, part)) for ends in trial.shown]))
    return jnp.concatenate(rows)


def practising(config: Config) -> Config:
    """How an agent that practises is built: as it was, and with a stop if it had none."""
    return replace(config, stop=config.stop or 0.3)


def with_stop(agent: Agent) -> Difference:
    """An agent that can practise: one that acts on what is left and can say that nothing is. Of an agent that cannot
    say so yet, one that hardly ever does."""
    if not isinstance(agent, Difference):
        raise InputError("practice is for agents that act on what is left of a plan: cpv models, and potential")
    agent = agent.bare
    if agent.can_stop:
        return agent
    head = Stopping(agent.policy.head, agent.policy.features, key=jax.random.key(0))
    head = eqx.tree_at(lambda head: head.end.bias, head, jnp.full(1, -4.0))
    return eqx.tree_at(lambda agent: agent.policy.head, agent, head)


def make_programs(world: World, practice: PracticeConfig, dtype: Any, deterministic: bool) -> Programs:
    """Rounds as the world's kind does them."""
    if isinstance(world, PureWorld):
        return rounds_pure.programs(world, practice, dtype, deterministic)
    return rounds_hosted.programs(world, practice, dtype, deterministic)


def _means(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
