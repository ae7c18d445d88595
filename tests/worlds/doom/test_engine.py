import os

import numpy as np
import pytest

from planvec.worlds.doom.engine import Engine, halve
from planvec.worlds.doom.level import LEVELS, METRE, SCALE
from planvec.worlds.doom.motion import FORWARD, HEADINGS, LEFT, RIGHT, State, beginning, step

WALKS, STEPS = 60, 40
DEGREES = 360 / HEADINGS


@pytest.fixture(scope="module", params=LEVELS)
def level(request):
    return LEVELS[request.param]


@pytest.fixture(scope="module")
def engine(level):
    before = os.getcwd(), sorted(os.listdir())
    engine = Engine(level.name)
    yield engine
    assert before == (os.getcwd(), sorted(os.listdir()))
    engine.close()
    assert before == (os.getcwd(), sorted(os.listdir()))


@pytest.fixture(scope="module")
def walks(level):
    """States of walks that run into walls again and again, with the action done in each: [step, walk]."""
    rng = np.random.default_rng(0)
    agents = np.column_stack([rng.integers(SCALE, 7 * SCALE, (WALKS, 2)), rng.integers(HEADINGS, size=WALKS)])
    now = beginning(agents.astype(np.int32), rng.integers(SCALE, 7 * SCALE, (WALKS, 4, 2)).astype(np.int32))
    actions = rng.choice(3, size=(STEPS, WALKS), p=(0.3, 0.3, 0.4))
    states = [now]
    for row in actions:
        states.append(step(level, states[-1], row))
    return states, actions


def flat(states):
    return State(*(np.concatenate(part) for part in zip(*states, strict=True)))


@pytest.fixture
def walker(level):
    """An engine to walk in: having walked, the player's head goes up and down, which pictures show."""
    engine = Engine(level.name)
    yield engine
    engine.close()


def put(engine, x, y, heading):
    """Place the agent, the markers out of the way."""
    engine.draw(beginning(np.array([[x, y, heading]], np.int32), np.zeros((1, 4, 2), np.int32) - 4 * SCALE))


def test_the_engine_has_the_agent_where_the_state_says(engine, walks):
    states = flat(walks[0])
    for i in range(0, len(states.agent), 3):
        engine.draw(states.take(slice(i, i + 1)))
        x, y, angle = engine.pose()
        assert [x, y] == (states.agent[i, :2] * METRE / SCALE).tolist()
        assert angle == pytest.approx(DEGREES * states.agent[i, 2], abs=0.003)


def test_the_engine_itself_moves_as_we_do(walker, walks):
    """To a millimetre in the open; along walls both slide, where the engine is a little less exact."""
    states, after, actions = flat(walks[0][:-1]), flat(walks[0][1:]).agent, walks[1].ravel()
    buttons = {LEFT: [-DEGREES / 4, 0], RIGHT: [DEGREES / 4, 0], FORWARD: [0, 25]}
    apart = []
    for agent, action, (*place, heading) in zip(states.agent, actions, after.tolist(), strict=True):
        put(walker, *agent)
        walker.game.make_action(buttons[action], 4)
        x, y, angle = walker.pose()
        assert abs((angle - DEGREES * heading + 180) % 360 - 180) < 0.03
        apart.append(np.hypot(x / METRE - place[0] / SCALE, y / METRE - place[1] / SCALE))
    apart = np.array(apart)
    walked = np.hypot(*(after - states.agent)[:, :2].T) / SCALE
    free = (actions == FORWARD) & (walked > 0.999999)
    hindered = (actions == FORWARD) & ~free
    assert free.sum() > 250 and hindered.sum() > 250
    assert apart[actions != FORWARD].max() == 0 and apart[free].max() < 0.001
    assert np.median(apart[hindered]) < 0.02 and np.quantile(apart[hindered], 0.95) < 0.1


def test_pictures_depend_on_the_state_alone(engine, walks):
    states = flat(walks[0]).take(slice(0, None, 5))
    pictures = engine.draw(states)
    order = np.random.default_rng(0).permutation(len(pictures))
    np.testing.assert_array_equal(engine.draw(states.take(order)), pictures[order])
    assert pictures.shape[1:] == (60, 80, 3) and pictures.dtype == np.uint8
    assert len(np.unique(pictures.reshape(len(pictures), -1), axis=0)) > 0.5 * len(pictures)


def test_halving_takes_means():
    picture = np.random.default_rng(0).integers(0, 256, (3, 120, 160)).astype(np.uint8)
    blocks = picture.reshape(3, 60, 2, 80, 2).astype(int).sum(axis=(2, 4))
    np.testing.assert_array_equal(halve(picture), ((blocks + 2) // 4).transpose(1, 2, 0))


def ahead(number, metres):
    """One marker straight ahead, the others out of sight behind the agent."""
    markers = np.full((1, 4, 2), [1.0, 6.0])
    markers[0, number] = 2.5 + metres, 6.0
    agent = np.array([[2.5 * SCALE, 6 * SCALE, 0]], np.int32)
    return beginning(agent, np.rint(markers * SCALE).astype(np.int32))


@pytest.fixture(scope="module")
def open_engine():
    engine = Engine("open")
    yield engine
    engine.close()


def colour(pixels):
    """red, green, blue or yellow, where a pixel is clearly one of them; else grey or brown."""
    red, green, blue = pixels.astype(int).reshape(-1, 3).T
    found = {
        "A": (red > 120) & (green < 60) & (blue < 60),
        "B": (green > 90) & (green > 1.4 * red) & (green > 1.4 * blue),
        "C": (blue > 120) & (red < 60) & (green < 60),
        "D": (red > 150) & (green > 150) & (blue < 100),
    }
    return {name: int(mask.sum()) for name, mask in found.items()}


@pytest.mark.parametrize("metres", [2, 5, 8])
def test_markers_are_seen_and_told_apart(open_engine, metres):
    for number, name in enumerate("ABCD"):
        now = ahead(number, metres)
        seen = colour(open_engine.draw(now)[0])
        assert seen[name] >= 4 and max(seen, key=seen.get) == name
        assert sum(seen.values()) - seen[name] <= 0.1 * seen[name]
        now.visited[0, number] = True
        assert colour(open_engine.draw(now)[0])[name] == 0


def test_nothing_else_looks_like_a_marker(open_engine):
    rng = np.random.default_rng(0)
    agents = np.column_stack([rng.integers(SCALE, 11 * SCALE, (300, 2)), rng.integers(HEADINGS, size=300)])
    bare = State(agents.astype(np.int32), np.zeros((300, 4, 2), np.int32), np.ones((300, 4), bool))
    seen = colour(open_engine.draw(bare))
    assert max(seen.values()) < 20  # pixels of 300 images
