"""The browser that the playground's tests drive: found, or installed. `make test` runs this file first."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
APT = ("apt-get", "install", "-y", "--no-install-recommends", "chromium")


def find() -> str | None:
    """The path of a Chromium: the system's, or the one that Playwright has downloaded."""
    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return next(filter(_works, [*map(shutil.which, NAMES), MAC, own]), None)


def _works(path: str | None) -> bool:
    """Whether there is a browser; some systems have a script in its place that only says how to get one."""
    return bool(path and Path(path).exists()) and _run(path, "--version", quiet=True)


def install() -> None:
    """With the system's packages where we may, else Playwright's own."""
    if shutil.which("apt-get"):
        root = [] if os.geteuid() == 0 else ["sudo", "-n"] if shutil.which("sudo") else None
        if root is not None and (_run(*root, *APT) or (_run(*root, "apt-get", "update") and _run(*root, *APT))):
            return
    _run(sys.executable, "-m", "playwright", "install", "chromium")


def _run(*command: str, quiet: bool = False) -> bool:
    if not quiet:
        print(f"    {' '.join(command)}", flush=True)
    silent = subprocess.DEVNULL if quiet else None
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=silent).returncode == 0


if __name__ == "__main__":
    if not find():
        print("==> installing a browser for the playground's tests", flush=True)
        install()
    if not find():
        sys.exit(
            "error: the playground's tests need Chromium, which could not be installed. On Debian: apt install chromium"
        )
