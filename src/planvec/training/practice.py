"""Practice: an agent gets better at sums of plans by doing them, the plan being its own reward.

A plain loop around the rounds of `ppo`, that logs, saves and resumes as training does.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from planvec.agents.agent import Agent, Difference
from planvec.agents.encoders import Linear
from planvec.agents.metric import Metric, save_metric
from planvec.agents.policies import Stopping
from planvec.data import folders
from planvec.data.pairs import PairSet
from planvec.data.play import PlaySet, as_many
from planvec.data.samples import Samples
from planvec.errors import InputError
from planvec.io.checkpoints import load_tree, save_tree
from planvec.tasks import FRESH, check_seed, parse_condition
from planvec.training import compilation, ppo
from planvec.training.config import Config
from planvec.training.loop import Diverged
from planvec.training.metric import PAIRS, fit_metric
from planvec.training.ppo import Experience, Labels, Learner, Pool, Rules, Underway
from planvec.training.runs import WEIGHTS as TRAINED
from planvec.training.runs import Run, open_run, read_metrics, resume
from planvec.training.update import precision, random_key
from planvec.worlds import make
from planvec.worlds.protocol import PureWorld, World, take
from planvec.worlds.trials import Trial, make_trial

SUMS = ",".join(["2", "3", "4", "2+2", "4+4", *("+".join([part] * n) for n in (4, 8, 16) for part in "24")])
APART = 1000  # and up: the numbers of sets of episodes that are practised on
ENDED = 0.5  # less of a plan than this much of a skill is nothing left
BEST = "best.safetensors"  # the weights with which most episodes ended exactly, by the plan
WEIGHTS, BEGIN, ACT, LEARN, METRIC = range(5)  # what a random key is for
COLLAPSE = 0.2  # so much smaller a share of episodes that end exactly than at best …
LONG = 5  # … in so many intervals one after the other, is a collapse


@dataclass(frozen=True)
class PracticeConfig:
    """How an agent practises."""

    sums: str = SUMS
    """What is practised: sums of plans of so many skills each, equally often."""
    steps: float = 50e6
    """Actions in all."""
    reward: Literal["plan", "labels"] = "plan"
    """What is worth something: that the plan goes away; or, to compare, that skills asked for are done."""
    scenes: Literal["offering", "blind"] = "offering"
    """Scenes in which what the references did can be done; or those made for other references."""
    seed: int = 0
    """Which episodes, and what is tried in them, follows from it."""
    pool: int = 8192
    """Episodes of each sum, made beforehand by the expert, and drawn from again and again."""
    envs: int = 4096
    """Episodes at a time."""
    rollout: int = 64
    """Actions of each between two looks at what they taught."""
    minibatch: int = 8192
    """Actions in an update of the weights."""
    learning_rate: float = 3e-4
    """The largest step size; it falls to zero along a line."""
    interval: int = 10
    """Rounds between two log lines; a checkpoint is written with each."""

    def __post_init__(self) -> None:
        for sum_of in self.sums.split(","):
            parse_condition(sum_of)
        for name in ("steps", "pool", "envs", "rollout", "minibatch", "learning_rate", "interval"):
            if not 0 < getattr(self, name) < math.inf:
                raise InputError(f"{name} must be a number more than 0; got {getattr(self, name)}")
        if self.envs * self.rollout % self.minibatch:
            raise InputError(f"a round of {self.envs} × {self.rollout} actions is no multiple of {self.minibatch}")
        check_seed(self.seed)

    @property
    def round(self) -> int:
        """Actions in a round."""
        return self.envs * self.rollout

    @property
    def rounds(self) -> int:
        return math.ceil(self.steps / self.round)

    @property
    def rules(self) -> Rules:
        return Rules(rollout=self.rollout, minibatch=self.minibatch)


class Practising(NamedTuple):
    """All that changes in practice."""

    learner: Learner
    optimizer: optax.OptState
    underway: Underway
    done: Array  # int32 [env, skill], how often each skill was done in the episodes under way: for the log
    step: Array  # int32 [], rounds

    @property
    def agent(self) -> Agent:
        return self.learner.agent


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
    agent, world = ready(agent, make(config.world), practice)
    open_run(config, folder, data, practice=asdict(practice) | {"start": agent.fingerprint})
    key = partial(random_key, jnp.uint32(practice.seed))
    metric = fit_metric(agent, pairs, key(METRIC, 0))
    what = "what comes and goes is" if isinstance(pairs, PlaySet) else "two demonstrations of one task differ by"
    say(f"{what} {float(metric.noise):.2f} of a skill")
    pool, asked = make_pool(agent, world, practice)
    programs = make_programs(world, practice, precision(config), deterministic)
    learner = Learner(agent, Linear(_features(agent), 1, fan=-2, key=key(WEIGHTS, 0)))
    start = Practising(
        learner=learner,
        optimizer=programs.optimizer.init(eqx.filter(learner, ppo.trainable(learner))),
        underway=programs.begin(pool, key(BEGIN, 0)),
        done=jnp.zeros((practice.envs, asked.shape[1]), jnp.int32),
        step=jnp.int32(0),
    )
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
            row |= {"steps_per_second": (until - before) * practice.round / (time.perf_counter() - began)}
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


def metric_pairs(world: World, folder: Path | None, seed: int, plays: bool = False) -> tuple[Samples, dict[str, Any]]:
    """The pairs, or the play, that plans are measured by, and what a run remembers of them: those of a folder, or fresh
    ones."""
    if folder:
        load = folders.load_play if plays else folders.load
        return load(folder, world), folders.describe(folder, world)
    kind, pairs = PlaySet if plays else PairSet, min(PAIRS, world.pairs)
    fresh = kind.fresh(world, as_many(world, pairs) if plays else pairs, (seed, FRESH + 51))
    return fresh, {"world": world.name, kind.unit: len(fresh), "fresh": seed, "fingerprint": world.fingerprint}


def ready(agent: Agent, world: World, practice: PracticeConfig) -> tuple[Difference, PureWorld]:
    """What practises, and where. Complains where that cannot be, or not so."""
    if not isinstance(world, PureWorld):
        raise InputError(f"practice needs a world on the accelerator so far; {world.name} is a simulator")
    check_sums(world, practice.sums)
    return with_stop(agent), world


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


def make_pool(agent: Difference, world: World, practice: PracticeConfig) -> tuple[Pool, Array]:
    """Scenes and sums of plans; and, for the log, what the references did. int32 [episode, …]"""
    trials = []
    for number, text in enumerate(practice.sums.split(",")):
        sizes = parse_condition(text)
        apart = APART * (number + 1)
        parts = world.sample_parts((practice.seed, FRESH + apart + 2), practice.pool, sizes)
        trial = make_trial(world, parts, practice.seed, apart=apart)
        if practice.scenes == "blind":
            others = [*trial.tasks[1:], trial.tasks[0]]
            trial = trial._replace(scenes=world.scenes(others, (practice.seed, FRESH + apart + 4)))
        trials.append((trial, _plans(agent, trial)))
    scenes = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *[trial.scenes for trial, _ in trials])
    horizons = [jnp.full(len(plans), trial.horizon, jnp.int32) for trial, plans in trials]
    pool = Pool(scenes, jnp.concatenate([plans for _, plans in trials]), jnp.concatenate(horizons))
    return pool, jnp.concatenate([trial.wanted for trial, _ in trials])


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
    head = Stopping(agent.policy.head, _features(agent), key=jax.random.key(0))
    head = eqx.tree_at(lambda head: head.end.bias, head, jnp.full(1, -4.0))
    return eqx.tree_at(lambda agent: agent.policy.head, agent, head)


def _features(agent: Difference) -> int:
    """How wide the policy's last hidden layer is."""
    return agent.policy.features


