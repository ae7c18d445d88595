"""Practice in a small world: what it cannot see, that no kill hurts it, and how it ends when it goes wrong."""

import json
import signal
import subprocess
import sys
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.interpreters import partial_eval
from oracles.lamps import LAMPS, Lamps, untrained
from oracles.runs import Stop, lines, stop_at, weights

from planvec.agents import build
from planvec.agents.encoders import Linear
from planvec.agents.metric import Metric, load_metric
from planvec.data.pairs import PairSet
from planvec.errors import InputError
from planvec.io.checkpoints import load_tree, save_tree
from planvec.tasks import parse_condition
from planvec.training import compilation, ppo, rounds_pure
from planvec.training import practice as practice_module
from planvec.training.config import Config
from planvec.training.loop import Diverged
from planvec.training.ppo import Experience, Labels, Learner, Rules
from planvec.training.practice import (
    BEST,
    COLLAPSE,
    LONG,
    PracticeConfig,
    Practising,
    check_sums,
    collapsed,
    make_pool,
    practise,
    with_stop,
)
from planvec.training.rounds import of_plan
from planvec.training.runs import WEIGHTS, open_run, read_config
from planvec.worlds import make

NAME = "oracles.lamps:Lamps"
WORLD = make(NAME)
CONFIG = Config(world=NAME, agent="potential", embedding=8).resolved()
PRACTICE = PracticeConfig(
    sums="1,1+1", steps=5 * 64, pool=16, envs=8, rollout=8, minibatch=32, interval=2, learning_rate=3e-3
)
DATA = {"sha256": "of the data"}


@cache
def pairs():
    return PairSet.fresh(WORLD, 32, (0,))


