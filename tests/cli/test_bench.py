import json
import sys

import pytest

from planvec.benchmarks import BENCHES
from planvec.benchmarks.measure import Row
from planvec.cli import bench, main


@pytest.mark.parametrize("what", BENCHES)
def test_every_bench_measures_in_rows_and_tells_what_it_cannot(what, tmp_path, monkeypatch, capsys):
    def run(batches, warn):
        warn("not compared with [anything]")
        yield Row(f"{module} does", "steps/s", *batches, 1234.4)

    module = BENCHES[what]
    monkeypatch.setattr(bench, "attribute", lambda path, what: {module: run}[path])
    saved = tmp_path / "rows.json"
    monkeypatch.setattr(sys, "argv", ["planvec", "bench", what, "--batch", "7", "--json", str(saved)])
    main.main()
    printed = capsys.readouterr().out
    assert f"planvec bench {what}" in printed and "1,234 steps/s" in printed
    assert "not compared with [anything]" in printed
    written = json.loads(saved.read_text())
    assert written["rows"] == [{"what": f"{module} does", "unit": "steps/s", "batch": 7, "rate": 1234.4}]
    assert "commit" in written
