"""Another user of the same server, who only wants small things: how long does she wait?

    python bench/attacks/probe.py --port P --ca FILE --credential FILE --namespace NS

A process of its own, so that no attacker's work is in its way. At a steady pace it reads and creates
a small ConfigMap over a connection that it keeps; now and then it comes anew, as a command does. While
it waits, requests that would have been due meanwhile are not sent, but count as what they would have
waited: a stall of a second is seen by all who come in that second. When its input ends, it prints
what it saw as JSON.
"""

import argparse
import json
import select
import socket
import ssl
import sys
import time
from pathlib import Path
from typing import Any

PACE_S = 0.02
ANEW_EVERY = 15
"""Of so many requests, one comes over a connection of its own."""
CREATE_EVERY = 4
PATIENCE_S = 60.0


class Server:
    def __init__(self, port: int, ca: Path, credential: Path) -> None:
        self._port = port
        self._context = ssl.create_default_context(cafile=str(ca))
        self._context.load_cert_chain(credential)
        self._kept: ssl.SSLSocket | None = None

    def ask(self, request: bytes, *, anew: bool) -> int:
        """The status, or 0 when there was no answer."""
        connection: ssl.SSLSocket | None = None
        try:
            connection = self._connect() if anew or self._kept is None else self._kept
            if not anew:
                self._kept = connection
            connection.sendall(request)
            return _status(connection)
        except (OSError, ValueError):
            self._kept = None if connection is self._kept else self._kept
            return 0
        finally:
            if connection is not None and connection is not self._kept:
                connection.close()

    def _connect(self) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", self._port), timeout=PATIENCE_S)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._context.wrap_socket(plain, server_hostname="localhost")


def _status(connection: ssl.SSLSocket) -> int:
    """Reads one answer, which is known to be small and to say its length."""
    read = b""
    while (end := read.find(b"\r\n\r\n")) < 0:
        read += _more(connection)
    head = read[:end].lower()
    _, found, rest = head.partition(b"content-length:")
    size = int(rest.split(b"\r\n", 1)[0]) if found else 0
    missing = size - (len(read) - end - 4)
    while missing > 0:
        missing -= len(_more(connection))
    return int(head[9:12])


def _more(connection: ssl.SSLSocket) -> bytes:
    piece = connection.recv(65536)
    if not piece:
        raise ConnectionResetError("the server closed the connection")
    return piece


class Waits:
    """What the probe saw."""

    def __init__(self) -> None:
        self.kept_s: list[float] = []
        self.anew_s: list[float] = []
        self.refused: dict[str, int] = {}

    def add(self, waited_s: float, *, anew: bool) -> None:
        """With those who would have come while this one waited."""
        while waited_s > 0:
            (self.anew_s if anew else self.kept_s).append(waited_s)
            waited_s -= PACE_S

    def report(self) -> dict[str, Any]:
        everything = sorted(self.kept_s + self.anew_s)
        return {
            "requests": len(everything),
            "worst_ms": _ms(everything[-1]),
            "p99_ms": _ms(everything[int(len(everything) * 0.99)]),
            "p50_ms": _ms(everything[len(everything) // 2]),
            "anew_worst_ms": _ms(max(self.anew_s, default=0.0)),
            "refused": self.refused,
        }


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)


def probe(server: Server, namespace: str) -> Waits:
    path, waits, number = f"/api/v1/namespaces/{namespace}/configmaps", Waits(), 0
    server.ask(_create(path, "first"), anew=False)
    print("ready", flush=True)
    due = time.perf_counter()
    while not select.select([sys.stdin], [], [], 0)[0] or number < 2 * ANEW_EVERY:
        time.sleep(max(0.0, due - time.perf_counter()))
        anew = number % ANEW_EVERY == 0
        creates = number % CREATE_EVERY == 1
        sent = time.perf_counter()
        status = server.ask(_create(path, f"o-{number}") if creates else _get(path), anew=anew)
        waited_s = time.perf_counter() - sent
        waits.add(waited_s, anew=anew)
        if status != (201 if creates else 200):
            said = str(status) if status else "no answer"
            waits.refused[said] = waits.refused.get(said, 0) + 1
        due = max(due + PACE_S, sent + waited_s)
        number += 1
    return waits


def _get(path: str) -> bytes:
    return f"GET {path}/first HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def _create(path: str, name: str) -> bytes:
    content = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}
    body = json.dumps(content)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ca", type=Path, required=True)
    parser.add_argument("--credential", type=Path, required=True)
    parser.add_argument("--namespace", required=True)
    options = parser.parse_args()
    server = Server(options.port, options.ca, options.credential)
    print(json.dumps(probe(server, options.namespace).report()), flush=True)


if __name__ == "__main__":
    main()
