"""The playground's server: a page, and a WebSocket for each visitor. On loopback only, for its own page only."""

import asyncio
import json
import logging
import socket
import threading
import webbrowser
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import resources

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from planvec.errors import InputError
from planvec.playground.sharing import SharedWorld, shared_worlds
from planvec.playground.visits import TooMany, Visit

HOST = "127.0.0.1"
VISITORS = 32  # at once
IDLE = 30 * 60  # seconds without a message, after which a visitor is sent away
WAITING = 400  # answers that wait to be sent; a page that reads none of them is sent away
LARGEST = 16 * 1024  # bytes of a message
POLICY = 1008  # why a WebSocket is closed
TRY_LATER = 1013
WRONG = 1011
BAD_DATA = 1003

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
CONTENT = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self' {socket}; "
NOWHERE = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}

log = logging.getLogger(__name__)


class Guard:
    """Lets nothing in but what the page itself asks for at its own address; all answers have strict headers."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self.app = app
        self.hosts = {f"{host}:{port}" for host in (HOST, "localhost")} | ({HOST, "localhost"} if port == 80 else set())
        self.origins = {f"http://{host}" for host in self.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        hosts = _all(scope, b"host")
        origins = _all(scope, b"origin")
        ours = len(hosts) == 1 and hosts[0].lower() in self.hosts and set(origins) <= self.origins
        if scope["type"] == "websocket":
            if ours and origins:
                await self.app(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": POLICY, "reason": "this is not the playground's page"})
            return
        headers = HEADERS | {"content-security-policy": self._policy(hosts[0] if ours else HOST)}
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *encoded]
            await send(message)

        answer = self.app if ours else Response("this address is not the playground's", 403, media_type="text/plain")
        await answer(scope, receive, send_guarded)

    def _policy(self, host: str) -> str:
        return CONTENT.format(socket=f"ws://{host}") + NOWHERE


def _all(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def make_app(worlds: Mapping[str, SharedWorld], port: int, world: str) -> Starlette:
    """The playground at a port; `world` is made ready while the first page is on its way."""
    visitors: set[Visit] = set()

    async def receive_visitor(websocket: WebSocket) -> None:
        await websocket.accept()
        if len(visitors) >= VISITORS:
            await websocket.close(TRY_LATER, "too many pages are open; close one, and reload")
            return
        outbox: asyncio.Queue[str] = asyncio.Queue(WAITING)
        visit = Visit(worlds, _sender(outbox))
        visitors.add(visit)
        try:
            await _converse(websocket, visit, outbox)
        finally:
            visitors.discard(visit)
            visit.close()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        warming = asyncio.create_task(worlds[world].warm_up())
        yield
        warming.cancel()
        for shared in worlds.values():
            shared.close()

    pages = [Route(path, _page(text, kind)) for path, (text, kind) in read_pages(world, worlds).items()]
    app = Starlette(
        routes=[*pages, WebSocketRoute("/socket", receive_visitor)],
        middleware=[Middleware(Guard, port=port)],
        lifespan=lifespan,
    )
    app.state.visitors = visitors
    app.state.worlds = worlds
    return app


def read_pages(world: str, worlds: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Everything that is served, by its path: the text and its type. No file is ever looked up for a request."""
    pages = {}
    for file in resources.files("planvec.playground").joinpath("page").iterdir():
        kind = TYPES.get(file.name[file.name.rfind(".") :])
        if kind:
            text = file.read_text(encoding="utf-8").replace("{{world}}", world).replace("{{worlds}}", " ".join(worlds))
            pages["/" if file.name == "index.html" else f"/{file.name}"] = text, kind
    return pages


def _page(text: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    async def page(request: Request) -> Response:
        return Response(text, media_type=kind)

    return page


def _sender(outbox: asyncio.Queue[str]) -> Callable[[dict], None]:
    def send(message: dict) -> None:
        if not outbox.full():
            outbox.put_nowait(json.dumps(message, separators=(",", ":")))

    return send


async def _converse(websocket: WebSocket, visit: Visit, outbox: asyncio.Queue[str]) -> None:
    """Until the page goes, or has to: what it sends is answered in turn, while answers are on their way."""
    inbox: asyncio.Queue[str] = asyncio.Queue(1)

    async def receive() -> tuple[int, str]:
        try:
            while True:
                await inbox.put(await asyncio.wait_for(websocket.receive_text(), IDLE))
                if outbox.full():
                    return POLICY, "this page does not read what it is sent"
        except TimeoutError:
            return POLICY, "nothing has happened for half an hour; reload the page to go on"
        except (WebSocketDisconnect, KeyError):  # KeyError: bytes instead of text
            return BAD_DATA, "messages are text"

    async def answer() -> tuple[int, str]:
        while True:
            try:
                message = json.loads(await inbox.get())
            except (ValueError, RecursionError):
                return BAD_DATA, "messages are JSON"
            try:
                await visit.handle(message)
            except TooMany:
                return POLICY, "too many messages at once"

    async def send() -> tuple[int, str]:
        while True:
            await websocket.send_text(await outbox.get())

    tasks = [asyncio.create_task(work()) for work in (receive, answer, send)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        await _goodbye(websocket, done.pop())
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _goodbye(websocket: WebSocket, task: "asyncio.Task[tuple[int, str]]") -> None:
    """Say why, to a page that is still there."""
    error = task.exception()
    if error and not isinstance(error, WebSocketDisconnect):
        log.error("a visit failed", exc_info=error)
    code, reason = (WRONG, "something went wrong here; reload the page") if error else task.result()
    try:
        await websocket.close(code, reason)
    except (RuntimeError, WebSocketDisconnect):  # it is gone
        return


def listen(port: int) -> socket.socket:
    """A socket on loopback; port 0 is any free one."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen()
    except (OSError, OverflowError) as error:
        listener.close()
        raise InputError(f"port {port} cannot be used ({error}); choose another, or any free one: --port 0") from None
    return listener


def serve(
    world: str,
    runs: Sequence[str] = (),
    port: int = 0,
    browse: bool = False,
    say: Callable[[str], None] = print,
) -> None:
    """Serve the playground until it is interrupted. `runs`: further agents; `browse`: open it in the browser."""
    worlds = shared_worlds(world, runs)
    with listen(port) as listener:
        port = listener.getsockname()[1]
        address = f"http://{HOST}:{port}/"
        say(f"the playground is at {address} (Ctrl-C ends it)")
        if browse:
            threading.Timer(0.5, webbrowser.open, [address]).start()
        uvicorn.Server(config(make_app(worlds, port, world))).run(sockets=[listener])


def config(app: ASGIApp) -> uvicorn.Config:
    """Small messages, few connections, nothing about itself."""
    return uvicorn.Config(
        app,
        loop="asyncio",
        http="h11",
        ws="websockets-sansio",
        ws_max_size=LARGEST,
        ws_per_message_deflate=False,
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_level="warning",
        limit_concurrency=4 * VISITORS,
        timeout_graceful_shutdown=2,
    )
