import pytest

from planvec.benchmarks import training, work
from planvec.worlds import make

WORLD = make("crafting")


@pytest.mark.slow
def test_every_row_is_measured(monkeypatch):
    monkeypatch.setattr(training, "_updates", lambda model, samples: 2)
    monkeypatch.setattr(work, "matrix_peak", lambda: 1e9)
    monkeypatch.setattr(type(WORLD), "conditions", ("1",))
    monkeypatch.setattr(training, "_torch", lambda model, pairs, batch, warn: warn(f"no torch for {model}") or [])
    notes = []
    rows = list(training.run(batches=(8,), pairs=16, episodes=4, warn=notes.append))
    of_model = ["samples/s", "MFLOP", "TFLOP/s", "% of that peak"]
    assert [row.unit for row in rows] == ["TFLOP/s", *2 * of_model, "s"]
    assert all(row.rate > 0 for row in rows) and notes == ["no torch for cpv-full", "no torch for potential"]
    for speed, work_in, achieved, _ in (rows[1:5], rows[5:9]):
        assert achieved.rate == pytest.approx(speed.rate * work_in.rate / 1e6)


def test_torch_that_does_not_compile_is_told_in_a_line(monkeypatch):
    """What can be measured without still is."""
    torch_training = pytest.importorskip("planvec.benchmarks.torch_training")
    trainer = torch_training.trainer

    def refuse(model, samples, device, mode, config):
        if mode:
            raise RuntimeError("no compiler")
        return trainer(model, samples, device, mode, config)

    monkeypatch.setattr(torch_training, "trainer", refuse)
    notes = []
    pairs = training.PairSet.fresh(WORLD, 4, (0,))
    [(what, program)] = training._torch("potential", pairs, 4, notes.append)
    assert "potential" in what and what.endswith("eager") and callable(program)
    [note] = notes
    assert "compiled" in note and note.endswith("RuntimeError: no compiler")
