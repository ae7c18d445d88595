import numpy as np
import pytest

from planvec.errors import InputError
from planvec.worlds import make
from planvec.worlds.tabletop import benchmark
from planvec.worlds.tabletop.world import Tabletop


def test_every_row_of_the_tabletop_is_measured(monkeypatch):
    monkeypatch.setattr(benchmark, "PICTURES", 4)
    rows = list(benchmark.run(batches=(4,), workers=(1, 2), demonstrations=4))
    per_second = "pick-and-places/s"
    units = [per_second, per_second, "×", per_second, "×", "demonstrations/s", "pictures/s"]
    assert [row.unit for row in rows] == units and all(row.rate > 0 for row in rows)
    alone, _, _, two, ratio = (row.rate for row in rows[:5])
    assert ratio == pytest.approx(two / alone) and rows[3].batch == 8


def test_where_nothing_can_be_drawn_the_tabletop_is_measured_all_the_same(monkeypatch):
    def blind(*_):
        raise InputError("no EGL")

    monkeypatch.setattr(Tabletop, "draw", blind)
    notes = []
    rows = list(benchmark.run(batches=(2,), workers=(1,), demonstrations=1, warn=notes.append))
    assert rows[-1].unit == "demonstrations/s" and notes == ["pictures were not measured: no EGL"]


def test_the_experts_actions_are_in_the_middle_of_things():
    states, actions = benchmark.expert_actions(make("tabletop"), 30)
    assert len(states) == len(actions) == 30 and len(np.unique(actions, axis=0)) == 30
