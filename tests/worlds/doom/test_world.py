import subprocess
import sys
from collections import Counter

import jax
import numpy as np
import pytest
from PIL import Image

from planvec.agents import build
from planvec.cli import main
from planvec.data import folders
from planvec.data.folders import Recipe, collect
from planvec.errors import InputError
from planvec.evaluation.scores import evaluate
from planvec.tasks import encode_tasks
from planvec.worlds import make, registrations, retrying
from planvec.worlds.doom import world
from planvec.worlds.doom.attempts import DONE, EXTRAS, FAILED, attempt
from planvec.worlds.doom.expert import choose
from planvec.worlds.doom.level import SCALE, WAYPOINTS
from planvec.worlds.doom.motion import FORWARD, LEFT, State, waypoints
from planvec.worlds.doom.pool import Pool
from planvec.worlds.doom.world import HORIZONS, Doom
from planvec.worlds.protocol import is_hosted
from planvec.worlds.spaces import View
from planvec.worlds.trials import make_trial

WORLD = make("doom")
TASKS = [("A",), ("C", "B"), ("D", "A", "C"), ("B",), ("A", "D"), ("B", "C", "D")]


@pytest.fixture(scope="module", autouse=True)
def engines():
    yield
    WORLD.close()


@pytest.fixture(scope="module")
def recording():
    return WORLD.record(TASKS, (0,), noise=0.1)


@pytest.fixture(scope="module")
def steps(recording):
    return WORLD.replay(recording)


def test_what_it_says_of_itself():
    assert is_hosted(WORLD) and WORLD.name == "doom" and WORLD.skills == ("A", "B", "C", "D")
    assert WORLD.space == View(image=(60, 80, 3), waypoints=4, actions=3)
    assert WORLD.conditions == ("1", "2", "1+1", "2+2") and WORLD.sizes == (1, 3)
    rooms, blind = Doom("rooms"), Doom(flags=False)
    assert rooms.fingerprint != WORLD.fingerprint == blind.fingerprint  # flags are observed, not stored
    assert (rooms.name, blind.name) == ("doom-rooms", "doom-noflags")
    for name in ("doom", "doom-rooms", "doom-noflags"):
        assert make(name).name == name
    assert make("doom-rooms").level is rooms.level and not make("doom-noflags").flags


def test_horizons():
    for level, horizons in HORIZONS.items():
        there = Doom(level)
        assert [there.horizon([size]) for size in (1, 2, 3, 4)] == list(horizons)
        assert there.horizon([2, 2]) == horizons[3] and there.horizon([1, 1]) == horizons[1]


def test_tasks_are_distinct_waypoints():
    tasks = WORLD.sample_tasks((0,), 3000, 1, 3)
    assert tasks == WORLD.sample_tasks((0,), 3000, 1, 3) != WORLD.sample_tasks((1,), 3000, 1, 3)
    assert all(len(set(task)) == len(task) for task in tasks)
    assert {size: round(count / 300) for size, count in Counter(map(len, tasks)).items()} == {1: 3, 2: 3, 3: 3}
    assert len(set(tasks)) == 4 + 12 + 24


