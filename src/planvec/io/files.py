"""Writing files so that a kill, a full disk or a Ctrl-C never leaves a half-written one behind."""

import contextlib
import os
from pathlib import Path

TEMPORARY = ".part"  # what a file is called until it is whole


def write(path: Path | str, content: bytes | str) -> None:
    """Write beside, then rename: `path` is either as it was or complete."""
    path = Path(path)
    part = path.with_name(path.name + TEMPORARY)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(part, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            part.unlink()
