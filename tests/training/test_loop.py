import json
import math
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles.runs import Stop, lines, stop_at, weights

from planvec.agents import Weights, build
from planvec.data.pairs import PairSet
from planvec.errors import InputError
from planvec.io.checkpoints import save_tree
from planvec.training import loop, losses, runs, update
from planvec.training.config import Config
from planvec.training.loop import Diverged, train
from planvec.training.runs import PREVIOUS, STATE, WEIGHTS
from planvec.training.update import make_optimizer, precision, start
from planvec.worlds import make

COINS = "own_world:Coins"  # of the examples: small networks, and as good a world as any
WORLD = make(COINS)
CONFIG = Config(world=COINS, samples=20 * 8, batch=8, embedding=16, interval=5, optimizer="adam").resolved()
DATA = {"sha256": "of the data"}
PICTURES = ("first", "now", "last", "ref_first", "ref_last")  # of a batch


def pairs_of(world):
    tasks = [task for task in world.sample_tasks((0,), 32, 1, 2) for _ in range(2)]
    demos = world.record(tasks, (1,), 0.1)
    return PairSet.of(world, world.replay(demos), demos.actions, demos.lengths)


@pytest.fixture(scope="session")
def pairs():
    return pairs_of(WORLD)


@pytest.fixture(scope="session")
def crafted():
    """Pairs whose pictures are made of tiles."""
    return pairs_of(make("crafting"))


@pytest.fixture(scope="session")
def whole(pairs, tmp_path_factory):
    """An uninterrupted run."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    train([CONFIG], [folder], pairs, DATA)
    return folder


def test_a_runs_folder(whole):
    made = json.loads((whole / "config.json").read_text())
    assert made["config"]["agent"] == "cpv-full" and made["data"] == DATA
    assert {"commit", "device", "versions", "time"} <= made["made"].keys()
    assert [line["step"] for line in lines(whole)] == [5, 10, 15, 20]
    for line in lines(whole):
        assert {"imitation", "hom", "pair", "accuracy", "valid_accuracy", "samples_per_second"} <= line.keys()
    assert any(path.name.startswith("events.out.tfevents") for path in whole.iterdir())


def test_resuming_gives_the_same_weights_bit_for_bit(whole, pairs, tmp_path):
    folder = tmp_path / "run"
    for step in (5, 15):
        with pytest.raises(Stop):
            train([CONFIG], [folder], pairs, DATA, stop_at(step))
    train([CONFIG], [folder], pairs, DATA)
    assert weights(folder) == weights(whole)
    assert [line["step"] for line in lines(folder)] == [5, 10, 15, 20]


def test_the_interval_changes_nothing(whole, pairs, tmp_path):
    """Of the weights; and a line is about the updates since the last one, so that all lines together say the same."""
    train([replace(CONFIG, interval=7)], [tmp_path / "run"], pairs, DATA)
    assert weights(tmp_path / "run") == weights(whole)
    sums = [
        sum(line["imitation"] * size for line, size in zip(lines(folder), sizes, strict=True))
        for folder, sizes in ((whole, (5, 5, 5, 5)), (tmp_path / "run", (7, 7, 6)))
    ]
    assert sums[0] == pytest.approx(sums[1], rel=1e-4)


def test_ctrl_c_loses_nothing(whole, pairs, tmp_path, monkeypatch):
    """Not even what was done since the last checkpoint."""
    monkeypatch.setattr(loop, "PIECE", 0.0)  # an update at a time
    folder, seen = tmp_path / "run", []

    def interrupt(step):
        seen.append(step)
        if step in (3, 12) and seen.count(step) == 1:
            raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            train([CONFIG], [folder], pairs, DATA, tick=interrupt)
    train([CONFIG], [folder], pairs, DATA, tick=interrupt)
    assert seen == [*range(4), *range(3, 6), *range(5, 11), *range(10, 13), *range(12, 16), *range(15, 21)]
    assert weights(folder) == weights(whole)
    assert [line["step"] for line in lines(folder)] == [5, 10, 15, 20]


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
import test_loop as t
pairs = t.pairs_of(t.WORLD)
def die(step, metrics):
    if step >= 10:
        os.kill(os.getpid(), signal.SIGKILL)
t.train([t.CONFIG], [Path(sys.argv[1])], pairs, t.DATA, die)
"""


