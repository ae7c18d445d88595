"""How many pictures a second the playground sends when many people watch at once.

The server is a process of its own, as in life; the visitors are WebSockets in this one, who ask for more as the page
does, and never wait for a clock.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from planvec.benchmarks.measure import Row
from planvec.errors import InputError
from planvec.worlds import registrations

try:
    from websockets.asyncio.client import ClientConnection, connect
    from websockets.typing import Origin
except ModuleNotFoundError as error:
    raise InputError(f"this needs {error.name}: pip install 'planvec[play]'") from None

SECONDS = 5.0  # of watching
AHEAD = 24  # steps asked for before they are seen, as by the page
PLAN = "A + B"
LONG = "4*A + 4*B"  # where what was done can be done again: takes a while


class _Closed(Exception):
    """A world that cannot be entered here: its extra is not installed."""


def run(
    batches: tuple[int, ...] | None = None,
    seconds: float = SECONDS,
    worlds: Sequence[str] | None = None,
    warn: Callable[[str], None] = lambda message: None,
) -> Iterator[Row]:
    """Measure everything, a row at a time. `warn` is never told anything; a world that cannot be entered is left out.

    `batches`: how many watch at once.
    """
    with server() as address:
        for world in worlds or registrations():
            for visitors in batches or (1, 20):
                try:
                    rates = asyncio.run(_watch_together(address, world, visitors, seconds))
                except _Closed:
                    break
                yield Row(f"planvec play, {world}: the visitor who sees least", "frames/s", visitors, min(rates))
                yield Row(f"planvec play, {world}: the median", "frames/s", visitors, statistics.median(rates))


@contextmanager
def server() -> Iterator[str]:
    """The address of a playground that ends with this block."""
    command = [sys.executable, "-m", "planvec", "play", "--no-open", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None  # it is a pipe
        try:
            yield process.stdout.readline().split()[4].rstrip("/")
        finally:
            process.terminate()


async def _watch_together(address: str, world: str, visitors: int, seconds: float) -> list[float]:
    """Pictures a second of each, all of whom are ready before the clock starts."""
    ready = asyncio.Barrier(visitors)
    return await asyncio.gather(*(_visit(address, world, number, ready, seconds) for number in range(visitors)))


async def _visit(address: str, name: str, number: int, ready: asyncio.Barrier, seconds: float) -> float:
    socket_address = address.replace("http", "ws") + "/socket"
    async with connect(socket_address, origin=Origin(address), compression=None, max_size=None) as socket:
        world = await _ask(socket, do="open", world=name)
        if world["is"] == "mistake" or not world["agents"]:
            raise _Closed
        for seed, (letter, task) in enumerate(zip("AB", world["examples"], strict=False)):
            if (await _ask(socket, do="demonstrate", name=letter, task=task, seed=seed))["is"] == "mistake":
                raise _Closed
        plan = {"plan": LONG if world["twice"] else PLAN, "agents": [world["agents"][0]["name"]]}
        for _ in range(2):  # everything is compiled: for one visitor, and for all of them
            await _watch(socket, plan | {"seed": number}, until=time.perf_counter())
            await ready.wait()
        began = time.perf_counter()
        scene = number
        seen = 0
        while time.perf_counter() < began + seconds:
            seen += await _watch(socket, plan | {"seed": scene}, until=began + seconds)
            scene += 1
        return seen / (time.perf_counter() - began)


async def _watch(socket: ClientConnection, run: dict[str, Any], until: float) -> int:
    """How many pictures there were of an episode that is watched to its end, or until some time."""
    number = (await _ask(socket, do="run", **run))["run"]
    pictures = 0  # that came
    seen = 0  # steps
    wanted = 0  # steps asked for
    while True:
        if wanted - seen <= 2 * AHEAD // 3:
            wanted = seen + AHEAD
            await socket.send(json.dumps({"do": "want", "run": number, "upto": wanted}))
        step = json.loads(await socket.recv())
        seen = step["time"]
        pictures += len(step["pictures"])
        if step["over"] or time.perf_counter() >= until:
            return pictures


async def _ask(socket: ClientConnection, **message: Any) -> dict[str, Any]:
    """The answer to a message; what was told meanwhile is not wanted any more."""
    await socket.send(json.dumps(message | {"number": 0}))
    while "number" not in (answer := json.loads(await socket.recv())):
        pass
    return answer
