"""200 watchers, 10,000 changes: does everybody see the same, and what does it cost?

    bench/watchers.py [--watchers N] [--changes M] [--idle K]

Watchers are real TLS connections in a process of their own. Each one hashes what
it reads; all hashes must be equal and complete. `--idle` watchers connect and
never read: they must be cut off without slowing the others. Prints one JSON object.
"""

import argparse
import asyncio
import hashlib
import json
import socket
import ssl
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import uvloop
from load import drive, request

from apiserver import Server, config_map

PATH = "/api/v1/namespaces/default/configmaps"


class Watcher(asyncio.Protocol):
    """Reads a chunked stream and keeps (type, name, revision) of every event, as a hash."""

    def __init__(self, expected: int, done: asyncio.Future[None]) -> None:
        self.count = 0
        self.order_kept = True
        self.digest = hashlib.sha256()
        self._last = 0
        self._expected = expected
        self._done = done
        self._buffer = b""
        self._head = True

    def connection_made(self, transport: Any) -> None:
        transport.write(request("GET", f"{PATH}?watch=true&resourceVersion=1&timeoutSeconds=600"))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._head:
            _, found, rest = self._buffer.partition(b"\r\n\r\n")
            if not found:
                return
            self._head, self._buffer = False, rest
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            if not line.startswith(b'{"type"'):
                continue
            kind = line[9 : line.find(b'"', 9)]
            at = line.find(b'"resourceVersion":"') + 19
            revision = int(line[at : line.find(b'"', at)])
            self.order_kept = self.order_kept and revision > self._last
            self._last = revision
            self.digest.update(b"%b %d\n" % (kind, revision))
            self.count += 1
        if self.count >= self._expected and not self._done.done():
            self._done.set_result(None)


async def measure(server: Server, options: argparse.Namespace) -> dict[str, Any]:
    port, context = server.access()
    loop = asyncio.get_running_loop()
    watchers, finished = [], []
    for _ in range(options.watchers):
        done = loop.create_future()
        watcher = Watcher(options.changes, done)
        await loop.create_connection(
            partial(_itself, watcher), "127.0.0.1", port, ssl=context, server_hostname="localhost"
        )
        watchers.append(watcher)
        finished.append(done)
    idle = [await _silent(port, context) for _ in range(options.idle)]

    bodies = (
        request("POST", PATH, json.dumps(config_map(f"o-{n}")).encode()) for n in range(options.changes)
    )
    cpu_s, own_s = server.cpu_s(), time.process_time()
    started = time.perf_counter()
    load = await drive("127.0.0.1", port, context, bodies, 16)
    written_s = time.perf_counter() - started
    await asyncio.wait_for(asyncio.gather(*finished), 600)
    seen_s = time.perf_counter() - started
    for connection in idle:
        connection.close()
    return {
        "watchers": options.watchers,
        "changes": options.changes,
        "histories": len({watcher.digest.hexdigest() for watcher in watchers}),
        "complete": all(watcher.count == options.changes for watcher in watchers),
        "in_order": all(watcher.order_kept for watcher in watchers),
        "writes_per_second": round(options.changes / written_s, 1),
        "statuses": load.statuses,
        "seconds_until_all_have_seen_all": round(seen_s, 2),
        "deliveries_per_second": round(options.watchers * options.changes / seen_s),
        "silent_watchers": options.idle,
        "server_cpu_s": round(server.cpu_s() - cpu_s, 2),
        "client_cpu_s": round(time.process_time() - own_s, 2),
        "server_rss_mb": round(server.rss_mb(), 1),
    }


def _itself(watcher: Watcher) -> Watcher:
    return watcher


async def _silent(port: int, context: ssl.SSLContext) -> socket.socket:
    """Ask for a watch and never read it."""

    def connect() -> socket.socket:
        plain = socket.create_connection(("127.0.0.1", port))
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection = context.wrap_socket(plain, server_hostname="localhost")
        connection.sendall(request("GET", f"{PATH}?watch=true&resourceVersion=1&timeoutSeconds=600"))
        return connection

    return await asyncio.to_thread(connect)


async def run(options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder), options.store)
        try:
            return await measure(server, options)
        finally:
            server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--watchers", type=int, default=200)
    parser.add_argument("--changes", type=int, default=10_000)
    parser.add_argument("--idle", type=int, default=5)
    parser.add_argument("--store", default="sqlite")
    print(json.dumps(uvloop.run(run(parser.parse_args())), indent=1))


if __name__ == "__main__":
    main()