class _Programs(NamedTuple):
    optimizer: optax.GradientTransformation
    begin: Callable[..., Underway]
    round: Callable[..., tuple[Practising, dict[str, Array]]]


@cache
def make_programs(world: PureWorld, practice: PracticeConfig, dtype: Any, deterministic: bool) -> _Programs:
    """One round, compiled."""
    rules = practice.rules
    jit = partial(jax.jit, compiler_options=compilation.options(deterministic))
    updates = practice.rounds * practice.round // practice.minibatch
    optimizer = optax.chain(
        optax.clip_by_global_norm(0.5),
        optax.adam(optax.linear_schedule(practice.learning_rate, 0.0, updates), eps=1e-5),
    )

    @jit
    def act(learner: Learner, pool: Pool, metric: Metric, underway: Underway, key: Array) -> Any:
        return ppo.act(learner.cast(dtype), pool, metric, world, rules, underway, key)

    @jit
    def learn(learner: Learner, memory: Any, seen: Experience, reward: Array, last: Array, key: Array) -> Any:
        lessons = ppo.lessons(seen, reward, last, rules)
        return ppo.learn(learner, memory, lessons, world, rules, optimizer, dtype, key)

    @jit
    def of_plan(seen: Experience) -> tuple[Array, dict[str, Array]]:
        reward = ppo.plan_reward(seen, rules)
        ended = jnp.maximum(jnp.sum(seen.over), 1)
        exactly = jnp.sum(seen.stop & (seen.before < ENDED)) / ended
        figures = {"reward": jnp.mean(reward), "return": jnp.sum(reward) / ended, "exact_by_plan": exactly}
        return reward, figures | {"episodes": jnp.sum(seen.over)}

    tally = jit(partial(_tally, rules=rules))

    def round(
        state: Practising, pool: Pool, metric: Metric, asked: Array, act_key: Array, learn_key: Array
    ) -> tuple[Practising, dict[str, Array]]:
        underway, seen, last, labels = act(state.learner, pool, metric, state.underway, act_key)
        reward, figures = of_plan(seen)
        done, of_labels, exact = tally(state.done, labels, asked)
        if practice.reward == "labels":
            reward = of_labels
        learner, memory, learned = learn(state.learner, state.optimizer, seen, reward, last, learn_key)
        figures = figures | learned | {"exact_by_labels": exact}
        return Practising(learner, memory, underway, done, state.step + 1), figures

    return _Programs(optimizer, jit(lambda pool, key: ppo.begin(pool, world, key, practice.envs)), round)


