"""Speed, measured side by side in one run: `planvec bench`.

A bench is a function `run(batches, warn)`: it yields the rows that it measures, by default in batches of the usual
sizes, and tells `warn` what could not be measured, and why.
"""

from planvec.worlds import registrations

BENCHES = {  # "module:function": of each world that has one beside its own code, and three of the program
    **{name: one.benchmark for name, one in registrations().items() if one.benchmark},
    "training": "planvec.benchmarks.training:run",
    "practice": "planvec.benchmarks.practice:run",
    "play": "planvec.benchmarks.play:run",
}
