import pytest

from planvec.worlds.doom import benchmark


def test_every_row_of_doom_is_measured():
    rows = list(benchmark.run(batches=(4,), workers=(1, 2), demonstrations=4))
    actions = "actions/s"
    units = [actions, actions, actions, "×", actions, "×", "demonstrations/s", "images/s"]
    assert [row.unit for row in rows] == units and all(row.rate > 0 for row in rows)
    _, alone, _, _, two, ratio, *_ = (row.rate for row in rows)
    assert ratio == pytest.approx(two / alone) and rows[4].batch == 8
