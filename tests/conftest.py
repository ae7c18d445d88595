import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")  # compiles twice as fast

from planvec.agents import encoders
from planvec.training import compilation, update

# Compilation is most of what the tests cost. The convolutions for large batches on a CPU are compared with the
# others in test_encoders.py; elsewhere the ones that compile sooner will do, and so will fewer validation samples.
encoders.LARGE = 1 << 30
update.VALIDATION = 2
compilation.keep_compiled_programs()
