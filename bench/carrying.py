"""What it costs to carry a request to the server and its answer back.

    bench/carrying.py [--requests N]

The same object of 2 KB is read again and again: in process, where nothing is carried; over the
server's socket; over HTTPS. Processor time on either side, for several numbers of requests under
way. What in-process reading costs is the server's own work; the rest is carriage. Prints one JSON
object.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import uvloop

from allot.apiserver import ApiServer, identities
from allot.client import Client, HttpsTransport, InProcessTransport, Socket, kubeconfig
from allot.store import open_store
from apiserver import Server, config_map

IN_FLIGHT = (1, 8, 64)
NS = "default"


async def measured(client: Client, requests: int, server_cpu_s: Callable[[], float]) -> dict[str, Any]:
    """Microseconds of processor time a request, here and in the server's process."""
    maps = client.resource("", "v1", "configmaps")
    await maps.create(config_map("read"), NS)

    async def read(count: int) -> None:
        for _ in range(count):
            await maps.get("read", NS)

    await read(500)
    found: dict[str, Any] = {}
    for in_flight in IN_FLIGHT:
        count = requests // in_flight
        here_s, there_s = time.process_time(), server_cpu_s()
        await asyncio.gather(*(read(count) for _ in range(in_flight)))
        spent = {"client_us": time.process_time() - here_s, "server_us": server_cpu_s() - there_s}
        per_request = {side: round(s * 1e6 / (count * in_flight), 1) for side, s in spent.items()}
        found[f"{in_flight} in flight"] = per_request
    await client.close()
    return found


async def in_process(requests: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        store = open_store("sqlite", Path(folder))
        api = ApiServer(store)
        await api.start()
        try:
            client = Client(InProcessTransport(api.handle, identities.ADMIN))
            return await measured(client, requests, lambda: 0.0)
        finally:
            await api.close()
            await store.close()


def elsewhere(client_of: Callable[[Server], Client]) -> Callable[[int], Coroutine[Any, Any, dict[str, Any]]]:
    async def run(requests: int) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            server = Server(Path(folder), "sqlite")
            try:
                return await measured(client_of(server), requests, server.cpu_s)
            finally:
                server.process.terminate()
                server.process.wait()

    return run


WAYS = {
    "inprocess": in_process,
    "socket": elsewhere(lambda at: Client(Socket(at.data_dir / "api.sock").transport(identities.ADMIN))),
    "https": elsewhere(lambda at: Client(HttpsTransport(kubeconfig.load(str(at.data_dir / "kubeconfig"))))),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--requests", type=int, default=20_000)
    options = parser.parse_args()
    sys.setswitchinterval(0.001)  # as `allot` runs
    print(json.dumps({name: uvloop.run(way(options.requests)) for name, way in WAYS.items()}, indent=1))


if __name__ == "__main__":
    main()
