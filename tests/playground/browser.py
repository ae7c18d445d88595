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
    found = next(filter(None, map(shutil.which, NAMES)), None) or (MAC if Path(MAC).exists() else None)
    if found:
        return found
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def install() -> None:
    """With the system's packages where we may, else Playwright's own."""
    if shutil.which("apt-get"):
        root = [] if os.geteuid() == 0 else ["sudo", "-n"] if shutil.which("sudo") else None
        if root is not None and (_run(*root, *APT) or (_run(*root, "apt-get", "update") and _run(*root, *APT))):
            return
    _run(sys.executable, "-m", "playwright", "install", "chromium")


def _run(*command: str) -> bool:
    print(f"    {' '.join(command)}", flush=True)
    return subprocess.run(command, stdout=subprocess.DEVNULL).returncode == 0


if __name__ == "__main__":
    if not find():
        print("==> installing a browser for the playground's tests", flush=True)
        install()
    if not find():
        sys.exit(
            "error: the playground's tests need Chromium, which could not be installed. On Debian: apt install chromium"
        )