def go(folder, config=CONFIG, practice=PRACTICE, agent=None, **options):
    return practise(config, practice, agent or untrained(), folder, pairs(), DATA, **options)


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """An uninterrupted practice."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    go(folder)
    return folder


# What it leaves behind.


def test_a_folder_of_practice_is_as_one_of_training(whole):
    made = json.loads((whole / "config.json").read_text())
    assert made["config"]["agent"] == "potential" and made["data"] == DATA and "commit" in made["made"]
    assert made["practice"] == asdict(PRACTICE.resolved(WORLD)) | {"start": untrained().fingerprint}
    assert read_config(whole) == CONFIG
    assert [line["step"] for line in lines(whole)] == [2, 4, 5]
    for line in lines(whole):
        figures = {"exact_by_plan", "exact_by_labels", "return", "reward", "kl", "entropy", "steps_per_second"}
        assert figures <= line.keys() and all(np.isfinite(list(line.values())))
    assert any(path.name.startswith("events.out.tfevents") for path in whole.iterdir())


def test_the_policy_has_changed_the_encoder_has_not_and_the_metric_lies_beside(whole):
    before, after = untrained(), load_tree(whole / WEIGHTS, untrained())
    jax.tree.map(np.testing.assert_array_equal, before.encoder, after.encoder)
    assert before.fingerprint != after.fingerprint
    metric = load_metric(whole, after.fingerprint)
    assert isinstance(metric, Metric) and load_metric(whole, before.fingerprint) is None


def test_practice_makes_better(tmp_path):
    """What goes away of the plan in an episode grows."""
    go(tmp_path / "run", practice=replace(PRACTICE, steps=100 * 64, interval=20))
    returns = [line["return"] for line in lines(tmp_path / "run")]
    assert np.mean(returns[-2:]) > returns[0] + 0.1


# What it begins with.


def test_no_reference_of_a_sum_is_longer_than_what_is_demonstrated():
    """Which is four skills at most in the world that tables are of."""
    crafting = make("crafting")
    sizes = [parse_condition(text) for text in crafting.sums]
    assert crafting.sizes[1] == 4 == max(map(max, sizes)) and max(map(sum, sizes)) == 64
    check_sums(crafting, ",".join(crafting.sums))
    for sums in ("5", "2,4+5", "2+2,8"):
        with pytest.raises(InputError, match="nobody demonstrates more than 4 skills"):
            check_sums(crafting, sums)


def test_what_nobody_demonstrates_is_told_before_a_folder_is_made(tmp_path):
    for sums, why in {"1,3": "nobody demonstrates more than 2", "2+2+2": "6 are too many"}.items():
        with pytest.raises(InputError, match=why):
            go(tmp_path / "run", practice=replace(PRACTICE, sums=sums))
    assert not (tmp_path / "run").exists()


def test_the_pool_has_scenes_in_which_what_the_references_did_can_be_done():
    agent = untrained()
    pool, asked = make_pool(agent, WORLD, PRACTICE)
    assert asked.shape == (32, LAMPS) and asked.sum(axis=1).tolist() == [1] * 16 + [2] * 16
    assert pool.horizons.tolist() == [WORLD.horizon([1])] * 16 + [WORLD.horizon([1, 1])] * 16
    assert not (np.asarray(pool.scenes["lit"]) * np.asarray(asked)).any()
    blind, same = make_pool(agent, WORLD, replace(PRACTICE, scenes="blind"))
    assert (np.asarray(blind.scenes["lit"]) * np.asarray(same)).any()
    np.testing.assert_array_equal(asked, same)
    np.testing.assert_array_equal(pool.plans, blind.plans)
    again, _ = make_pool(agent, WORLD, PRACTICE)
    other, _ = make_pool(agent, WORLD, replace(PRACTICE, seed=1))
    np.testing.assert_array_equal(pool.plans, again.plans)
    assert not np.array_equal(pool.plans, other.plans)


def test_plans_of_the_pool_are_sums_of_their_references():
    """A potential that counts the lamps, and where they are alone counts: so many lamps, so large a plan."""

    class Counting(type(untrained())):
        def encode(self, first, last):
            lit = [jnp.asarray(seen)[:, 0, ::3, 0] > 0 for seen in (first, last)]
            return lit[1] * 1.0 - lit[0]

    one = untrained()
    pool, asked = make_pool(Counting(policy=one.policy, encoder=one.encoder), WORLD, PRACTICE)
    np.testing.assert_array_equal(pool.plans, asked)


def unable():
    """An agent that cannot stop."""
    one = untrained()
    return eqx.tree_at(lambda agent: agent.policy.head, one, one.policy.head.head)


def test_an_agent_that_could_not_stop_is_one_that_can_from_then_on(tmp_path):
    go(tmp_path / "run", replace(CONFIG, stop=0.0), agent=unable())
    config = read_config(tmp_path / "run")
    assert config.stop > 0 and config.build(jax.random.key(0)).can_stop
    assert load_tree(tmp_path / "run" / WEIGHTS, untrained()).can_stop


def test_an_agent_that_cannot_stop_yet_hardly_ever_does_at_first():
    one, agent = untrained(), unable()
    able = with_stop(agent)
    assert able.can_stop and not agent.can_stop and with_stop(one).fingerprint == one.fingerprint
    image, plans = np.zeros((2, *WORLD.space.shape), np.uint8), jnp.zeros((2, 8))
    action, stop = able.outputs(image, image, plans)
    np.testing.assert_array_equal(action, agent.outputs(image, image, plans))
    assert (jax.nn.sigmoid(stop) < 0.1).all()
    for name in ("te-full", "naive"):
        with pytest.raises(InputError, match="act on what is left of a plan"):
            with_stop(eqx.filter_eval_shape(build, name, WORLD.space, 8, key=jax.random.key(0)))


def test_labels_are_no_reward_in_a_simulator(tmp_path):
    config = Config(world="own_world:Coins", agent="potential", embedding=8)
    with pytest.raises(InputError, match="coins is a simulator"):
        go(tmp_path / "run", config=config, practice=replace(PRACTICE, reward="labels"))


@pytest.mark.parametrize(
    "changes", [{"sums": "2,x"}, {"steps": 0}, {"envs": 3}, {"seed": -1}, {"learning_rate": -1.0}, {"pool": 0}]
)
def test_practice_that_makes_no_sense(changes):
    with pytest.raises(InputError):
        replace(PRACTICE, **changes).resolved(WORLD)


# What it cannot see.


def paths(tree):
    """The names of a tree's leaves."""
    return [
        jax.tree_util.keystr(path, simple=True, separator=".")
        for path, _ in jax.tree_util.tree_flatten_with_path(tree)[0]
    ]