def _tally(done: Array, labels: Labels, asked: Array, rules: Rules) -> tuple[Array, Array, Array]:
    """Skills counted: what has been done in the episodes under way; what that is worth, if labels are the reward; and
    the share of episodes that ended by a stop with exactly what was asked for done."""
    skills = jnp.arange(done.shape[1])

    def step(done: Array, row: Labels) -> tuple[Array, tuple[Array, Array]]:
        wanted = asked[row.which]
        hit = (row.skill[:, None] == skills) & ~row.stop[:, None]
        good = jnp.any(hit & (done < wanted), axis=1)
        bad = jnp.any(hit & (done >= wanted), axis=1)
        done = done + hit
        rest = jnp.sum(jnp.maximum(wanted - done, 0), axis=1)
        exact = row.stop & jnp.all(done == wanted, axis=1)
        ending = jnp.where(exact, 2 * rules.end_reward, -rules.end_cost * jnp.minimum(rest, rules.end_most))
        worth = 1.0 * good - 1.0 * bad - rules.step_cost + jnp.where(row.stop, ending, 0)
        return jnp.where(row.over[:, None], 0, done), (worth, exact)

    done, (worth, exact) = jax.lax.scan(step, done, labels)
    return done, worth, jnp.sum(exact) / jnp.maximum(jnp.sum(labels.over), 1)


def _means(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
