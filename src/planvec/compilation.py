"""Compiled programs are kept in the user's cache folder, so that a second start is fast."""

import os
from contextlib import suppress
from pathlib import Path

import jax


def keep_compiled_programs() -> None:
    """Point jax at the cache, unless the user has already chosen one (JAX_COMPILATION_CACHE_DIR; "" for none)."""
    if "JAX_COMPILATION_CACHE_DIR" in os.environ or jax.config.jax_compilation_cache_dir:
        return
    with suppress(RuntimeError):  # a user without a home has no cache
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        jax.config.update("jax_compilation_cache_dir", str(base / "planvec" / "compiled"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)  # many small programs add up
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
