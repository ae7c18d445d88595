import numpy as np
import pytest

from planvec.tables import reporting

ROWS = [
    {
        "agent": "cpv-full",
        "seed": seed,
        "condition": "4",
        "success": success,
        "exact": 0.1,
        "stops": 0.05,
        "episodes": 9,
    }
    for seed, success in enumerate((0.2, 0.4))
]


def test_means_and_deviations():
    assert reporting.cell({"rows": ROWS}, "cpv-full", "4") == pytest.approx((30, 200**0.5, 2))
    assert reporting.cell({"rows": ROWS[:1]}, "cpv-full", "4") == pytest.approx((20, np.nan, 1), nan_ok=True)
    assert reporting.cell({"rows": ROWS}, "cpv-full", "8") == pytest.approx((np.nan, np.nan, 0), nan_ok=True)


def test_success_stands_beside_the_papers_and_exact_and_stops_alone():
    several = reporting.markdown({"world": "crafting", "rows": ROWS})
    assert "| cpv-full | 2 | 30 ± 14 (73) |" in several and "| cpv-full | 2 | 10 ± 0 |" in several
    assert "| cpv-full | 2 | 5 ± 0 |" in several
    one = reporting.markdown({"world": "crafting", "rows": ROWS[:1]})
    assert "| cpv-full | 1 | 20 (73) |" in one  # one seed has no deviation
    control = [row | {"agent": "cpv-full, reference of another task"} for row in ROWS[:1]]
    assert "| cpv-full, reference of another task | 1 | 20 |" in reporting.markdown(
        {"world": "crafting", "rows": control}
    )


def test_a_cell_that_was_not_measured_is_empty():
    rows = [*ROWS, ROWS[0] | {"agent": "naive", "condition": "8"}]
    table = reporting.markdown({"world": "crafting", "rows": rows})
    assert "| model | seeds | 4 | 8 |" in table and "| naive | 1 |  | 20 (9) |" in table
    assert table.index("| naive") < table.index("| cpv-full")  # the paper's order


def test_episodes_that_broke_down_are_told():
    rows = [row | {"diverged": 1 / 3} for row in ROWS]
    assert "broke down in 6 episodes" in reporting.markdown({"world": "crafting", "rows": rows})
    assert "broke down" not in reporting.markdown({"world": "crafting", "rows": ROWS})