@pytest.mark.parametrize("sizes", [(1,), (2,), (1, 1), (2, 2), (1, 1, 1), (3, 1)])
def test_parts_of_sums_are_disjoint(sizes):
    parts = WORLD.sample_parts((0, 2), 200, sizes)
    assert [{len(task) for task in part} for part in parts] == [{size} for size in sizes]
    for tasks in zip(*parts, strict=True):
        assert len({name for task in tasks for name in task}) == sum(sizes)
    assert parts == WORLD.sample_parts((0, 2), 200, sizes) != WORLD.sample_parts((1, 2), 200, sizes)
    assert len(set(parts[0])) > 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: WORLD.sample_tasks((0,), 5, 1, 5), "too many"),
        (lambda: WORLD.sample_parts((0,), 5, (3, 2)), "too many"),
        (lambda: WORLD.horizon((4, 1)), "too many"),
        (lambda: WORLD.record([("A", "B", "A")], (0,)), "'A,B,A' asks for one twice"),
        (lambda: WORLD.record([("A",)], (0,), noise=1.5), "noise"),
        (lambda: WORLD.record([("A",)], (0,), extras="some"), "extras"),
        (lambda: WORLD.record([("A",)], (-1,)), "seed"),
        (lambda: WORLD.demonstrate("A,A"), "twice"),
        (lambda: WORLD.asked([("A",), ("B", "B")]), "'B,B' asks for one twice"),
        (lambda: WORLD.demonstrate("E"), "there are A, B, C, D"),
        (lambda: Doom("cellar"), "open and rooms"),
        (lambda: Doom(workers=0).pool, "at least one"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_recordings_are_compact(recording):
    assert recording.actions.dtype == np.uint8 and set(recording.actions) == {0, 1, 2}
    assert recording.lengths.sum() == len(recording.actions) and recording.lengths.dtype == np.int32
    assert {name: (part.dtype, part.shape[1:]) for name, part in recording.stored.items()} == {
        "agent": (np.int32, (3,)),
        "markers": (np.int32, (4, 2)),
    }
    assert (recording.attempts[:, DONE] == 1).all() and not recording.attempts[:, FAILED].any()
    assert (recording.extras == 0).all()


def test_a_demonstration_depends_on_its_seed_and_number_alone(recording):
    told = []
    again = WORLD.record(TASKS[:3], (0,), 0.1, progress=told.append)
    np.testing.assert_array_equal(again.stored["agent"], recording.stored["agent"][:3])
    np.testing.assert_array_equal(again.actions, recording.actions[: len(again.actions)])
    assert told[-1] == 3
    alone, beside = (WORLD.record([("A",), *others], (0,), 0.1) for others in ([], [("A", "B", "C")]))
    np.testing.assert_array_equal(alone.actions, beside.actions[: beside.lengths[0]])
    assert not np.array_equal(WORLD.record(TASKS[:1], (1,)).stored["agent"], recording.stored["agent"][:1])


def test_blocks_make_no_difference(recording, monkeypatch):
    monkeypatch.setattr(retrying.keep_trying, "__defaults__", (2,))
    for one, other in zip(jax.tree.leaves(WORLD.record(TASKS, (0,), 0.1)), jax.tree.leaves(recording), strict=True):
        np.testing.assert_array_equal(one, other)


def test_extras_are_discarded_or_kept():
    tasks = [("A",)] * 300
    kept, discarded = (WORLD.record(tasks, (3,), 0.1, extras) for extras in ("keep", "discard"))
    assert kept.attempts[:, EXTRAS].sum() == 0 and (kept.extras > 0).sum() > 10
    assert discarded.attempts[:, EXTRAS].sum() >= (kept.extras > 0).sum() and not discarded.extras.any()
    clean = kept.extras == 0
    np.testing.assert_array_equal(kept.stored["agent"][clean], discarded.stored["agent"][clean])


def test_what_cannot_be_done_is_an_error(monkeypatch):
    def lazy(*arguments):
        made = attempt(*arguments)
        return made._replace(status=np.full_like(made.status, FAILED))

    monkeypatch.setattr(world, "attempt", lazy)
    with pytest.raises(InputError, match="failed 50 times at B"):
        WORLD.record([("B",)], (0,))


def test_replay(recording, steps):
    total = recording.lengths.sum() + len(TASKS)
    assert steps["image"].shape == (total, 60, 80, 3) and steps["image"].dtype == np.uint8
    assert steps["waypoints"].shape == (total, 4, 3) and steps["waypoints"].dtype == np.float32
    np.testing.assert_array_equal(steps["waypoints"], waypoints(steps["state"]))
    seen = WORLD.decode(steps)
    assert set(seen) == {"image", "waypoints"} and seen["image"] is steps["image"]
    np.testing.assert_array_equal(seen["waypoints"], steps["waypoints"])
    told = []
    again = WORLD.replay(recording, told.append)
    np.testing.assert_array_equal(again["image"], steps["image"])
    assert told[-1] == total


def test_ends(recording, steps):
    first, last, asked = WORLD.ends(recording)
    ends = np.cumsum(recording.lengths + 1) - 1
    for name in ("image", "waypoints"):
        np.testing.assert_array_equal(first[name], steps[name][ends - recording.lengths])
        np.testing.assert_array_equal(last[name], steps[name][ends])
    np.testing.assert_array_equal(asked, WORLD.asked(TASKS))
    assert asked.dtype == WORLD.asked(TASKS).dtype == np.int32
    assert (first["waypoints"][..., 2] == 1).all()
    np.testing.assert_array_equal(last["waypoints"][..., 2], 1 - asked)


def test_without_flags(recording, steps):
    """Hidden wherever an agent looks: in training, at the ends of references, in episodes."""
    blind = Doom(flags=False, workers=1)
    ends = np.cumsum(recording.lengths + 1) - 1
    try:
        _, last, _ = blind.ends(recording)
        with blind.start(steps["state"].take(ends)) as session:
            now = session.observe()
    finally:
        blind.close()
    decoded = jax.tree.map(lambda leaf: leaf[ends], blind.decode(steps))
    for seen in (decoded, last, now):
        np.testing.assert_array_equal(seen["image"], steps["image"][ends])
        np.testing.assert_array_equal(seen["waypoints"][..., :2], steps["waypoints"][ends, :, :2])
        assert not seen["waypoints"][..., 2].any()


def test_events_are_the_task_in_order(recording, steps):
    begin = 0
    for task, length in zip(TASKS, recording.lengths, strict=True):
        mine = jax.tree.map(lambda leaf, begin=begin, end=begin + length + 1: leaf[begin:end], steps)
        events = WORLD.events(mine, recording.actions[:length])
        assert len(events) == length and sorted(filter(None, events)) == sorted(task) and events[-1] in task
        assert events == WORLD.events(mine["state"], recording.actions[:length])
        begin += length + 1


def test_demonstrate():
    demo = WORLD.demonstrate(["a", "D"], seed=4)
    assert demo.task == ("A", "D") and isinstance(demo.steps, State)
    assert demo.observations["image"].shape == (len(demo) + 1, 60, 80, 3)
    assert demo.first["waypoints"][:, 2].tolist() == [1, 1, 1, 1] and demo.last["waypoints"][:, 2].tolist() == [
        0,
        1,
        1,
        0,
    ]
    again = WORLD.demonstrate("A,D", seed=4)
    np.testing.assert_array_equal(again.observations["image"], demo.observations["image"])


def test_episodes():
    tasks = [("A", "B"), ("C",), ("D", "A")]
    asked, scenes = WORLD.asked(tasks), WORLD.scenes(tasks, (7,))
    with WORLD.start(scenes) as session:
        first = session.observe()
        assert session.observe() is first and first["image"].shape == (3, 60, 80, 3)
        assert [part.tolist() for part in session.judge(asked)] == [[False] * 3, [True] * 3]
        done = np.zeros(3, bool)
        for _ in range(WORLD.horizon([2])):
            left = asked.astype(bool) & ~session.steps().visited
            actions = choose(WORLD.level, session.steps(), left.argmax(axis=1))
            assert session.step(actions, np.ones(3, bool)).all()
            done |= session.judge(asked)[0]
        assert done.all() and session.observe() is not first
        np.testing.assert_array_equal(session.judge(asked * 2)[0], done)  # as often as it is asked for
        visited = session.steps().visited
        np.testing.assert_array_equal(session.judge(asked)[1], ~(visited & ~asked.astype(bool)).any(axis=1))
    np.testing.assert_array_equal(scenes.agent, WORLD.scenes(tasks, (7,)).agent)  # scenes are not changed by acting


def test_a_waypoint_that_was_not_asked_for_is_done_besides():
    asked, scenes = WORLD.asked([("A",), ("A", "B"), ("B",), ()]), WORLD.scenes([()] * 4, (7,))
    there = scenes._replace(visited=np.array([[True, False, True, False]] * 4))  # A and C
    done, clean = WORLD.start(there).judge(asked)
    assert done.tolist() == [True, False, False, True] and not clean.any()
    done, clean = WORLD.start(there).judge(WORLD.asked([("A", "C"), ("C", "A", "D"), ("C",), ("B",)]))
    assert done.tolist() == [True, False, True, False] and clean.tolist() == [True, True, False, False]


def test_what_rests_is_not_drawn_again(monkeypatch):
    draw, drawn = Pool.draw, []
    monkeypatch.setattr(Pool, "draw", lambda self, states: drawn.append(len(states.agent)) or draw(self, states))
    scenes, going = WORLD.scenes([("A",)] * 3, (7,)), np.array([True, False, True])
    with WORLD.start(scenes) as session, WORLD.start(scenes) as whole:
        first = session.observe()
        before = first["image"].copy()
        assert session.step(np.full(3, FORWARD), going).all() and session.step(np.full(3, LEFT), going).all()
        now = session.observe()
        assert session.observe() is now and drawn == [3, 2]
        np.testing.assert_array_equal(first["image"], before)
        for action in (FORWARD, LEFT):
            whole.step(np.full(3, action), np.ones(3, bool))
        for name, seen in whole.observe().items():
            np.testing.assert_array_equal(now[name][going], seen[going])
            np.testing.assert_array_equal(now[name][1], first[name][1])


def test_trials():
    trial = make_trial(WORLD, [[("A", "C")] * 4, [("B", "D")] * 4], seed=0)
    assert trial.horizon == HORIZONS["open"][3] and trial.wanted.tolist() == [[1, 1, 1, 1]] * 4
    assert trial.scenes.agent.shape == (4, 3) and len(trial.shown) == 2


def test_agents_are_scored():
    """Two at once, on sums; naive's plans are observations of two parts."""
    agents = [build("naive", WORLD.space, key=jax.random.key(seed)) for seed in (0, 1)]
    trial = make_trial(WORLD, [[("A",)] * 3, [("B",)] * 3], seed=0)._replace(horizon=2)
    scores = evaluate(agents, WORLD, trial, greedy=True)
    assert [(score.success, score.episodes, score.horizon) for score in scores] == [(0, 3, 2)] * 2


def test_pictures(steps):
    picture = WORLD.draw(jax.tree.map(lambda leaf: leaf[0], steps))
    assert picture.shape == (240, 320 + 8 + 240, 3) and picture.dtype == np.uint8
    state = State(*(part[0] for part in steps["state"]))
    np.testing.assert_array_equal(WORLD.draw(state), picture)
    plan = picture[:, 328:].reshape(-1, 3)
    for colour in ((255, 0, 0), (103, 223, 95), (0, 0, 255), (255, 235, 0)):
        assert (plan == colour).all(axis=1).sum() > 20


def test_films():
    demo = WORLD.demonstrate("B", seed=1)
    frames = list(WORLD.film(demo.steps, demo.actions))
    assert [time for time, _ in frames] == list(range(len(demo) + 1))
    assert len({frame.shape for _, frame in frames}) == 1
    np.testing.assert_array_equal(frames[0][1], WORLD.draw(State(*(part[0] for part in demo.steps))))


def test_rooms():
    rooms = Doom("rooms", workers=1)
    try:
        demo = rooms.demonstrate("A,B,C,D", seed=1)
        assert demo.last["waypoints"].max() == 0 and demo.steps.agent[:, :2].max() / SCALE > 12
        assert rooms.draw(State(*(part[0] for part in demo.steps))).shape == (240, 568, 3)
    finally:
        rooms.close()


RECIPE = Recipe(world="doom", pairs=10, skills=(1, 3), noise=0.1, extras="discard", seed=0)


def test_collecting_and_loading(tmp_path, monkeypatch):
    monkeypatch.setattr(Doom, "shard", 4)
    header = collect(RECIPE, tmp_path / "data", WORLD)
    assert len(header["shards"]) == 3
    assert sum(path.stat().st_size for path in tmp_path.glob("data/*.safetensors")) < 10 * 200 + 3 * 1000
    told = []
    pairs = folders.load(tmp_path / "data", WORLD, lambda replayed, total: told.append((replayed, total)))
    assert told[0] == (0, len(pairs.steps["image"])) and told[-1] == (told[0][1],) * 2
    batch = pairs.sample(jax.random.key(0), 8)
    assert len(pairs) == 10 and set(batch.now) == {"image", "waypoints"}
    assert batch.now["image"].shape == (8, 60, 80, 3) and batch.now["image"].dtype == np.uint8
    begin = 0
    for demos, tasks in folders.read_shards(tmp_path / "data", header):
        both = [task for task in tasks for _ in range(2)]
        np.testing.assert_array_equal(WORLD.ends(demos)[2], WORLD.asked(both))
        assert encode_tasks(both, WAYPOINTS).max() <= 3
        alone = WORLD.replay(demos)  # all shards are loaded as each by itself
        end = begin + len(alone["image"])
        for name in ("image", "waypoints"):
            np.testing.assert_array_equal(pairs.steps[name][begin:end], alone[name])
        begin = end
    assert begin == len(pairs.steps["image"])


def test_a_contact_sheet_draws_no_more_than_it_shows(recording, steps):
    some = recording.take(slice(2))
    count = recording.lengths[:2].sum() + 2
    np.testing.assert_array_equal(WORLD.replay(some)["image"], steps["image"][:count])
    assert len(recording.take(slice(100)).lengths) == len(TASKS)


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["planvec", *map(str, arguments)])
    main.main()


