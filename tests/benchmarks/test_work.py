import jax
import pytest

from planvec.agents.encoders import Linear
from planvec.benchmarks import work
from planvec.benchmarks.measure import Row
from planvec.training.config import Config
from planvec.training.ppo import Learner
from planvec.training.update import start
from planvec.worlds import make

WORLD = make("crafting")
SHAPES = {  # of the paper's networks: rows, columns, kernel area, inputs, outputs of the layers after the first
    "conv2": (6, 5, 25, 16, 32),
    "conv3": (3, 3, 9, 32, 64),
    "conv4": (3, 3, 9, 64, 64),
    "linear": (1, 1, 1, 576, 512),
}
PLACES = 11 * 10  # of the residual policy, and its products: at each of them …
THERE = 3 * 3 * 3 * 64 + 6 * 2 * 9 * 64 * 64 + 2 * 64 * 8
READING = 64 * 64 + 6 * 64 * 64  # … of the plan …
BEHIND = 8 * 64 * 256 + 256 * 128 + 128 * (6 + 1)  # … and of the layers and the head
RESIDUAL = PLACES * THERE + READING + BEHIND


def agent_of(name):
    config = Config(agent=name).resolved()
    return start(config).agent, config.weights


@pytest.fixture(scope="module")
def seen():
    return work.outline(WORLD, WORLD.demonstrate(["ChopTree"], seed=0).steps)


@pytest.fixture(scope="module")
def potential():
    return agent_of("potential")


def test_what_is_seen_is_a_picture_of_tiles(seen):
    assert seen.shape == WORLD.space.shape and seen.tiles.shape == (11, 10)


def test_work_of_the_papers_networks(seen):
    after_the_first = sum(a * b * c * d * e for a, b, c, d, e in SHAPES.values())
    encoder, network = (11 * 10 * 9 * channels * 16 + after_the_first for channels in (6, 3))
    mlp = 1024 * 64 + 3 * 64 * 64 + 64 * 6
    assert work.of_sample(*agent_of("cpv-full"), seen) == 3 * 2 * (4 * encoder + network + mlp) == 38_332_608


def test_work_of_a_residual_policy_and_a_potential(seen, potential):
    """g of three segments, that of both ends a product with the table of all tiles."""
    tables = 3 * 2 * len(seen.atlas) * 64
    assert work.of_sample(*potential, seen) == 3 * 2 * (tables + RESIDUAL)


def test_work_of_a_step_of_practice(seen, potential):
    """g takes part in acting alone, with one segment."""
    agent, _ = potential
    learner = Learner(agent, Linear(128, 1, key=jax.random.key(0)))
    assert work.of_acting(learner, seen) == 2 * (RESIDUAL + 128 + 2 * len(seen.atlas) * 64)
    assert work.of_learning(learner, seen) == 3 * 2 * (RESIDUAL + 128)


def test_the_peak_is_a_rate():
    assert work.matrix_peak(size=64) > 1e6


def test_shares_of_the_peak():
    rows = work.against_peak(Row("it", "steps/s", 8, 200.0), flops=5e9, peak=4e12)
    assert [*rows] == [Row("it", "TFLOP/s", 8, 1.0), Row("it", "% of that peak", 8, 25.0)]
