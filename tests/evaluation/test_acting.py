from types import SimpleNamespace

import jax
import numpy as np
import pytest
import safetensors.numpy

import planvec as pv
from planvec.agents import build
from planvec.data.demonstrations import Demonstration, load_demonstration, save_demonstration
from planvec.errors import InputError
from planvec.evaluation.acting import MOST, act, demonstration, parse_demos, wanted_of
from planvec.expressions import parse
from planvec.worlds import make
from planvec.worlds.tabletop.world import Tabletop

WORLD = make("crafting")


def shown(*task):
    return Demonstration(task, np.zeros((1, 2)), np.zeros(0), np.zeros((1, 2)))


def wanted(text, **tasks):
    return wanted_of(parse(text), {name: shown(*task.split()) for name, task in tasks.items()})


def test_what_is_wanted_follows_the_expression():
    assert wanted("A + B - C", A="Chop Bread", B="Rock", C="Bread") == ("Chop", "Rock")
    assert wanted("2*A", A="Chop House") == ("Chop", "House", "Chop", "House")
    assert wanted("A + B", A="Chop", B="Chop Rock") == ("Chop", "Chop", "Rock")
    assert wanted("(A + B)/2", A="Chop Rock", B="Rock Chop") == ("Chop", "Rock")
    assert wanted("A - B", A="Chop", B="Rock Rock") == ("Chop",)
    assert wanted("A/2 + B", A="Chop Rock Rock Rock", B="Bread") == ("Rock", "Bread")  # a half is none, 1.5 is one


@pytest.mark.parametrize(
    ("text", "message"),
    [("A - A", "asks for no skill"), ("-A", "asks for no skill"), ("A/3", "no skill"), (f"{MOST + 1}*A", "more than")],
)
def test_what_cannot_be_judged(text, message):
    with pytest.raises(InputError, match=message):
        wanted(text, A="Chop")


def test_names_of_demonstrations():
    assert parse_demos(["A=ChopTree,EatBread", " b_2 = x/y"]) == {"A": "ChopTree,EatBread", "b_2": "x/y"}
    for text in ("ChopTree", "A=", "=ChopTree", "2=ChopTree", "A B=ChopTree"):
        with pytest.raises(InputError, match="names no demonstration"):
            parse_demos([text])
    with pytest.raises(InputError, match="two demonstrations called A"):
        parse_demos(["A=ChopTree", "A=EatBread"])


def test_demonstrations_depend_on_their_name_and_the_seed_alone():
    one, same, other = (demonstration(WORLD, name, "EatBread", 3) for name in "AAB")
    np.testing.assert_array_equal(one.observations, same.observations)
    assert not np.array_equal(one.first, other.first)
    assert demonstration(WORLD, "A", one, 3) is one
    with pytest.raises(InputError, match="a seed is"):
        demonstration(WORLD, "A", "EatBread", -1)


def test_the_shipped_agent_does_what_is_left(tmp_path):
    agent = pv.load("crafting")
    save_demonstration(tmp_path / "bread.safetensors", WORLD.demonstrate("MakeBread", seed=8), WORLD)
    demos = {"A": "ChopTree,MakeBread", "B": ["BreakRock"], "C": f"{tmp_path}/bread.safetensors", "unused": "EatBread"}
    tries = [act(agent, WORLD, "A + B - C", demos, seed=seed) for seed in range(4)]
    assert sum(one.episode.success for one in tries) >= 2
    done = next(one for one in tries if one.episode.success)
    report = done.as_dict()
    assert report["demos"] == {"A": ["ChopTree", "MakeBread"], "B": ["BreakRock"], "C": ["MakeBread"]}
    assert report["wanted"] == ["ChopTree", "BreakRock"] and report["success"] and report["norm"] > 0
    assert report["exact"] == (len(report["skills_done"]) - len(report["after"]) == 2)
    assert report["success_at"] <= report["steps"] == len(done.episode) == WORLD.horizon([2])
    assert not report["stopped"] and report["stays"] == (report["exact"] and not report["after"])
    assert "wanted of A + B - C: ChopTree, BreakRock" in done.describe()
    done.save(tmp_path / "done.gif")
    assert (tmp_path / "done.gif").read_bytes().startswith(b"GIF89a")