class Marked(Lamps):
    """The same world, but that the number of a skill goes a way that can be told in a traced program."""

    def step(self, state, action):
        after, skill = super().step(state, action)
        return after, jax.pure_callback(
            lambda x: x, jax.ShapeDtypeStruct((), jnp.int32), skill, vmap_method="sequential"
        )


def traced(reward, monkeypatch):
    """What the state after a round is made from, but for the counts of skills that the log has: the names of the
    inputs that it depends on, and the program that is left when all else has been removed."""
    monkeypatch.setattr(compilation, "options", lambda deterministic: None)  # programs inside of others have none
    world = Marked()
    practice = replace(PRACTICE, reward=reward).resolved(world)
    agent = untrained()
    programs = practice_module.make_programs(world, practice, jnp.float32, False)
    learner = Learner(agent, Linear(128, 1, fan=-2, key=jax.random.key(0)))
    pool, asked = make_pool(agent, WORLD, practice)
    state = Practising(
        learner=learner,
        optimizer=programs.optimizer.init(eqx.filter(learner, ppo.trainable(learner))),
        underway=ppo.begin(pool, world, jax.random.key(1), practice.envs),
        done=jnp.zeros((practice.envs, LAMPS), jnp.int32),
        step=jnp.int32(0),
    )
    key = jax.random.key(2)
    inputs = {
        "state": state._asdict(),
        "pool": pool,
        "metric": Metric(jnp.eye(8), jnp.float32(0)),
        "asked": asked,
        "act": key,
        "learn": key,
    }

    def round(state, pool, metric, asked, act, learn):
        after, figures = programs.round(Practising(**state), pool, metric, asked, act, learn)
        return {"after": after._asdict(), "figures": figures}

    program, outputs = jax.make_jaxpr(round, return_shape=True)(**inputs)
    learning = [
        name == "figures.exact_by_plan" or (name.startswith("after") and "done" not in name) for name in paths(outputs)
    ]
    left, used = partial_eval.dce_jaxpr(program.jaxpr, learning)
    return {name for name, one in zip(paths(inputs), used, strict=True) if one}, str(left), str(program)


def test_the_plan_as_a_reward_cannot_see_labels(monkeypatch):
    """Weights, the optimizer's memory, the episodes under way, and the figure that tells a collapse, follow from their
    like and from scenes, plans and horizons. What was asked for, what skills were done and which skill an action does
    go into none of them."""
    used, left, program = traced("plan", monkeypatch)
    labels = {"asked", "state.done"}
    assert not used & labels and "pure_callback" in program and "pure_callback" not in left
    assert {"pool.plans", "pool.horizons", "metric.factor", "state.underway.left"} <= used
    assert any(name.startswith("state.learner.agent.policy") for name in used)
    used, left, _ = traced("labels", monkeypatch)
    assert used >= labels and "pure_callback" in left


def relabelled(monkeypatch):
    """Pools of the same scenes and plans, whose episodes ask for something else."""

    def pool_of_others(*arguments):
        pool, asked = make_pool(*arguments)
        return pool, jnp.roll(asked, 1, axis=1)

    monkeypatch.setattr(practice_module, "make_pool", pool_of_others)


def test_with_the_plan_as_reward_other_labels_make_the_same_weights(whole, tmp_path, monkeypatch):
    relabelled(monkeypatch)
    go(tmp_path / "run")
    assert (tmp_path / "run" / WEIGHTS).read_bytes() == (whole / WEIGHTS).read_bytes()
    exact, others = ([line["exact_by_labels"] for line in lines(folder)] for folder in (whole, tmp_path / "run"))
    assert exact != others


def test_with_labels_as_reward_other_labels_make_other_weights(whole, tmp_path, monkeypatch):
    by_labels = replace(PRACTICE, reward="labels")
    go(tmp_path / "one", practice=by_labels)
    relabelled(monkeypatch)
    go(tmp_path / "other", practice=by_labels)
    made = [folder / WEIGHTS for folder in (tmp_path / "one", tmp_path / "other", whole)]
    assert len({path.read_bytes() for path in made}) == 3


