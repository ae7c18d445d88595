"""Makes the pictures of the playground in docs/images: python docs/screenshots.py"""

import io
import os
import sys
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

from planvec.benchmarks.play import server

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from playground.browser import find  # noqa: E402

IMAGES = ROOT / "docs" / "images"
LAPTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
COLOURS = 256
BESIDE = "&beside=crafting-te-full"
DEMOS = "#world=crafting&A=ChopTree~0&B=MakeBread,EatBread~1&C=ChopTree,MakeBread,EatBread~2&scene=0"
SUM, DIFFERENCE = "&plan=A%20%2B%20B", "&plan=C%20-%20A"


def act(page: Page, ticks: int) -> None:
    """Let the agent act until so many skills are done."""
    expect(page.locator("#map .arrow")).to_have_count(4, timeout=120_000)
    page.get_by_role("button", name="Run").click()
    page.get_by_role("button", name="Pause").click()
    while page.locator(".left tr.done").count() < ticks:
        page.get_by_role("button", name="Step").click()


def shoot(page: Page, **options: bool) -> Image.Image:
    return Image.open(io.BytesIO(page.screenshot(**options))).convert("RGB")


def screens(page: Page) -> Image.Image:
    """What a phone shows, one screen beside the other."""
    shots = []
    for part in ("h1", "#plan", "#act"):
        page.locator(part).evaluate("element => scrollTo(0, element.getBoundingClientRect().top + scrollY - 12)")
        shots.append(np.asarray(shoot(page)))
    gap = np.full((shots[0].shape[0], 24, 3), 255, np.uint8)
    return Image.fromarray(np.concatenate([part for shot in shots for part in (gap, shot)][1:], axis=1))


def save(name: str, picture: Image.Image) -> None:
    picture.quantize(COLOURS).save(IMAGES / f"playground-{name}.png", optimize=True)


def main() -> None:
    path, sandbox = find(), ["--no-sandbox"] if os.geteuid() == 0 else []
    with server() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--disable-gpu", *sandbox])
        for name, size, scheme, ticks, plan in (
            ("light", LAPTOP, "light", 2, SUM),
            ("minus", LAPTOP, "light", 1, DIFFERENCE),
            ("dark", LAPTOP, "dark", 3, SUM + BESIDE),
            ("narrow", PHONE, "light", 2, SUM),
        ):
            page = browser.new_page(viewport=size, color_scheme=scheme, reduced_motion="reduce")
            page.goto(f"{address}/{DEMOS}{plan}")
            act(page, ticks)
            save(name, screens(page) if name == "narrow" else shoot(page, full_page=True))
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