def test_what_an_agent_cannot_act_on():
    agent, demos = pv.load("crafting"), {"A": WORLD.demonstrate("EatBread")}
    with pytest.raises(InputError, match="no demonstration is called 'B'"):
        act(agent, WORLD, "A + B", demos)
    with pytest.raises(InputError, match="too large"):
        act(agent, WORLD, "1" + "0" * 60 + "*A", demos, task="EatBread")


def test_the_tabletop():
    world = Tabletop(workers=1)
    agent = build("cpv-full", world.space, 16, key=jax.random.key(0))
    demos = {"A": "Stack(blue,red)", "B": "PlaceInBox(green)"}
    done = act(agent, world, "A + B", demos, seed=1)
    assert done.episode.task == ("Stack(blue,red)", "PlaceInBox(green)") and not done.episode.exact
    assert len(done.episode) == world.horizon([1, 1])
    judged = act(agent, world, "A", demos, seed=1, task="Stack(red,blue)")
    assert judged.episode.task == ("Stack(red,blue)",)


@pytest.mark.parametrize("world", [WORLD, make("tabletop")], ids=lambda world: world.name)
def test_a_demonstration_in_a_file(world, tmp_path):
    path, demo = tmp_path / "new" / "demo.safetensors", world.demonstrate(world.skills[:1], seed=4)
    save_demonstration(path, demo, world)
    again = load_demonstration(path, world)
    assert again.task == demo.task and [file.name for file in path.parent.iterdir()] == [path.name]
    for part in ("observations", "actions", "steps"):
        before, after = getattr(demo, part), getattr(again, part)
        assert jax.tree.structure(before) == jax.tree.structure(after)
        jax.tree.map(np.testing.assert_array_equal, before, after)


def test_observations_of_several_parts_in_a_file(tmp_path):
    def demonstrate(task, length=2):
        seen = {"image": np.ones((length + 1, 4, 4), np.uint8), "arm": (np.ones((length + 1, 3)), np.ones(length + 1))}
        return Demonstration(tuple(task), seen, np.zeros((length, 2)), seen)

    world = SimpleNamespace(name="own", fingerprint="1", skills=("Go", "Stop"), demonstrate=demonstrate)
    save_demonstration(tmp_path / "demo", demonstrate(["Stop", "Go"], length=5), world)
    again = load_demonstration(tmp_path / "demo", world)
    assert again.task == ("Stop", "Go") and again.observations["arm"][0].shape == (6, 3) and len(again) == 5


def test_files_that_are_no_demonstrations(tmp_path):
    path, other = tmp_path / "demo.safetensors", tmp_path / "other.safetensors"
    save_demonstration(path, WORLD.demonstrate("EatBread"), WORLD)
    content = path.read_bytes()
    for text, message in {
        content.replace(b'"crafting"', b'"tabletop"'): "in the world 'tabletop', not in 'crafting'",
        content.replace(WORLD.fingerprint.encode(), b"0" * 16): "other rules of 'crafting'",
        content.replace(b'"version":"1"', b'"version":"9"'): "has version 9",
        content.replace(b'"EatBread"', b'"EatTrees"'): "no skill is called 'EatTrees'",
        content.replace(b'"actions"', b'"motions"'): "is damaged",
        content[:1000]: "is not a demonstration",
        b"": "is not a demonstration",
        safetensors.numpy.save({"x": np.zeros(2)}): "holds something else",
    }.items():
        other.write_bytes(text)
        with pytest.raises(InputError, match=message):
            load_demonstration(other, WORLD)
    for missing, message in ((tmp_path / "none.safetensors", "there is no file"), (tmp_path, "is not a demonstration")):
        with pytest.raises(InputError, match=message):
            load_demonstration(missing, WORLD)