def test_what_a_round_says_by_the_plan():
    """Three of four episodes end: one by a stop with little left, one by a stop with much left, one at its horizon."""
    stop = np.array([[True, True, False, False]])
    over = np.array([[True, True, True, False]])
    before = np.array([[0.1, 2.0, 0.1, 0.1]], np.float32)
    seen = Experience(
        **dict.fromkeys(Experience._fields) | {"stop": stop, "over": over, "before": before, "after": before}
    )
    reward, figures = of_plan(seen, Rules(rollout=1, minibatch=1))
    assert figures["exact_by_plan"] == pytest.approx(1 / 3) and figures["episodes"] == 3
    assert figures["return"] == pytest.approx(float(np.sum(reward)) / 3) and figures["actions"] == 4


def test_what_labels_are_worth():
    """Counted by hand, in two episodes, one after the other in one env, that ask for A and for B twice."""
    asked = jnp.array([[1, 0], [0, 2]])
    acts = [(0, 0, 0, 0), (0, 1, 0, 0), (0, 9, 1, 1), (1, 1, 0, 0), (1, 1, 1, 1), (0, 0, 0, 0), (0, 9, 1, 1)]
    rows = [jnp.array(column)[:, None] for column in zip(*acts, strict=True)]
    labels = Labels(rows[0], rows[1], rows[2] > 0, rows[3] > 0)
    rules = Rules(rollout=1, minibatch=1, step_cost=0.01, end_reward=0.5, end_cost=0.2)
    done, worth, exact = rounds_pure.tally(jnp.zeros((1, 2), jnp.int32), labels, asked, rules)
    # A was asked for; B was not; so its end is not exact, and nothing is left. B once, and a stop with one B left, in
    # place of an action. A, and a stop: exact.
    expected = [1 - 0.01, -1 - 0.01, -0.01, 1 - 0.01, -0.2 - 0.01, 1 - 0.01, 1 - 0.01]
    np.testing.assert_allclose(worth[:, 0], expected, atol=1e-6)
    assert float(exact) == pytest.approx(1 / 3) and not done.any()


# Stopped, killed, gone wrong.


def test_resuming_gives_the_same_weights_bit_for_bit(whole, tmp_path):
    for step in (2, 4):
        with pytest.raises(Stop):
            go(tmp_path / "run", watch=stop_at(step))
    go(tmp_path / "run")
    assert weights(tmp_path / "run") == weights(whole)
    assert [line["step"] for line in lines(tmp_path / "run")] == [2, 4, 5]


def test_ctrl_c_loses_nothing(whole, tmp_path):
    seen = []

    def interrupt(step):
        seen.append(step)
        if step in (1, 3) and seen.count(step) == 1:
            raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            go(tmp_path / "run", tick=interrupt)
    go(tmp_path / "run", tick=interrupt)
    assert seen == [1, 2, 3, 4, 5]
    assert weights(tmp_path / "run") == weights(whole)
    assert [line["step"] for line in lines(tmp_path / "run")] == [2, 4, 5]


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
import test_practice as t
def die(step, metrics):
    if step >= 4:
        os.kill(os.getpid(), signal.SIGKILL)
