"""How fast an agent practises: whole rounds, acting alone and learning alone; and how long one action of one takes."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from planvec.agents.metric import Metric
from planvec.benchmarks import work
from planvec.benchmarks.measure import Row, rate
from planvec.training import compilation, ppo, practice, update
from planvec.training.config import Config
from planvec.training.loading import load
from planvec.training.ppo import Learner, Pool, Rules, Underway
from planvec.training.practice_config import PracticeConfig, given
from planvec.training.rounds import Practising
from planvec.worlds import make
from planvec.worlds.protocol import PureWorld, World
from planvec.worlds.registry import USUAL

AGENT = "potential"
WORLD = USUAL
KEY = 0  # of all that is random: how fast it is does not depend on it


class Size(NamedTuple):
    """How much is practised at once, unless told."""

    envs: int
    rollout: int  # actions of each episode in a round
    pool: int  # episodes of each sum, to begin with
    rounds: int  # timed at once

    def config(self) -> PracticeConfig:
        """A minibatch is two actions of each episode: 8,192 of them at the usual size."""
        return PracticeConfig(envs=self.envs, rollout=self.rollout, minibatch=2 * self.envs, pool=self.pool)


ON_CPU = Size(envs=32, rollout=8, pool=4, rounds=1)
ACCELERATED = Size(envs=4096, rollout=64, pool=1024, rounds=4)


class Bench(NamedTuple):
    """What rounds take."""

    world: PureWorld
    config: PracticeConfig
    dtype: Any  # to compute in
    programs: Any  # rounds as practice does them
    state: Practising
    pool: Pool
    asked: Array
    metric: Metric


def run(
    batches: tuple[int, ...] | None = None,
    actions: int = 50,
    warn: Callable[[str], None] = lambda message: None,
) -> Iterator[Row]:
    """Measure everything, a row at a time. `warn` is never told anything. `batches`: how many episodes at a time."""
    world = make(WORLD)
    assert isinstance(world, PureWorld)
    size = ON_CPU if jax.default_backend() == "cpu" else ACCELERATED
    peak = work.matrix_peak()
    yield work.peak_row(peak)
    for envs in batches or (size.envs,):
        yield from _practice(prepare(world, size._replace(envs=envs)), size.rounds, peak)
    yield _one_action(world, actions)


def prepare(world: PureWorld, size: Size) -> Bench:
    """An agent before its first round. Neither its weights nor its metric change how long that takes."""
    config = size.config().resolved(world)
    trained = Config(agent=AGENT, world=WORLD).resolved()
    dtype = update.precision(trained)
    agent = practice.with_stop(update.start(trained).agent)
    pool, asked = practice.make_pool(agent, world, config)
    programs = practice.make_programs(world, config, dtype, False)
    key = jax.random.key(KEY)
    state = practice.before_any_round(agent, programs, pool, asked, key, key)
    metric = Metric(jnp.eye(pool.plans.shape[1]), jnp.float32(0))
    return Bench(world, config, dtype, programs, state, pool, asked, metric)


def _practice(bench: Bench, rounds: int, peak: float) -> Iterator[Row]:
    """Whole rounds, acting and learning, each as steps a second and as arithmetic."""
    picture = work.outline(bench.world, bench.pool.scenes)
    learner = bench.state.learner
    acting, learning = work.of_acting(learner, picture), work.of_learning(learner, picture)
    act = acting_alone(bench)
    _, seen, last = act()
    learn = learning_alone(bench, seen, last)
    programs = {
        "whole rounds": (whole_rounds(bench, rounds), rounds, acting + learning),
        "acting alone": (act, 1, acting),
        "learning alone": (learn, 1, learning),
    }
    envs = given(bench.config.envs)
    for name, (program, count, flops) in programs.items():
        what = f"planvec practice, {jnp.dtype(bench.dtype).name}, {name}"
        row = Row(what, "steps/s", envs, rate(program, count=count * bench.config.round))
        yield row
        yield Row(f"{what}: work in a step", "MFLOP", envs, flops / 1e6)
        yield from work.against_peak(row, flops, peak)


def whole_rounds(bench: Bench, rounds: int) -> Callable[[], Practising]:
    """So many rounds one after the other, as between two log lines of `planvec practice`."""
    key = jax.random.key(KEY)

    def go() -> Practising:
        state = bench.state
        for _ in range(rounds):
            state, _ = bench.programs.round(state, bench.pool, bench.metric, bench.asked, key, key)
        return state

    return go


def acting_alone(bench: Bench) -> Callable[[], tuple[Underway, ppo.Experience, Array]]:
    """What comes before any learning in a round."""

    @_jit
    def act(learner: Learner, pool: Pool, metric: Metric, underway: Underway, key: Array) -> Any:
        learner = learner.cast(bench.dtype)
        underway, seen, last, _ = ppo.act(learner, pool, metric, bench.world, bench.config.rules, underway, key)
        return underway, seen, last

    return partial(act, bench.state.learner, bench.pool, bench.metric, bench.state.underway, jax.random.key(KEY))


def learning_alone(bench: Bench, seen: ppo.Experience, last: Array) -> Callable[[], Any]:
    """What follows of what has been seen and done in a round."""
    rules: Rules = bench.config.rules
    optimizer = bench.programs.optimizer

    @_jit
    def learn(learner: Learner, memory: Any, seen: ppo.Experience, last: Array, key: Array) -> Any:
        lessons = ppo.lessons(seen, ppo.plan_reward(seen, rules), last, rules)
        return ppo.learn(learner, memory, lessons, bench.world, rules, optimizer, bench.dtype, key)

    return partial(learn, bench.state.learner, bench.state.optimizer, seen, last, jax.random.key(KEY))


def _jit(function: Callable) -> Callable:
    """Compiled as practice compiles its rounds."""
    return jax.jit(function, compiler_options=compilation.options(False))


def _one_action(world: World, actions: int) -> Row:
    """One action of the shipped agent in one episode, as whoever calls `agent.act` waits for it."""
    agent = load(WORLD)
    [task] = world.sample_tasks((KEY,), 1, *world.sizes)
    shown = world.demonstrate(task, seed=KEY)
    plan = agent.plan(shown)
    key = jax.random.key(KEY)

    def act() -> None:
        for _ in range(actions):
            jax.block_until_ready(agent.act(shown.first, shown.first, plan, key))

    return Row("agent.act of the shipped agent, one episode", "ms", 1, 1e3 / rate(act, count=actions))
