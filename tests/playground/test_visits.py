"""What a visitor can ask for, and what comes of it."""

import base64
import json

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from playground.visitor import eventually, way_to

import planvec as pv
from planvec.errors import InputError
from planvec.evaluation.acting import act, sizes_of
from planvec.expressions import parse
from planvec.playground import maps, pictures, sharing, terms, visits
from planvec.playground.actors import Actor, Watched
from planvec.worlds import registrations
from planvec.worlds.crafting import render
from planvec.worlds.crafting.rules import CELLS, RULES, SIZE

AGENT = "crafting"


def test_a_world(crafter, playground):
    world = crafter.world
    assert world["is"] == "world" and world["skills"] == list(RULES.skills)
    assert world["agents"][0] == {"name": AGENT, "model": "potential"}
    assert world["agents"][-1] == {"name": playground.untrained, "model": "cpv-full"}


def test_a_demonstration_is_the_experts(crafter):
    answer = crafter.ask(do="demonstrate", name="C", task=["EatBread"], seed=5)
    demo = pv.make("crafting").demonstrate("EatBread", seed=5)
    assert answer["task"] == ["EatBread"] and len(answer["film"]) == len(demo) + 1
    assert answer["events"][-1] == "EatBread"


def test_what_an_agent_does_is_what_rollout_gives(crafter):
    """Whoever else is acting."""
    world, agent = pv.make("crafting"), pv.load("crafting")
    demos = {"A": world.demonstrate("ChopTree", seed=0), "B": world.demonstrate("MakeBread,EatBread", seed=1)}
    expected = act(agent, world, "A + B", demos, seed=3).episode
    _, [steps] = crafter.watch(plan="A + B", seed=3, agents=[AGENT])
    assert [step["event"] for step in steps if step["event"]] == list(expected.skills_done)
    assert len(steps) == len(expected) and steps[-1]["end"]["success"] == expected.success
    last = jax.tree.map(lambda leaf: leaf[-1:], expected.steps)
    assert steps[-1]["pictures"] == [pictures.still(world, last)]
    left = agent.read(agent.remaining(agent.plan(demos["A"]) + agent.plan(demos["B"]), expected.first, expected.last))
    assert np.allclose(steps[-1]["left"], list(left.counts.values()), atol=0.02)


def test_many_at_once_do_what_each_does_alone(visit, crafter):
    alone = [crafter.watch(plan="A", seed=seed, agents=[AGENT])[1][0] for seed in range(3)]
    with visit() as other:
        other.ask(do="open", world="crafting")
        other.ask(do="demonstrate", name="A", task=["ChopTree"], seed=0)
        runs = [one.ask(do="run", plan="A", seed=seed, agents=[AGENT]) for seed, one in enumerate((crafter, other))]
        for one, run in zip((crafter, other), runs, strict=True):
            one.tell(do="want", run=run["run"], upto=60)
        for seed, one in enumerate((crafter, other)):
            for step in alone[seed][:60]:
                assert one.hear()["pictures"] == step["pictures"]


def test_an_episode_goes_no_further_than_it_is_wanted(crafter, playground):
    begun = crafter.ask(do="run", plan="9*A + 9*B", seed=0, agents=[AGENT])
    [episode] = playground.shared.rounds.watchers
    crafter.tell(do="want", run=begun["run"], upto=5)
    assert [crafter.hear()["time"] for _ in range(5)] == [1, 2, 3, 4, 5]
    assert not eventually(lambda: episode.time != 5, seconds=0.3)
    crafter.tell(do="want", run=begun["run"], upto=10**6)
    assert eventually(lambda: episode.time == 5 + visits.AHEAD)
    crafter.tell(do="want", run=begun["run"] + 1, upto=10**6)
    assert not eventually(lambda: episode.time != 5 + visits.AHEAD, seconds=0.3)
    crafter.ask(do="read", plan="A", agent=AGENT)  # hears all that was sent
    crafter.tell(do="stop")
    assert eventually(lambda: not playground.shared.rounds.watchers)


def test_who_vanishes_leaves_nothing_running(visit, playground):
    with visit() as visitor:
        visitor.ask(do="open", world="crafting")
        visitor.ask(do="demonstrate", name="A", task=["ChopTree"], seed=0)
        begun = visitor.ask(do="run", plan="20*A", seed=0, agents=[AGENT, playground.untrained])
        visitor.tell(do="want", run=begun["run"], upto=60)
        assert len(playground.shared.rounds.watchers) == 2
        visitor.socket.socket.close()  # no goodbye
    assert eventually(lambda: not playground.shared.rounds.watchers and not playground.state.visitors)


