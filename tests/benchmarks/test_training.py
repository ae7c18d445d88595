import jax
import pytest

from planvec.benchmarks import training
from planvec.data.pairs import PairSet
from planvec.training import losses
from planvec.training.config import Config
from planvec.training.update import start
from planvec.worlds import make

WORLD = make("crafting")
SHAPES = {  # rows, columns, kernel area, inputs, outputs of the layers after the first
    "conv2": (6, 5, 25, 16, 32),
    "conv3": (3, 3, 9, 32, 64),
    "conv4": (3, 3, 9, 64, 64),
    "linear": (1, 1, 1, 576, 512),
}


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def agent():
    return start(Config(agent="cpv-full").resolved()).agent


@pytest.fixture(scope="module")
def batch():
    tasks = [task for task in WORLD.sample_tasks((0,), 32, 1, 2) for _ in range(2)]
    demos = WORLD.record(tasks, (1,), 0.1)
    return PairSet.of(WORLD, WORLD.replay(demos), demos.actions, demos.lengths).sample(jax.random.key(0), 16)


def test_flops_of_a_sample(agent):
    after_the_first = sum(a * b * c * d * e for a, b, c, d, e in SHAPES.values())
    encoder, network = (11 * 10 * 9 * channels * 16 + after_the_first for channels in (6, 3))
    mlp = 1024 * 64 + 3 * 64 * 64 + 64 * 6
    assert training.flops(agent, WORLD.space.shape) == 3 * 2 * (4 * encoder + network + mlp) == 38_332_608


def test_the_peak_is_a_rate():
    assert training.matrix_peak(size=64) > 1e6


def test_the_model_in_torch_is_ours(torch, agent, batch):
    from planvec.benchmarks import torch_model

    model = torch_model.convert(agent)
    assert sum(weights.numel() for weights in model.parameters()) == torch_model.PARAMETERS
    theirs = model.loss(torch_model.ready(batch, "cpu", torch.float32)).item()
    ours, _ = losses.total(agent, batch, Config(agent="cpv-full").weights)
    assert theirs == pytest.approx(float(ours), abs=1e-3)


def test_torch_trains(torch, agent, batch, monkeypatch):
    """By updates of its own that make the loss of a batch fall."""
    from planvec.benchmarks import torch_model

    loss, seen = torch_model.CPV.loss, []

    def watched(model, sample):
        seen.append(loss(model, sample))
        return seen[-1]

    monkeypatch.setattr(torch_model.CPV, "loss", watched)
    torch_model.trainer(agent, [batch], "cpu", None, Config(batch=16).resolved())(10)
    assert len(seen) == 10 and seen[-1].item() < seen[0].item()


@pytest.mark.slow
def test_every_row_is_measured(monkeypatch):
    monkeypatch.setattr(training, "_updates", lambda batch: 2)
    monkeypatch.setattr(training, "matrix_peak", lambda: 1e9)
    monkeypatch.setattr(type(WORLD), "conditions", ("1",))
    monkeypatch.setattr(training, "_torch", lambda pairs, batch, warn: warn("no torch") or [])
    notes = []
    rows = list(training.run(batches=(8,), pairs=16, episodes=4, warn=notes.append))
    assert [row.unit for row in rows] == ["samples/s", "MFLOP", "TFLOP/s", "TFLOP/s", "% of that peak", "s"]
    assert all(row.rate > 0 for row in rows) and notes == ["no torch"]
    speed, work, achieved = rows[0].rate, rows[1].rate, rows[3].rate
    assert achieved == pytest.approx(speed * work / 1e6)