def test_on_the_command_line(tmp_path, monkeypatch, capsys):
    run(monkeypatch, "collect", "doom", "--pairs", 2, "--out", tmp_path / "data")
    run(monkeypatch, "collect", "--inspect", tmp_path / "data")
    assert "tasks of 1 to 3 skills" in capsys.readouterr().out
    assert (tmp_path / "data" / "contact_sheet.png").stat().st_size > 10_000
    run(monkeypatch, "render", "doom", "--task", "A", "--gif", tmp_path / "out.gif")
    with Image.open(tmp_path / "out.gif") as gif:
        assert gif.n_frames > 3
    with pytest.raises(SystemExit) as stop:
        run(monkeypatch, "render", "doom", "--task", "A,A", "--gif", tmp_path / "no.gif")
    assert stop.value.code == 2 and not (tmp_path / "no.gif").exists()


WITHOUT_VIZDOOM = """
import sys
sys.modules["vizdoom"] = None
import gymnasium, planvec
from planvec.cli.listing import Worlds
for make in (lambda: planvec.make("doom"), lambda: gymnasium.make("planvec/Doom-v0"), lambda: planvec.load("doom")):
    try:
        make()
    except planvec.InputError as error:
        print(error)
Worlds().run()
"""


def test_vizdoom_is_needed_only_when_it_is_made():
    done = subprocess.run([sys.executable, "-c", WITHOUT_VIZDOOM], capture_output=True, text=True)
    listed = [name for name in registrations() if name.startswith("doom")]
    assert done.returncode == 0 and done.stdout.count("'planvec[doom]'") == 3 + len(listed), done.stderr
