"""How many pictures a second the playground sends when many people watch at once. The server is a process of its own,
as in life; the visitors are WebSockets in this one, who ask for more as the page does, and never wait for a clock."""

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from planvec.benchmarks.measure import Row
from planvec.errors import InputError

try:
    from websockets.asyncio.client import ClientConnection, connect
except ModuleNotFoundError as error:
    raise InputError(f"this needs {error.name}: pip install 'planvec[play]'") from None

SECONDS = 5.0  # of watching
AHEAD = 24  # steps asked for before they are seen, as by the page
PLAN = "4*A + 4*B"  # takes a while


def run(batches: tuple[int, ...] | None = None, seconds: float = SECONDS) -> Iterator[Row]:
    """Measure everything, a row at a time. `batches`: how many watch at once."""
    with server() as address:
        for visitors in batches or (1, 20):
            rates = asyncio.run(_watch_together(address, visitors, seconds))
            yield Row("planvec play, the visitor who sees least", "frames/s", visitors, min(rates))
            yield Row("planvec play, the median visitor", "frames/s", visitors, statistics.median(rates))


@contextmanager
def server() -> Iterator[str]:
    """The address of a playground that ends with this block."""
    command = [sys.executable, "-m", "planvec", "play", "--no-open", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().split()[4].rstrip("/")
        finally:
            process.terminate()


async def _watch_together(address: str, visitors: int, seconds: float) -> list[float]:
    """Pictures a second of each, all of whom are ready before the clock starts."""
    ready = asyncio.Barrier(visitors)
    return await asyncio.gather(*(_visit(address, number, ready, seconds) for number in range(visitors)))


async def _visit(address: str, number: int, ready: asyncio.Barrier, seconds: float) -> float:
    socket_address = address.replace("http", "ws") + "/socket"
    async with connect(socket_address, origin=address, compression=None, max_size=None) as socket:
        world = await _ask(socket, do="open", world="crafting")
        await _ask(socket, do="demonstrate", name="A", task=["ChopTree"], seed=0)
        await _ask(socket, do="demonstrate", name="B", task=["MakeBread", "EatBread"], seed=1)
        plan = {"plan": PLAN, "agents": [world["agents"][0]["name"]]}
        await _watch(socket, plan | {"seed": number}, until=time.perf_counter())  # everything is compiled
        async with ready:
            began, seen = time.perf_counter(), 0
        for scene in count(number):
            seen += await _watch(socket, plan | {"seed": scene}, until=began + seconds)
            if time.perf_counter() >= began + seconds:
                return seen / (time.perf_counter() - began)


async def _watch(socket: ClientConnection, run: dict[str, Any], until: float) -> int:
    """How many pictures there were of an episode that is watched to its end, or until some time."""
    number = (await _ask(socket, do="run", **run))["run"]
    seen = wanted = 0
    while True:
        if wanted - seen <= 2 * AHEAD // 3:
            wanted = seen + AHEAD
            await socket.send(json.dumps({"do": "want", "run": number, "upto": wanted}))
        step = json.loads(await socket.recv())
        seen = step["time"]
        if step["over"] or time.perf_counter() >= until:
            return seen


async def _ask(socket: ClientConnection, **message: Any) -> dict[str, Any]:
    """The answer to a message; what was told meanwhile is not wanted any more."""
    await socket.send(json.dumps(message | {"number": 0}))
    while "number" not in (answer := json.loads(await socket.recv())):
        pass
    return answer