def test_trouble_in_acting_ends_the_episode_and_nothing_else(crafter, playground, monkeypatch, caplog):
    def fail(episode):
        raise RuntimeError("broken")

    with monkeypatch.context() as patch:
        patch.setattr(Watched, "advance", fail)
        _, [[step]] = crafter.watch(plan="A", seed=0, agents=[AGENT])
    assert step["over"] and not step["end"]["success"] and "broken" in caplog.text
    _, [steps] = crafter.watch(plan="A", seed=0, agents=[AGENT])
    assert steps[-1]["end"]["success"]


def test_two_agents_act_in_the_same_scene(crafter, playground):
    begun, (trained, untrained) = crafter.watch(plan="B", seed=1, agents=[AGENT, playground.untrained])
    assert begun["stages"][0]["picture"] == begun["stages"][1]["picture"]
    assert trained[-1]["end"]["success"] and len(untrained) > len(trained)
    assert untrained[-1]["left"] is None  # it has no probe


def test_what_is_read_adds_up(crafter):
    crafter.ask(do="map", agent=AGENT)
    reading = crafter.ask(do="read", plan="2*A - B/2", agent=AGENT)
    assert reading["terms"] == [["A", 2.0], ["B", -0.5]] and reading["task"] == ["ChopTree", "ChopTree"]
    assert reading["counts"] == {"ChopTree": 2, "MakeBread": -0.5, "EatBread": -0.5}
    for part in ("counts", "place"):
        a, b, plan = (np.array(described[part]) for described in (*reading["parts"].values(), reading["plan"]))
        assert np.allclose(2 * a - b / 2, plan, atol=5e-3)
    assert np.allclose(reading["parts"]["B"]["counts"], [0, 0, 0, 1, 1], atol=0.5)


def test_terms_are_shown_as_they_are_written(crafter):
    def read(plan):
        return crafter.ask(do="read", plan=plan, agent=AGENT)

    assert read("A + B - A")["terms"] == [["A", 1], ["B", 1], ["A", -1]]
    assert read("-(A - 2*B)/4*2")["terms"] == [["A", -0.5], ["B", 1]]
    assert read("A + B + A + B + A")["terms"] == [["A", 1], ["B", 1]] * 2 + [["A", 1]]
    assert read("A + B + A + B + A - B")["terms"] == [["A", 3], ["B", 1]]  # too many to show one by one


def test_a_half_is_no_whole_skill(crafter):
    reading = crafter.ask(do="read", plan="A/2 + B/3 + B/3 + B/3", agent=AGENT)
    assert reading["counts"] == {"ChopTree": 0.5, "MakeBread": 1, "EatBread": 1}
    assert reading["task"] == ["MakeBread", "EatBread"]


def test_what_is_taken_away_could_have_been_done(crafter):
    """A difference is acted on in the same scene as the sum: what is left out, the agent leaves out."""
    crafter.ask(do="demonstrate", name="C", task=["ChopTree", "MakeBread", "EatBread"], seed=2)
    begun = {plan: crafter.ask(do="run", plan=plan, seed=0, agents=[AGENT]) for plan in ("A + B", "A + B - A", "C - A")}
    assert len({run["stages"][0]["picture"] for run in begun.values()}) == 1
    assert begun["C - A"]["task"] == begun["A + B - A"]["task"] == ["MakeBread", "EatBread"]
    assert begun["C - A"]["counts"] == {"ChopTree": 0, "MakeBread": 1, "EatBread": 1}
    assert crafter.ask(do="run", plan="65*A - 64*A", seed=0, agents=[AGENT])["task"] == ["ChopTree"]


@pytest.mark.parametrize("name", [name for name, one in registrations().items() if not one.variant])
def test_the_opening_examples_are_true(name, monkeypatch):
    """What the page suggests first, the shipped agent does, in the scene it opens with: no more and no less."""
    world = pv.make(name)
    actor, examples = Actor(pv.load(name), world), sharing.SharedWorld(name)
    examples.world = world
    examples = examples.examples
    demos = {
        letter: world.demonstrate(task, seed) for seed, (letter, task) in enumerate(zip("ABC", examples, strict=True))
    }
    plans = {letter: actor.plan(demo) for letter, demo in demos.items()}
    for text, asked in (("A + B", examples[2]), ("C - A", examples[1])):
        expression = parse(text)
        assert terms.wanted(expression, demos) == asked and terms.offered(expression, demos) == examples[2]
        plan, sizes = actor.combine(expression, plans), sizes_of(expression, demos)
        episode = actor.begin(plan, asked, examples[2], seed=0, sizes=sizes)
        while not episode.over:
            episode.advance()
        assert episode.success and episode.exact and not episode.extras, text
        episode.close()


