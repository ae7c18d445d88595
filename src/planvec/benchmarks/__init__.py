"""Speed, measured side by side in one run: `planvec bench`.

A bench is a module with a function `run(batches, warn)`: it yields the rows that it measures, by default in batches of
the usual sizes, and tells `warn` what could not be measured, and why.
"""

from pathlib import Path

from planvec import worlds

FOLDER = Path(worlds.__file__).parent
BENCHES = {  # modules: of each world that has one beside its own code, and two of the program
    **{name: f"planvec.worlds.{name}.benchmark" for name in worlds.WORLDS if (FOLDER / name / "benchmark.py").exists()},
    "training": "planvec.benchmarks.training",
    "play": "planvec.benchmarks.play",
}
