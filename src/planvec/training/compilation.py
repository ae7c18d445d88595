"""How programs are compiled, and that they are kept in the user's cache folder, so that a second start is fast."""

import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import jax


def keep_compiled_programs() -> None:
    """Point jax at the cache, unless the user has already chosen one (JAX_COMPILATION_CACHE_DIR; "" for none).

    A setting of the whole process: for programs to call when they start, not for a library.
    """
    chosen = jax.config.jax_compilation_cache_dir  # pyright: ignore[reportAttributeAccessIssue]: jax makes it by name
    if "JAX_COMPILATION_CACHE_DIR" in os.environ or chosen:
        return
    with suppress(RuntimeError):  # a user without a home has no cache
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        jax.config.update("jax_compilation_cache_dir", str(base / "planvec" / "compiled"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)  # many small programs add up
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)


CONCURRENT = {"xla_gpu_command_buffer_scheduling_mode": "CONCURRENT"}  # XLA's own names
DETERMINISTIC = {"xla_gpu_deterministic_ops": True}


def options(deterministic: bool = False) -> dict[str, Any]:
    """For programs of many small kernels: on a GPU, those that do not wait for each other run at the same time.

    `deterministic`: there, the same bits every time. Other devices pass over all of it.
    """
    return (CONCURRENT if _knows_concurrent() else {}) | (DETERMINISTIC if deterministic else {})


@cache
def _knows_concurrent() -> bool:
    """Whether this version of XLA still has that option; it is as right, and slower, without."""
    try:
        jax.jit(lambda x: x, compiler_options=CONCURRENT).lower(0.0).compile()
    except RuntimeError:
        return False
    return True
