import subprocess
import sys

IMPORT = """
import jax
before = dict(jax.config.values)
import planvec
changed = {name for name, value in jax.config.values.items() if before.get(name, value) != value}
assert not changed, changed
assert jax.config.jax_compilation_cache_dir is None
"""


def test_importing_planvec_changes_no_setting_of_jax(monkeypatch):
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    run = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert not run.stdout
