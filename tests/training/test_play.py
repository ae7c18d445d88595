"""Learning from play: what is trained, what trains together, and the metric that is made of it."""

import json
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from planvec.agents import build
from planvec.data.pairs import PairSet
from planvec.data.play import PlaySet
from planvec.errors import InputError
from planvec.training.config import ENDED, Config
from planvec.training.loop import train
from planvec.training.metric import fit_metric
from planvec.training.practice import metric_pairs
from planvec.training.runs import METRICS, read_config
from planvec.training.update import draw
from planvec.worlds import make
from planvec.worlds.spaces import Objects

COINS = "own_world:Coins"  # of the examples: small networks
CONFIG = Config(
    world=COINS,
    agent="potential",
    segments="random",
    window=6,
    jitter=0,
    samples=4 * 8,
    batch=8,
    embedding=16,
    interval=2,
    optimizer="adam",
)
DATA = {"sha256": "of the data"}


@pytest.fixture(scope="module")
def play():
    return PlaySet.fresh(make(COINS), 24, (0,), (2, 3))


def test_an_agent_trains_on_play_and_kinds_train_together(play, tmp_path):
    """With sparse penalties of their own."""
    configs = [replace(CONFIG, sparse=sparse) for sparse in (0.3, 0.0)]
    folders = [tmp_path / name for name in ("some", "none")]
    train(configs, folders, play, DATA)
    for config, folder in zip(configs, folders, strict=True):
        rows = [json.loads(line) for line in (folder / METRICS).read_text().splitlines()]
        assert [row["step"] for row in rows] == [2, 4]
        assert rows[0].keys() >= {"imitation", "stop", "sparse", "valid_sparse"} and "alike" not in rows[0]
        known = read_config(folder)
        assert known == config.resolved() and (known.segments, known.window) == ("random", 6)
        losses = rows[0]["imitation"] + 0.3 * rows[0]["stop"] + config.sparse * rows[0]["sparse"]
        assert rows[0]["loss"] == pytest.approx(losses, rel=1e-4)
    first, second = (json.loads((folder / METRICS).read_text().splitlines()[1]) for folder in folders)
    assert first["sparse"] != second["sparse"]


def test_stretches_are_as_long_and_as_loose_as_is_asked_for(play, monkeypatch):
    monkeypatch.setattr(PlaySet, "sample", lambda self, *how: how)
    assert draw(play, "key", 4, replace(CONFIG, jitter=2).resolved()) == ("key", 4, ENDED, 6, 2)


def test_play_and_pairs_are_not_taken_for_each_other(play, tmp_path):
    pairs = PairSet.fresh(make(COINS), 8, (0,))
    for config, samples in ((CONFIG, pairs), (Config(world=COINS, batch=8, samples=16, embedding=16), play)):
        with pytest.raises(InputError, match="random where the data are play"):
            train([config], [tmp_path / "run"], samples, DATA)
    assert not (tmp_path / "run").exists()


SKILLS, TOOLS = 3, 2
TOOL = 3.0  # how much a tool in hand changes an observation


class Hands:
    """A world that shows how often each skill was done, and which tool is in hand."""

    sizes = (1, 2)

    def decode(self, step):
        return step


@pytest.fixture(scope="module")
def handy():
    """Recordings in which a tool is taken up before each skill, and put down after it; and one of a single action."""
    rng = np.random.default_rng(0)
    steps, lengths = [np.zeros((2, SKILLS + TOOLS))], [1]
    for _ in range(200):
        now, rows = np.zeros(SKILLS + TOOLS), []
        for _ in range(30):
            tool, waits = SKILLS + rng.integers(TOOLS), rng.integers(0, 6, 3)
            for turn, (place, change) in enumerate(((tool, TOOL), (rng.integers(SKILLS), 1.0), (tool, -TOOL))):
                rows += [now.copy()] * (1 + waits[turn])
                now[place] += change
        steps.append(np.array([*rows, now]))
        lengths.append(len(rows))
    actions = np.zeros(sum(lengths), np.uint8)
    return PlaySet.of(Hands(), np.concatenate(steps).astype(np.float32), actions, np.array(lengths, np.int32))


class Change(eqx.Module):
    """g: what has changed."""

    def __call__(self, observations):
        return observations[1] - observations[0]


def test_in_the_metric_of_play_a_skill_is_one_and_what_comes_and_goes_is_little(handy):
    agent = build("potential", Objects(3), key=jax.random.key(0))
    agent = eqx.tree_at(lambda agent: agent.encoder, agent, Change(), is_leaf=lambda leaf: leaf is agent.encoder)
    metric = fit_metric(agent, handy, jax.random.key(1))
    lengths = np.array(metric(jnp.eye(SKILLS + TOOLS)))
    np.testing.assert_allclose(lengths[:SKILLS], 1, atol=0.25)
    assert (TOOL * lengths[SKILLS:] < 0.9).all()  # though it changes three times as much as a skill
    assert 0 < metric.noise < 1.5
    assert metric(jnp.zeros(SKILLS + TOOLS)) == 0


def test_play_to_measure_plans_by_is_made_where_none_is_given():
    class Few(type(make(COINS))):
        pairs = 6

        def sample_tasks(self, seed, count, low, high):
            return super().sample_tasks(seed, count, min(low, 3), min(high, 3))

    play, described = metric_pairs(Few(), None, seed=0, plays=True)
    assert isinstance(play, PlaySet) and described["recordings"] == len(play) == 2 and "pairs" not in described
    pairs, described = metric_pairs(Few(), None, seed=0)
    assert isinstance(pairs, PairSet) and described["pairs"] == len(pairs) == 6
