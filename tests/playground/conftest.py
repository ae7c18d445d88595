"""One playground for all tests of a process: the server in a thread, with the shipped agent and one more."""

import os
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import jax
import pytest
import uvicorn
from playground import browser as browsers
from playground.visitor import Visitor
from playwright.sync_api import expect, sync_playwright
from websockets.sync.client import connect

from planvec.agents import build
from planvec.io.checkpoints import save_json, save_tree
from planvec.playground import server
from planvec.playground.sharing import shared_worlds
from planvec.training.runs import CONFIG, WEIGHTS
from planvec.worlds.spaces import Images

expect.set_options(timeout=60_000)  # the first of everything is compiled
QUIET = ("--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update")


@pytest.fixture(scope="session")
def untrained(tmp_path_factory):
    """A run's folder of an agent that has learned nothing; of the shipped one's shape: compiled for both at once."""
    folder = tmp_path_factory.mktemp("runs") / "untrained"
    folder.mkdir()
    save_json(folder / CONFIG, {"config": {"agent": "cpv-full"}})
    save_tree(folder / WEIGHTS, build("cpv-full", Images((33, 30, 3), 6), key=jax.random.key(7)))
    return f"{folder}/"


@pytest.fixture(scope="session")
def playground(untrained):
    """The whole thing at an address of its own."""
    worlds = shared_worlds("crafting", [untrained])
    with server.listen(0) as listener:
        port = listener.getsockname()[1]
        app = server.make_app(worlds, port, "crafting")
        running = uvicorn.Server(server.config(app))
        thread = threading.Thread(target=running.run, args=([listener],))
        thread.start()
        yield SimpleNamespace(
            port=port,
            address=f"http://127.0.0.1:{port}",
            state=app.state,
            shared=worlds["crafting"],
            untrained=untrained,
        )
        running.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


@pytest.fixture
def visit(playground):
    """Connects as the page does; `origin` and `host` say otherwise."""

    @contextmanager
    def visit(origin=playground.address, host="127.0.0.1"):
        address = f"ws://{host}:{playground.port}/socket"
        with connect(address, origin=origin, open_timeout=20, compression=None, max_size=None) as socket:
            yield Visitor(socket)

    return visit


@pytest.fixture
def crafter(visit):
    """A visitor in the crafting world with two demonstrations on the shelf."""
    with visit() as visitor:
        visitor.world = visitor.ask(do="open", world="crafting")
        visitor.ask(do="demonstrate", name="A", task=["ChopTree"], seed=0)
        visitor.ask(do="demonstrate", name="B", task=["MakeBread", "EatBread"], seed=1)
        yield visitor


@pytest.fixture(scope="session")
def browser():
    path = browsers.find()
    assert path, "no Chromium: `make browser` finds or installs one"
    sandbox = ("--no-sandbox",) if os.geteuid() == 0 else ()
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=[*QUIET, *sandbox])
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(playground, browser):
    """Opens the playground in a browser of its own; a page that logs an error fails the test."""
    contexts, errors = [], []

    def open_page(hash="", script=None, route=None, **options):
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | options))
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        if script:
            page.add_init_script(script)
        if route:  # what goes between the page's WebSocket and the server
            page.route_web_socket("**/socket", route)
        page.goto(f"{playground.address}/{hash}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not errors
