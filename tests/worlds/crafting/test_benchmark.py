import jax

from planvec.worlds.crafting import benchmark, rivals


def rollout(batch, steps):
    """Of a world in which nothing happens."""
    return jax.jit(lambda key: key)


def test_every_row_of_crafting_is_measured_and_what_is_not_there_is_told(monkeypatch):
    monkeypatch.setattr(benchmark, "STEPS", 2)
    monkeypatch.setattr(benchmark, "POOL", 4)
    monkeypatch.setattr(rivals, "installed", lambda: [rivals.Rival("Stillness", "still 1.0", False, rollout)])
    monkeypatch.setattr(rivals, "missing", lambda: {"gone": "not installed; pip install gone"})
    notes = []
    rows = list(benchmark.run(batches=(4,), pairs=4, warn=notes.append))
    units = [*["steps/s"] * 4, "demonstrations/s", "pairs/s", "steps/s"]
    assert [row.unit for row in rows] == units and all(row.rate > 0 for row in rows)
    assert rows[-1].what == "Stillness (still 1.0)"
    assert notes == ["not compared with gone: not installed; pip install gone"]
