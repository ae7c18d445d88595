"""Practice with simulators: it makes better, nothing hurts it, and what is usual follows from the world."""

import json
import math
import signal
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import jax
import numpy as np
import pytest
from oracles.coins import COINS, ENVS, PRACTICE, WORLD, novice
from oracles.runs import lines, weights

from planvec.agents import build
from planvec.data.pairs import PairSet
from planvec.errors import InputError
from planvec.tasks import parse_condition
from planvec.training import practice as practice_module
from planvec.training.config import Config
from planvec.training.practice import make_pool, practise
from planvec.training.practice_config import PracticeConfig
from planvec.worlds import Registration, make, register
from planvec.worlds.registry import _registered

CONFIG = Config(world=COINS, agent="potential", embedding=8).resolved()
DATA = {"sha256": "of the data"}


@cache
def pairs():
    return PairSet.fresh(WORLD, 32, (0,))


def go(folder, config=CONFIG, practice=PRACTICE, agent=None, **options):
    return practise(config, practice, agent or novice(), folder, pairs(), DATA, **options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An uninterrupted practice."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    go(folder)
    return folder


def test_practice_makes_better(tmp_path):
    """What goes away of the plan in an episode grows."""
    practice = replace(
        PRACTICE, steps=60 * 128, envs=64, minibatch=32, passes=4, interval=10, pool=64, learning_rate=3e-3
    )
    go(tmp_path / "run", practice=practice)
    returns = [line["return"] for line in lines(tmp_path / "run")]
    assert np.mean(returns[-2:]) > returns[0] + 0.2, returns


def test_its_log_is_as_in_other_worlds(whole):
    assert [line["step"] for line in lines(whole)] == [2, 4]
    for line in lines(whole):
        figures = {"exact_by_plan", "exact_by_labels", "return", "reward", "kl", "entropy", "steps_per_second"}
        assert figures <= line.keys() and all(np.isfinite(list(line.values())))
        assert ENVS <= line["actions"] <= 6 * ENVS and line["episodes"] == ENVS
    made = json.loads((whole / "config.json").read_text())
    assert made["practice"]["rollout"] == 2 and made["practice"]["steps"] == PRACTICE.steps


def test_other_labels_make_the_same_weights(whole, tmp_path, monkeypatch):
    def others(*arguments):
        pool, asked = make_pool(*arguments)
        return pool, np.roll(asked, 1, axis=1)

    monkeypatch.setattr(practice_module, "make_pool", others)
    go(tmp_path / "run")
    assert weights(tmp_path / "run") == weights(whole)


def test_resuming_gives_the_same_weights_bit_for_bit(whole, tmp_path):
    """Stopped in the midst of an interval, and by what may happen at its end."""

    def interrupt(step):
        if step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "run", tick=interrupt)
    ticks = []
    go(tmp_path / "run", tick=ticks.append)
    assert ticks == [4] and weights(tmp_path / "run") == weights(whole)


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
import test_practice_hosted as t
t.go(Path(sys.argv[1]), watch=lambda step, metrics: os.kill(os.getpid(), signal.SIGKILL))
"""


def test_a_kill_loses_at_most_an_interval(whole, tmp_path):
    here = Path(__file__).parent
    paths = map(str, (tmp_path / "run", here, here.parent, here.parents[1] / "examples"))
    killed = subprocess.run([sys.executable, "-c", KILLED, *paths], capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    ticks = []
    go(tmp_path / "run", tick=ticks.append)
    assert ticks == [3, 4] and weights(tmp_path / "run") == weights(whole)


@pytest.fixture
def simulators():
    """The tabletop's, one and two of them."""
    names = [f"tabletop-{workers}" for workers in (1, 2)]
    for workers, name in enumerate(names, start=1):
        register(Registration(name, "", "planvec.worlds.tabletop.world:Tabletop", options={"workers": workers}))
    yield names
    for name in names:
        make(name).pool.close()
        del _registered[name]


def test_the_number_of_workers_is_no_matter(simulators, tmp_path):
    practice = PracticeConfig(sums="1", steps=1, pool=3, envs=3, minibatch=4, passes=1, interval=1)
    agent = build("potential", make(simulators[0]).space, 8, key=jax.random.key(0))
    same = PairSet.fresh(make(simulators[0]), 4, (0,))
    for name in simulators:
        config = Config(world=name, agent="potential", embedding=8)
        practise(config, practice, agent, tmp_path / name, same, DATA)
    one, two = (weights(tmp_path / name) for name in simulators)
    assert one == two


# What is left to the world.


def test_what_is_usual_follows_from_the_kind_of_world():
    crafting, doom, tabletop = (PracticeConfig().resolved(make(name)) for name in ("crafting", "doom", "tabletop"))
    assert (crafting.envs, crafting.rollout, crafting.minibatch, crafting.passes) == (4096, 64, 8192, 1)
    assert crafting.sums.startswith("2,3,4,2+2,4+4,2+2+2+2") and crafting.rounds == math.ceil(50e6 / 4096 / 64)
    assert tabletop.sums == "1,2,1+1,1+1+1" and doom.sums == "1,2,1+1,2+2,1+1+1"
    for world in (tabletop, doom):
        assert (world.envs, world.minibatch, world.passes, world.learning_rate) == (512, 512, 4, 1e-4)
    assert tabletop.rollout == math.ceil((6 + 12 + 10 + 18) / 4 / 3) and 30 < doom.rollout < 40
    for known in (crafting, doom, tabletop):
        assert known.resolved(make("crafting")) == known  # nothing is left
    with pytest.raises(InputError, match="a round of 4096 × 63 actions is no multiple of 8192"):
        PracticeConfig(rollout=63).resolved(make("crafting"))
    for bad in ({"passes": 0}, {"envs": -1}, {"sums": "1,x"}, {"steps": math.inf}):
        with pytest.raises(InputError):
            PracticeConfig(**bad)


@pytest.mark.parametrize("name", ["crafting", "tabletop", "doom", "doom-rooms", COINS])
def test_no_reference_of_a_worlds_sums_is_longer_than_what_is_demonstrated(name):
    world = make(name)
    for text in world.sums:
        sizes = parse_condition(text)
        assert max(sizes) <= world.sizes[1]
        parts = world.sample_parts((0,), 4, sizes)
        assert [len(part) for part in parts] == [4] * len(sizes)


def test_labels_are_no_reward_there(tmp_path):
    with pytest.raises(InputError, match="labels as the reward are for worlds on the accelerator; coins is a sim"):
        go(tmp_path / "run", practice=replace(PRACTICE, reward="labels"))
    assert not (tmp_path / "run").exists()


def test_an_agent_whose_head_has_no_chances_cannot_practise(tmp_path):
    agent = build("cpv-full", WORLD.space, 8, "paper", key=jax.random.key(0))
    config = Config(world=COINS, agent="cpv-full", embedding=8, networks="paper")
    with pytest.raises(InputError, match="gives its actions no chances"):
        go(tmp_path / "run", config=config, agent=agent)