def test_a_kill_loses_at_most_an_interval(whole, pairs, tmp_path):
    here = Path(__file__).parent
    paths = [str(path) for path in (here, here.parent, here.parents[1] / "examples")]
    command = [sys.executable, "-c", KILLED, str(tmp_path / "run"), *paths]
    killed = subprocess.run(command, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    steps = []
    train([CONFIG], [tmp_path / "run"], pairs, DATA, lambda step, _: steps.append(step))
    assert steps == [15, 20]
    assert weights(tmp_path / "run") == weights(whole)


def test_seeds_and_kinds_train_together_as_they_do_alone(pairs, tmp_path):
    """Losses agree to four digits over 20 steps, and each agent is trained on its own losses."""
    # Small steps: batched products round otherwise than single ones, and large steps would make that grow. So would a
    # unit on the edge of its relu, of which Adam makes a whole step: seed 1 has one.
    small = replace(CONFIG, interval=2, learning_rate=3e-5)
    configs = [replace(small, agent=kind, seed=seed) for seed in (0, 2) for kind in ("te-plain", "te-full")]
    train(configs, [tmp_path / f"together{i}" for i in range(4)], pairs, DATA)
    for i, config in enumerate(configs):
        train([config], [tmp_path / f"alone{i}"], pairs, DATA)
        together, alone = lines(tmp_path / f"together{i}"), lines(tmp_path / f"alone{i}")
        assert len(together) == 10
        for one, other in zip(together, alone, strict=True):
            for name in other.keys() - {"samples_per_second"}:
                assert one[name] == pytest.approx(other[name], rel=1e-4, abs=1e-4)
    assert len({lines(tmp_path / f"together{i}")[-1]["loss"] for i in range(4)}) == 4


def test_seeds_and_kinds_as_a_grid():
    configs = [replace(CONFIG, agent=kind, seed=seed) for seed in (5, 2) for kind in ("te-plain", "te-full")]
    seeds, kinds = loop.grid(configs)
    assert seeds.tolist() == [5, 2] and [kind.agent for kind in kinds] == ["te-plain", "te-full"]


def test_agents_that_cannot_train_together(pairs, tmp_path):
    full, plain = replace(CONFIG, agent="cpv-full"), replace(CONFIG, agent="cpv-plain")
    mixes = [
        ([full, replace(CONFIG, agent="te-full")], "weights of their losses alone"),
        ([full, replace(plain, embedding=8)], "weights of their losses alone"),
        ([full, replace(full, stop=0.3)], "weights of their losses alone"),
        ([full, replace(full, seed=1), plain, replace(plain, seed=1)], "seed by seed"),
        ([full, plain, replace(full, seed=1)], "seed by seed"),
    ]
    for configs, why in mixes:
        with pytest.raises(InputError, match=why):
            train(configs, [tmp_path / str(i) for i in range(len(configs))], pairs, DATA)


def test_a_kill_between_two_saves_loses_at_most_an_interval(pairs, tmp_path):
    configs = [replace(CONFIG, seed=seed) for seed in (0, 1)]
    folders, whole = ([tmp_path / f"{name}{i}" for i in range(2)] for name in ("cut", "whole"))
    with pytest.raises(Stop):
        train(configs, folders, pairs, DATA, stop_at(10))
    (folders[1] / PREVIOUS).replace(folders[1] / STATE)  # as if killed after the first folder was saved
    steps = []
    train(configs, folders, pairs, DATA, lambda step, _: steps.append(step))
    train(configs, whole, pairs, DATA)
    assert steps == [10, 15, 20]
    assert [weights(folder) for folder in folders] == [weights(folder) for folder in whole]
    assert [[line["step"] for line in lines(folder)] for folder in folders] == [[5, 10, 15, 20]] * 2


def failing(monkeypatch, fails):
    """Let a disk be full whenever `fails(path)`."""

    def save(path, tree):
        if fails(path):
            raise OSError("disk full")
        save_tree(path, tree)

    monkeypatch.setattr(runs, "save_tree", save)


@pytest.mark.parametrize("name", [WEIGHTS, STATE])
def test_a_full_disk_at_the_last_save_loses_at_most_an_interval(name, whole, pairs, tmp_path, monkeypatch):
    saves = []
    failing(monkeypatch, lambda path: path.name == name and (saves.append(path) or len(saves) == 4))
    with pytest.raises(OSError, match="full"):
        train([CONFIG], [tmp_path / "run"], pairs, DATA)
    steps = []
    train([CONFIG], [tmp_path / "run"], pairs, DATA, lambda step, _: steps.append(step))
    assert steps == [20] and weights(tmp_path / "run") == weights(whole)
    assert [line["step"] for line in lines(tmp_path / "run")] == [5, 10, 15, 20]


def test_a_disk_that_is_full_again_and_again_loses_no_more(pairs, tmp_path, monkeypatch):
    configs, folders = [replace(CONFIG, seed=seed) for seed in (0, 1)], [tmp_path / "0", tmp_path / "1"]
    with pytest.raises(Stop):
        train(configs, folders, pairs, DATA, stop_at(10))
    failing(monkeypatch, lambda path: path == folders[1] / STATE)
    for _ in range(3):
        with pytest.raises(OSError, match="full"):
            train(configs, folders, pairs, DATA)
    monkeypatch.undo()
    steps = []
    train(configs, folders, pairs, DATA, lambda step, _: steps.append(step))
    assert steps == [15, 20]


def test_what_was_trained_is_never_begun_again(whole, pairs, tmp_path):
    before = weights(whole)
    with pytest.raises(InputError, match="no checkpoint in common"):
        train([CONFIG, replace(CONFIG, seed=1)], [whole, tmp_path / "run"], pairs, DATA)
    assert weights(whole) == before


def test_a_loss_that_is_not_a_number_stops_the_run(pairs, tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(Stop):
        train([CONFIG], [folder], pairs, DATA, stop_at(5))
    before = weights(folder)
    ruined = PairSet(pairs.steps, pairs.actions, pairs.starts, pairs.lengths, pairs.begin, pairs.end, Ruined())
    with pytest.raises(Diverged, match="keeps the weights"):
        train([CONFIG], [folder], ruined, DATA)
    assert weights(folder) == before


def shown(monkeypatch):
    """A list to which trainings add which pairs they show to `chunk`, and one for `validate`."""
    trained, validated = [], []

    def programs(kinds, deterministic):
        chunk, validate = update.programs(kinds, deterministic)

        def watched_chunk(states, pairs, seeds, updates):
            trained.append((int(pairs.begin), int(pairs.end)))
            return chunk(states, pairs, seeds, updates)

        def watched_validate(agents, pairs):
            validated.append((int(pairs.begin), int(pairs.end)))
            return validate(agents, pairs)

        return watched_chunk, watched_validate

    monkeypatch.setattr(loop, "programs", programs)
    return trained, validated


def test_no_validation_pair_is_trained_on_and_no_training_pair_validated_on(pairs, tmp_path, monkeypatch):
    trained, validated = shown(monkeypatch)
    train([CONFIG], [tmp_path / "run"], pairs, DATA)
    assert set(trained) == {(0, 29)} and set(validated) == {(29, 32)}


def test_validation_pairs_leave_no_trace_in_the_weights(whole, pairs, tmp_path):
    """Nor do their figures come from elsewhere: with other actions they are others."""
    begins = int(pairs.starts[2 * 29] - 2 * 29)  # the first action of the first validation pair
    other = pairs.actions.at[begins:].add(0.01)
    train([CONFIG], [tmp_path / "run"], replace(pairs, actions=other), DATA)
    assert weights(tmp_path / "run") == weights(whole)
    for line, as_they_are in zip(lines(tmp_path / "run"), lines(whole), strict=True):
        assert line["imitation"] == pytest.approx(as_they_are["imitation"])
        assert line["valid_imitation"] != pytest.approx(as_they_are["valid_imitation"])


def test_naive_takes_the_samples_of_pairs_as_they_come(crafted):
    """Made of tiles: as it would the same pictures drawn."""
    batch = crafted.sample(jax.random.key(0), 4)
    drawn = batch._replace(**{name: getattr(batch, name).draw() for name in PICTURES})
    naive = build("naive", crafted.world.space, key=jax.random.key(1))

    @eqx.filter_jit
    def loss_and_choice(batch):
        ends = [(batch.first, batch.last), (batch.ref_first, batch.ref_last)]
        plans = naive.add([naive.encode(first, last) for first, last in ends])
        loss, _ = losses.total(naive, batch, Weights())
        return loss, naive.choose(batch.first, batch.now, plans, jax.random.key(2)).action

    loss, actions = loss_and_choice(batch)
    loss_drawn, actions_drawn = loss_and_choice(drawn)
    assert loss == pytest.approx(float(loss_drawn), rel=1e-4)
    np.testing.assert_array_equal(actions, actions_drawn)


class Ruined(type(WORLD)):
    """A world in which nobody knows where anything is."""

    def decode(self, step):
        return step * jnp.nan


@pytest.mark.parametrize("name", ["naive", "tecnet", "te-plain", "cpv-hom"])
def test_every_kind_of_agent_learns(name, pairs, tmp_path):
    config = replace(CONFIG, agent=name, samples=60 * 32, batch=32, interval=20)
    train([config], [tmp_path / "run"], pairs, DATA)
    first, *_, last = lines(tmp_path / "run")
    assert last["imitation"] < first["imitation"]


def test_what_stops_learns_to_act_and_when_to_stop(pairs, tmp_path):
    config = Config(COINS, "potential", samples=60 * 32, batch=32, embedding=16, interval=20, optimizer="adam")
    [agent] = train([config], [tmp_path / "run"], pairs, DATA)
    first, *_, last = lines(tmp_path / "run")
    assert agent.can_stop and last["imitation"] < first["imitation"] and last["stop"] < first["stop"]
    assert {"alike", "stop_accuracy", "valid_stop", "valid_stop_accuracy"} <= last.keys()


def test_from_pictures_of_tiles_an_agent_learns_too(crafted, tmp_path):
    """By Muon, as usual."""
    train([Config(samples=40 * 32, batch=32, embedding=16, interval=20)], [tmp_path / "run"], crafted, DATA)
    first, last = lines(tmp_path / "run")
    assert last["imitation"] < first["imitation"]


def test_another_training_in_the_folder(whole, pairs, tmp_path):
    for config, data in ((replace(CONFIG, seed=1), DATA), (CONFIG, {"sha256": "other"})):
        with pytest.raises(InputError, match="another"):
            train([config], [whole], pairs, data)
    (tmp_path / "letter.txt").write_text("dear diary")
    with pytest.raises(InputError, match="not empty"):
        train([CONFIG], [tmp_path], pairs, DATA)
    with pytest.raises(InputError, match="weights of their losses alone"):
        train([CONFIG, replace(CONFIG, batch=16)], [tmp_path / "a", tmp_path / "b"], pairs, DATA)


@pytest.mark.parametrize(
    "changes",
    [
        {"agent": "gpt"},
        {"batch": 1},
        {"samples": 0},
        {"learning_rate": -1},
        {"seed": -1},
        {"warmup": -1},
        {"samples": math.inf},
        {"alike": -1},
        {"stop": -1},
        {"cancelling": -1},
        {"cancelling": 1.5},
    ],
)
def test_configs_that_make_no_sense(changes):
    with pytest.raises(InputError):
        Config(**changes)


def test_the_step_size_rises_and_falls():
    config = replace(CONFIG, samples=100 * 8, warmup=5, weight_decay=0.0)
    optimizer = make_optimizer(config)
    params = {"w": jnp.ones(3)}
    state, moved = optimizer.init(params), []
    for _ in range(config.updates + 1):
        change, state = optimizer.update({"w": jnp.ones(3)}, state, params)
        moved.append(float(abs(change["w"][0])))
    assert moved[0] == 0 and moved[5] == pytest.approx(config.learning_rate, rel=1e-3)
    assert moved[-1] == pytest.approx(0, abs=1e-8)
    assert np.all(np.diff(moved[:6]) > 0) and np.all(np.diff(moved[5:]) < 1e-9)


def test_muon_takes_the_matrices_and_adam_the_rest():
    config = Config(samples=100 * 8, batch=8, embedding=16, warmup=0, weight_decay=0.0).resolved()
    agent, optimizer = start(config).agent, make_optimizer(config)
    gradients = jax.tree.map(lambda leaf: jax.random.normal(jax.random.key(leaf.size), leaf.shape), agent)
    changes, _ = eqx.filter_jit(optimizer.update)(gradients, optimizer.init(agent), agent)
    for weight in (changes.encoder.convs[1].weight, changes.policy.layers[0].weight):
        matrix = np.asarray(weight).reshape(-1, weight.shape[-1]) / config.learning_rate / 0.2
        singular = np.linalg.svd(matrix, compute_uv=False) / max(matrix.shape) ** 0.5
        assert singular.min() > 0.5 and singular.max() < 1.5  # near an orthogonal matrix, as far as five rounds go
    for leaf in (changes.policy.head.linear.weight, changes.encoder.convs[0].bias):
        assert np.ptp(np.abs(leaf)) < 1e-6 < np.abs(leaf).min()  # Adam's first step is as long for every weight


def test_ctr_weighs_imitation():
    assert Config(agent="tecnet").weights.imitation == 0.1
    assert Config(agent="tecnet", ctr=1.0).weights.imitation == 1.0
    with pytest.raises(InputError, match="cpv-full has none"):
        Config(agent="cpv-full", ctr=1.0)
    with pytest.raises(InputError, match="more than 0"):
        Config(agent="tecnet", ctr=0.0)


def test_float32_on_the_cpu():
    assert precision(CONFIG) == jnp.float32
    assert precision(replace(CONFIG, precision="bfloat16")) == jnp.bfloat16
    assert jax.default_backend() == "cpu"