def test_the_map_shows_each_skill_its_own_way(crafter, playground):
    answer = crafter.ask(do="map", agent=AGENT)["map"]
    assert len(answer["points"]) == len(answer["tasks"]) == maps.POINTS
    for number, skill in enumerate(RULES.skills):
        own = [point for task, point in zip(answer["tasks"], answer["points"], strict=True) if task == [skill]]
        x, y = np.mean(own, axis=0)
        assert np.degrees(np.arctan2(-y, -x)) == pytest.approx(maps.FAN + 40 * number, abs=15)
    without = crafter.ask(do="map", agent=playground.untrained)["map"]  # which has no probe
    assert np.abs(without["points"]).max() == pytest.approx(1)


def test_doom(visit):
    with visit() as visitor:
        world = visitor.ask(do="open", world="doom")
        assert world["skills"] == ["A", "B", "C", "D"] and world["agents"] == [{"name": "doom", "model": "cpv-full"}]
        for seed, (name, waypoint) in enumerate({"A": "A", "B": "C"}.items()):
            demo = visitor.ask(do="demonstrate", name=name, task=[waypoint], seed=seed)
            assert demo["events"][-1] == waypoint and len(demo["film"]) == len(demo["events"]) + 1
        begun, [steps] = visitor.watch(plan="A + B", seed=0, agents=["doom"])
        for refused in (dict(do="read", agent="doom"), dict(do="run", seed=0, agents=["doom"])):
            assert not world["twice"] and "twice" in visitor.ask(plan="2*A", **refused)["reason"]
        assert begun["task"] == ["A", "C"] and steps[-1]["end"]["success"]
        assert {"A", "C"} <= {step["event"] for step in steps} and np.allclose(steps[-1]["left"], 0, atol=0.5)


def test_a_plan_of_nothing_is_run_too(crafter):
    begun, [steps] = crafter.watch(plan="A - A", seed=0, agents=[AGENT])
    assert begun["task"] == [] and len(steps) < 5 < begun["horizon"]  # it says that nothing is left to do
    end = steps[-1]["end"]
    assert end["success"] == (not end["events"])


def test_a_demonstration_of_ones_own(crafter):
    """Walked key by key, and again from its address."""
    scene = crafter.ask(do="play", seed=4)
    assert scene["done"] == [] and "at least one skill" in crafter.ask(do="keep", name="C")["reason"]
    moves = way_to("bread", base64.b64decode(scene["picture"]))
    played = [crafter.ask(do="move", action=move) for move in moves]
    assert [answer["done"] for answer in played] == [[]] * (len(moves) - 1) + [["EatBread"]]
    kept = crafter.ask(do="keep", name="C")
    film = [frame["picture"] for frame in kept["film"]]
    assert kept["task"] == ["EatBread"] and film == [answer["picture"] for answer in (scene, *played)]
    again = crafter.ask(do="replay", name="D", seed=4, moves="".join(map(str, moves)))
    assert again["film"] == kept["film"]
    assert crafter.ask(do="read", plan="C - D", agent=AGENT)["task"] == []


MISTAKES = [
    ({"do": "fly"}, "nothing called 'fly'"),
    ({"do": 3}, "'do' is missing"),
    ({"do": "open", "world": "mars"}, "no world is called 'mars'"),
    ({"do": "demonstrate", "name": "AB", "task": ["ChopTree"], "seed": 0}, "a letter from A to Z"),
    ({"do": "demonstrate", "name": "C", "task": ["Fly"], "seed": 0}, "no skill is called 'Fly'"),
    ({"do": "demonstrate", "name": "C", "task": [], "seed": 0}, "choose 1 to 8 skills"),
    ({"do": "demonstrate", "name": "C", "task": ["EatBread"] * 9, "seed": 0}, "choose 1 to 8 skills"),
    ({"do": "demonstrate", "name": "C", "task": [["EatBread"]], "seed": 0}, "choose 1 to 8 skills"),
    ({"do": "demonstrate", "name": "C", "task": ["EatBread"], "seed": -1}, "a whole number from 0"),
    ({"do": "demonstrate", "name": "C", "task": ["EatBread"], "seed": 2**31}, "a whole number from 0"),
    ({"do": "demonstrate", "name": "C", "task": ["EatBread"], "seed": True}, "'seed' is missing, or not"),
    ({"do": "replay", "name": "C", "seed": 0, "moves": "01x"}, "a digit each"),
    ({"do": "replay", "name": "C", "seed": 0, "moves": "9"}, "numbered 0 to 5"),
    ({"do": "replay", "name": "C", "seed": 0, "moves": "0" * 301}, "300 actions at most"),
    ({"do": "move", "action": 0}, "begin a demonstration of your own first"),
    ({"do": "read", "plan": "A + Z", "agent": AGENT}, "no demonstration is called 'Z'"),
    ({"do": "read", "plan": "A + ", "agent": AGENT}, "found the end"),
    ({"do": "read", "plan": "A" * 501, "agent": AGENT}, "500 characters at most"),
    ({"do": "read", "plan": "1e9*A", "agent": AGENT}, "before 'e9'"),
    ({"do": "read", "plan": "99*A", "agent": AGENT}, "more than 64 skills; ask for fewer"),
    ({"do": "read", "plan": "A", "agent": "nobody"}, "no agent of crafting is called 'nobody'"),
    ({"do": "run", "plan": "A", "seed": 0, "agents": []}, "name one agent"),
    ({"do": "run", "plan": "A", "seed": 0, "agents": [AGENT] * 3}, "name one agent"),
    ({"do": "run", "plan": "A", "seed": 0, "agents": [1]}, "name one agent"),
    ({"do": "run", "plan": f"-{'9' * 44}*A", "seed": 0, "agents": [AGENT]}, "too large"),
    ({"do": "map", "agent": "nobody"}, "no agent"),
]


