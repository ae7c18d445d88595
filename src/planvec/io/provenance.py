"""Where a figure comes from: written beside every result."""

import os
import platform
import subprocess
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax

PACKAGES = ("jax", "jaxlib", "equinox", "optax", "numpy", "mujoco", "vizdoom")


def provenance() -> dict[str, Any]:
    """The code, the hardware and the time of a measurement."""
    device = jax.devices()[0]
    return {
        "commit": commit(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": device.device_kind if device.platform != "cpu" else f"{_processor()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Of the packages that figures depend on, where they are installed."""
    found = {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def commit() -> str:
    """The commit of this source tree; PLANVEC_COMMIT where the tree travels without its history."""
    if named := os.environ.get("PLANVEC_COMMIT"):
        return named
    try:
        command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12"]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
