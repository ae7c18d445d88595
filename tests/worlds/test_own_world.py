"""A world that is none of ours, named as docs/adding-a-world.md says: all that planvec does works in it."""

import asyncio
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import planvec as pv
from planvec.cli import main
from planvec.errors import InputError
from planvec.playground.sharing import shared_worlds
from planvec.playground.visits import Visit
from planvec.worlds import Registration, make, register, registrations
from planvec.worlds.registry import _registered

NAME = "own_world:Coins"
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of an agent that was trained by the command line, a little."""
    folder = tmp_path_factory.mktemp("coins")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLES))
        planvec(patch, "collect", NAME, "--pairs", "24", "--out", f"{folder}/data")
        options = ["--embedding", "8", "--samples", "64", "--batch", "16", "--episodes", "4"]
        planvec(patch, "train", NAME, "--data", f"{folder}/data", *options, "--out", f"{folder}/run")
    return f"{folder}/run/"


def planvec(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["planvec", *arguments])
    main.main()


def test_it_is_scored_and_measured(run, monkeypatch, capsys):
    planvec(monkeypatch, "evaluate", run, "--episodes", "4", "--conditions", "1,1+1", "--json")
    report = json.loads(capsys.readouterr().out)
    assert report["world"] == NAME and report["conditions"].keys() == {"1", "1+1"}
    planvec(monkeypatch, "measure", run, "--tasks", "8", "--episodes", "2", "--json")
    assert json.loads(capsys.readouterr().out)["world"] == NAME


def test_it_is_acted_in_and_filmed(run, monkeypatch, capsys, tmp_path):
    demos = ["--demo", "A=Gold", "--demo", "B=Copper"]
    film = tmp_path / "coins.gif"
    planvec(monkeypatch, "act", NAME, "--agent", run, "--plan", "A + B", *demos, "--gif", str(film), "--json")
    report = json.loads(capsys.readouterr().out)
    assert report["wanted"] == ["Gold", "Copper"] and film.read_bytes().startswith(b"GIF89a")
    planvec(monkeypatch, "render", NAME, "--task", "Silver", "--gif", str(film))
    world = make(NAME)
    rolled = pv.rollout(pv.load(run), pv.load(run).plan(world.demonstrate("Gold")), world, "Gold")
    assert rolled.observations.shape[1:] == (9,)


def test_it_has_a_table(monkeypatch, tmp_path, capsys):
    sizes = ["--samples", "32", "--pairs", "24", "--episodes", "4", "--seeds", "1", "--agents", "cpv-full"]
    planvec(monkeypatch, "reproduce", NAME, *sizes, "--out", str(tmp_path))
    results = json.loads((tmp_path / "results.json").read_text())
    assert {row["condition"] for row in results["rows"]} == {"1", "2", "1+1"}
    assert {row["agent"] for row in results["rows"]} == {"cpv-full", "cpv-full, reference of another task"}


def test_it_is_played_with_in_the_browser(run):
    told = []

    async def visit():
        worlds = shared_worlds(NAME, [run])
        visitor = Visit(worlds, told.append)

        async def ask(**message):
            await visitor.handle(message | {"number": len(told)})
            return next(answer for answer in reversed(told) if "number" in answer)

        world = await ask(do="open", world=NAME)
        assert world["skills"] == make(NAME).skills and world["canvas"] == {"kind": "pictures"}
        for number, (name, task) in enumerate(zip("ABC", world["examples"], strict=True)):
            answer = await ask(do="demonstrate", name=name, task=list(task), seed=number)
            assert answer["is"] == "demonstration" and answer["film"][0]["picture"].startswith("data:image/jpeg")
        assert (await ask(do="read", plan="A + B", agent=run))["is"] == "meaning"
        assert (await ask(do="map", agent=run))["map"]
        assert "cannot be played" in (await ask(do="play", seed=0))["reason"]
        begun = await ask(do="run", plan="A + B", seed=0, agents=[run])
        await visitor.handle({"do": "want", "run": begun["run"], "upto": 64})
        while not (steps := [one for one in told if one["is"] == "step"]) or not steps[-1]["over"]:
            await asyncio.sleep(0.01)
        assert len(steps) <= begun["horizon"] == make(NAME).horizon([1, 1])
        assert steps[-1]["end"].keys() == {"success", "exact", "extras", "events"}
        visitor.close()
        worlds[NAME].close()

    with ThreadPoolExecutor(1) as thread:  # the browser's tests have an event loop in this one
        thread.submit(asyncio.run, visit()).result()


def test_a_name_of_its_own(monkeypatch):
    monkeypatch.delitem(_registered, "coins", raising=False)
    register(Registration("coins", "three coins to be brought home", factory=NAME))
    assert type(make("coins")) is type(make(NAME)) and "coins" in registrations()
    with pytest.raises(InputError, match="a world called 'coins' already"):
        register(Registration("coins", "others", factory="x:y"))
    del _registered["coins"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own_world:Coin", "'own_world' has no 'Coin'"),
        ("own_words:Coins", "no module 'own_words'"),
        ("examples.own_words:Coins", "no module 'examples"),
        (":", "no name of a module"),
        ("mars", "no world is called 'mars'; there is crafting"),
    ],
)
def test_a_name_of_nothing(name, message):
    with pytest.raises(InputError, match=message):
        make(name)


def test_what_an_expert_does_besides_is_an_extra():
    """And is discarded unless it is to be kept."""

    class Eager(type(make(NAME))):
        """Its expert begins with one coin more, at the first try."""

        tries = 0

        def attempt(self, task, rng, noise):
            self.tries += 1
            return super().attempt(("Copper", *task) if self.tries == 1 else task, rng, noise)

    kept, discarded = (Eager().record([("Gold",)], (0,), extras=extras) for extras in ("keep", "discard"))
    assert kept.extras.tolist() == [1] and kept.attempts.tolist() == [[1, 0, 0]]
    assert discarded.extras.tolist() == [0] and discarded.attempts.tolist() == [[1, 1, 0]]


def test_what_has_a_default_has_a_sensible_one():
    class Plain(type(make(NAME))):
        horizon = pv.worlds.protocol.World.horizon

    world = Plain()
    assert world.conditions == ("1", "2", "1+1") and world.glance == ("1", "1+1") and world.sizes == (1, 2)
    one, other = world.examples
    assert len(one) == len(other) == 1 and one != other
    assert world.horizon([1]) == 3 and 5 <= world.horizon([1, 1]) <= 7  # the expert needs an action for each coin
    recording = world.record([("Gold",), ("Gold", "Copper")], (0,), noise=0.5)
    first, last, done = world.ends(recording)
    assert (done == [[1, 0, 0], [1, 0, 1]]).all() and first.shape == last.shape == (2, 9)
    np.testing.assert_array_equal(recording.stored["steps"][recording.first_steps], first)
    for parts in zip(*world.sample_parts((0,), 20, (1, 2)), strict=True):
        assert len({*parts[0], *parts[1]}) == 3
    with pytest.raises(InputError, match="3 skills, each to be done once; 4 are too many"):
        world.sample_tasks((0,), 1, 1, 4)
