"""A config is plain data; what it leaves to the world is looked up when it is resolved."""

import json
from dataclasses import asdict, replace

import jax
import pytest

from planvec.agents import zoo
from planvec.agents.relations import RelationEncoder
from planvec.errors import InputError
from planvec.io.checkpoints import save_json
from planvec.training import config as config_module
from planvec.training.config import ENDED, Config
from planvec.training.loading import SHIPPED, shipped
from planvec.training.runs import CONFIG, open_run, read_config
from planvec.worlds import make

OLD = {  # what a run folder of an older planvec says, which did not name the networks
    **asdict(Config(world="tabletop", embedding=64, samples=10e6, weight_decay=0.3)),
    "networks": None,
}


def test_a_fresh_config_builds_no_world(monkeypatch):
    monkeypatch.delattr(config_module, "make")
    fresh = Config(world="nowhere", networks="none")
    assert (fresh.embedding, fresh.networks, fresh.samples, fresh.weight_decay) == (None, "none", None, None)
    assert (fresh.alike, fresh.stop, fresh.cancelling, fresh.sparse) == (None, None, None, None)


@pytest.mark.parametrize(
    ("world", "expected"),
    [
        ("crafting", (512, "paper", 60e6, 0.1)),
        ("tabletop", (64, "relations", 10e6, 0.3)),
        ("doom", (64, "views", 10e6, 0.1)),
    ],
)
def test_what_is_left_to_the_world_is_looked_up_there(world, expected):
    config = Config(world=world).resolved()
    assert (config.embedding, config.networks, config.samples, config.weight_decay) == expected
    assert (config.alike, config.stop, config.cancelling, config.sparse) == (0.0, 0.0, 0.0, 0.0)
    assert config.ended == 0 and config.segments == "pairs" and config.jitter == 0
    assert config.resolved() == config


@pytest.mark.parametrize(
    ("world", "expected"), [("crafting", (64, "potential", 12e6, 0.1)), ("tabletop", (64, "potential", 10e6, 0.3))]
)
def test_a_model_may_have_networks_and_losses_of_its_own(world, expected):
    config = Config(world=world, agent="potential").resolved()
    assert (config.embedding, config.networks, config.samples, config.weight_decay) == expected
    assert (config.alike, config.stop, config.cancelling) == (1.0, 0.3, 0.75) and config.ended == ENDED
    assert config.resolved() == config and config.weights == zoo.AGENTS["potential"].weights


def test_what_is_given_stays():
    given = Config(world="tabletop", embedding=8, networks="paper", samples=9.0, weight_decay=0.0)
    given = replace(given, alike=0.5, stop=0.1, cancelling=0.25, sparse=0.7, jitter=0)
    assert given.resolved() == given and given.ended == ENDED
    assert given.weights == replace(zoo.AGENTS["cpv-full"].weights, alike=0.5, stop=0.1, cancelling=0.25, sparse=0.7)
    none = Config(agent="potential", alike=0.0, stop=0.0, cancelling=0.0).resolved()
    assert none.weights == zoo.Weights() and none.ended == 0


def test_what_trains_in_one_program():
    """Weights of losses may differ, but whether an agent can say stop is part of its networks."""
    config = Config(agent="potential").resolved()
    assert replace(config, alike=0.0, cancelling=0.5, sparse=0.1, seed=3).program == config.program
    play = replace(config, segments="random", jitter=1)
    for other in (replace(config, stop=0.0), replace(config, networks="paper-g"), replace(config, embedding=8), play):
        assert other.program != config.program
    assert replace(play, sparse=0.7).program == play.program
    assert replace(play, window=9).program != play.program != replace(play, jitter=2).program


def test_play_has_weights_of_its_own():
    """A stretch is like itself; so what two that are nearly the same have in common asks for jitter."""
    play = Config(agent="potential", segments="random", jitter=0).resolved()
    assert (play.alike, play.cancelling, play.sparse, play.stop) == (0.0, 0.0, 0.3, 0.3)
    assert (play.window, play.jitter) == (60, 0) and play.resolved() == play
    moved = Config(agent="potential", segments="random").resolved()
    assert (moved.alike, moved.cancelling, moved.sparse, moved.jitter) == (1.0, 0.0, 0.3, 2)
    assert Config(segments="random", sparse=0.0).resolved().weights == zoo.AGENTS["cpv-full"].weights


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jitter": 2}, "--segments random"),
        ({"segments": "random", "jitter": 0, "alike": 1.0}, "alike .* --jitter"),
        ({"segments": "random", "jitter": 0, "cancelling": 0.5}, "cancelling .* --jitter"),
        ({"segments": "random", "window": 0}, "window"),
        ({"segments": "random", "jitter": -1}, "jitter"),
        ({"segments": "some"}, "pairs, random"),
        ({"sparse": -0.1}, "sparse"),
    ],
)
def test_what_means_nothing_is_told(options, message):
    with pytest.raises(InputError, match=message):
        Config(**options)


def test_networks_that_the_world_has_not():
    with pytest.raises(InputError, match="called relations or paper or potential, not 'views'"):
        Config(world="tabletop", networks="views").resolved()
    with pytest.raises(InputError, match="for View there are networks called views or potential, not 'paper'"):
        Config(world="doom", networks="paper").resolved()


def test_the_order_of_a_table_of_networks_means_nothing(monkeypatch):
    space = next(space for space, kind in zoo.FAMILIES.items() if "relations" in kind.networks)
    kind = zoo.FAMILIES[space]
    turned = kind._replace(networks=dict(reversed(kind.networks.items())))
    monkeypatch.setitem(zoo.FAMILIES, space, turned)
    assert Config(world="tabletop").resolved().networks == "relations"
    fresh = zoo.build("cpv-full", make("tabletop").space, key=jax.random.key(0))
    assert isinstance(fresh.encoder, RelationEncoder)


@pytest.mark.parametrize("name", shipped())
def test_the_networks_of_shipped_weights_are_pinned(name):
    """And they say no stop, nor were they trained on losses that came later than they."""
    described = json.loads((SHIPPED / name / CONFIG).read_text())["config"]
    assert described["networks"] is not None
    pinned = Config(**({"alike": 0.0, "stop": 0.0, "cancelling": 0.0, "sparse": 0.0, "jitter": 0} | described))
    assert Config(**described).resolved() == pinned


def test_an_older_run_that_does_not_name_its_networks_goes_on(tmp_path):
    for old in (OLD, {name: value for name, value in OLD.items() if name != "networks"}):
        save_json(tmp_path / CONFIG, {"config": old, "data": {}})
        assert read_config(tmp_path).resolved().networks == "relations"
        open_run(Config(world="tabletop").resolved(), tmp_path, {})
        with pytest.raises(InputError, match="networks relations, not paper"):
            open_run(Config(world="tabletop", networks="paper").resolved(), tmp_path, {})


def test_a_run_that_practised_is_not_gone_on_with_in_another_way(tmp_path):
    config = Config(world="tabletop").resolved()
    open_run(config, tmp_path, {}, practice={"steps": 8})
    open_run(config, tmp_path, {}, practice={"steps": 8})
    for practice in (None, {"steps": 9}):
        with pytest.raises(InputError, match="another practice"):
            open_run(config, tmp_path, {}, practice=practice)


def test_a_new_run_names_its_networks(tmp_path):
    config = replace(Config(world="tabletop"), seed=3).resolved()
    open_run(config, tmp_path / "run", {})
    assert json.loads((tmp_path / "run" / CONFIG).read_text())["config"]["networks"] == "relations"
    assert read_config(tmp_path / "run") == config
