import os

# Compilation is most of what the tests cost. Each of these flags halves it, and makes programs that are slower.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false")

from planvec.agents import encoders
from planvec.training import compilation, update

# The convolutions for large batches on a CPU are compared with the others in test_encoders.py; elsewhere the ones that
# compile sooner will do, and so will fewer validation samples.
encoders.LARGE = 1 << 30
update.VALIDATION = 2
compilation.keep_compiled_programs()