def test_mistakes(crafter):
    for message, reason in MISTAKES:
        answer = crafter.ask(**message)
        assert answer["is"] == "mistake" and reason in answer["reason"], message


def test_where_a_mistake_is(crafter):
    assert crafter.ask(do="read", plan="A + + B", agent=AGENT)["at"] == 4


def test_the_shelf_is_bounded(crafter):
    for letter in "CDEFGHIJKL":
        assert crafter.ask(do="demonstrate", name=letter, task=["EatBread"], seed=0)["is"] == "demonstration"
    assert "remove one first" in crafter.ask(do="demonstrate", name="M", task=["EatBread"], seed=0)["reason"]
    crafter.tell(do="forget", name="C")
    assert crafter.ask(do="demonstrate", name="M", task=["EatBread"], seed=0)["is"] == "demonstration"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
FIELDS = ("do", "number", "name", "task", "seed", "plan", "agent", "agents", "run", "upto", "moves", "action")
ORDERS = ("demonstrate", "replay", "forget", "play", "move", "keep", "read", "run", "want", "stop", "map", "fly")


@given(
    message=st.dictionaries(st.sampled_from(FIELDS), values, max_size=6) | values, what=st.sampled_from(ORDERS) | values
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_message_breaks_a_session(crafter, monkeypatch, message, what):
    monkeypatch.setattr(visits, "BURST", 10**6)
    monkeypatch.setattr(visits, "PER_SECOND", 10**6)
    sent = message | {"do": what} if isinstance(message, dict) else message
    crafter.socket.send(json.dumps(sent))
    assert crafter.ask(do="read", plan="A", agent=AGENT)["is"] == "meaning"


def test_an_unknown_world_and_a_run_that_is_none(tmp_path):
    with pytest.raises(InputError, match="no world is called 'mars'"):
        sharing.shared_worlds("mars")
    with pytest.raises(InputError, match="is not a run"):
        sharing.shared_worlds("crafting", runs=[f"{tmp_path}/"])


def test_the_sheet_puts_frames_together():
    """Layer over layer gives what `draw` draws."""
    cell = 32
    rng = np.random.default_rng(0)
    world = pv.make("crafting")
    for _ in range(3):
        cells = rng.integers(0, len(RULES.things), CELLS)
        agent, held = rng.integers(CELLS), rng.integers(len(RULES.things))
        state = world.scenes([RULES.skills], (0,))._replace(cells=cells, agent=agent, held=held)
        drawn = render.draw(RULES, state, cell)[: SIZE * cell]
        assert np.abs(assembled(render.sheet(RULES, cell), cell, state) - drawn).max() <= 2


def assembled(sheet, cell, state):
    def tile(row, column):
        return sheet[row * cell : (row + 1) * cell, column * cell : (column + 1) * cell].astype(float)

    board = np.zeros((SIZE * cell, SIZE * cell, 3))
    for number, lying in enumerate(state.cells):
        here = number == state.agent
        layers = [tile(0, render.GROUND[number]), tile(2 if here else 1, lying)]
        layers += [tile(4, 0), tile(3, state.held)] if here else []
        picture = np.zeros((cell, cell, 3))
        for layer in layers:
            alpha = layer[..., 3:] / 255
            picture = picture * (1 - alpha) + layer[..., :3] * alpha
        row, column = divmod(number, SIZE)
        board[row * cell : (row + 1) * cell, column * cell : (column + 1) * cell] = picture
    return board