t.go(Path(sys.argv[1]), watch=die)
"""


def test_a_kill_loses_at_most_an_interval(whole, tmp_path):
    here = Path(__file__).parent
    paths = map(str, (tmp_path / "run", here, here.parent, here.parents[1] / "examples"))
    killed = subprocess.run([sys.executable, "-c", KILLED, *paths], capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    ticks = []
    go(tmp_path / "run", tick=ticks.append)
    assert ticks == [5] and weights(tmp_path / "run") == weights(whole)


def test_a_disk_that_is_full_loses_at_most_an_interval(whole, tmp_path, monkeypatch):
    """Be it when the best agent is put aside."""

    def save(path, tree):
        if path.name == BEST:
            raise OSError("disk full")
        save_tree(path, tree)

    with pytest.raises(Stop):
        go(tmp_path / "run", watch=stop_at(2))
    monkeypatch.setattr(practice_module, "save_tree", save)
    monkeypatch.setattr(practice_module, "_means", exactly(1.0))
    with pytest.raises(OSError, match="full"):
        go(tmp_path / "run")
    monkeypatch.undo()
    go(tmp_path / "run")
    assert weights(tmp_path / "run") == weights(whole)


def ruined(*arguments):
    pool, asked = make_pool(*arguments)
    return pool._replace(plans=pool.plans * jnp.nan), asked


def test_what_is_not_a_number_stops_it_and_the_last_good_weights_stay(tmp_path, monkeypatch):
    with pytest.raises(Stop):
        go(tmp_path / "run", watch=stop_at(2))
    before = weights(tmp_path / "run")
    monkeypatch.setattr(practice_module, "make_pool", ruined)
    with pytest.raises(Diverged, match="the agent as it was after 2 rounds"):
        go(tmp_path / "run")
    assert weights(tmp_path / "run") == before and [line["step"] for line in lines(tmp_path / "run")] == [2]


def test_what_is_not_a_number_from_the_beginning_leaves_the_agent_that_it_began_with(tmp_path, monkeypatch):
    monkeypatch.setattr(practice_module, "make_pool", ruined)
    with pytest.raises(Diverged, match="the agent as it was after 0 rounds"):
        go(tmp_path / "run")
    assert load_tree(tmp_path / "run" / WEIGHTS, untrained()).fingerprint == untrained().fingerprint


def exactly(*shares):
    """For each interval a share of episodes that end exactly, whatever was measured."""
    left, means = list(shares), practice_module._means
    return lambda rows: means(rows) | {"exact_by_plan": left.pop(0)}


def test_a_collapse_is_a_long_one():
    high, low = [0.9], [0.9 - COLLAPSE - 0.01]
    assert collapsed(high + LONG * low) and collapsed([0.1, *high] + LONG * low)
    assert not collapsed(high + (LONG - 1) * low) and not collapsed([]) and not collapsed(LONG * low)
    assert not collapsed(high + (LONG - 1) * low + [0.9 - COLLAPSE + 0.01])
    assert not collapsed(high + low + high + (LONG - 1) * low)


def test_a_collapse_keeps_the_best_agent_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(practice_module, "LONG", 2)
    monkeypatch.setattr(practice_module, "_means", exactly(0.3, 0.9, 0.5, 0.6))
    each, said = {}, []

    def watch(step, row):
        each[step] = (tmp_path / "run" / WEIGHTS).read_bytes()

    practice = replace(PRACTICE, interval=1)
    best = go(tmp_path / "run", practice=practice, watch=watch, say=said.append)
    assert list(each) == [1, 2, 3, 4] and len(set(each.values())) == 4  # of five rounds
    assert said[-1] == "practice has collapsed from 90% exact episodes to 60%; the best agent is kept"
    assert (tmp_path / "run" / WEIGHTS).read_bytes() == each[2] == (tmp_path / "run" / BEST).read_bytes()
    assert load_tree(tmp_path / "run" / WEIGHTS, untrained()).fingerprint == best.fingerprint
    assert load_metric(tmp_path / "run", best.fingerprint)
    said.clear()
    again = go(tmp_path / "run", practice=practice, tick=stop_at(0), say=said.append)  # there is nothing more to do
    assert again.fingerprint == best.fingerprint and "collapsed" in said[-1]


def test_another_practice_in_the_folder(whole, tmp_path):
    others = [
        {"practice": replace(PRACTICE, seed=1)},
        {"practice": replace(PRACTICE, sums="1")},
        {"practice": replace(PRACTICE, reward="labels")},
        {"agent": untrained(seed=1)},
        {"config": replace(CONFIG, seed=1)},
    ]
    before = weights(whole)
    for other in others:
        with pytest.raises(InputError, match="choose another folder"):
            go(whole, **other)
    (tmp_path / "letter.txt").write_text("dear diary")
    with pytest.raises(InputError, match="not empty"):
        go(tmp_path)
    assert weights(whole) == before


def test_training_and_practice_have_folders_of_their_own(whole, tmp_path):
    open_run(CONFIG, tmp_path / "run", DATA)
    with pytest.raises(InputError, match="another practice, or none"):
        go(tmp_path / "run")
    with pytest.raises(InputError, match="another practice, or none"):
        open_run(CONFIG, whole, DATA)
