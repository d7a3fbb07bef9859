"""Paths that are no resource: health, version, metrics, discovery, OpenAPI."""

import platform
from collections.abc import Awaitable, Callable, Mapping

import allot
from allot.api import Request, Response, encode

from .discovery import Discovery

KUBERNETES_VERSION = "v1.37.0"
"""The API that we speak: clients decide by this what they may ask for."""

_ALIVE = "ping"

Check = Callable[[], Awaitable[str | None]]
"""What is wrong, or None."""


class Pages:
    def __init__(
        self,
        discovery: Discovery,
        metrics: Callable[[], Awaitable[str]],
        checks: Mapping[str, Check],
        openapi: Callable[[Request], Awaitable[Response | None]],
    ) -> None:
        self._discovery = discovery
        self._metrics = metrics
        self._checks = checks
        self._openapi = openapi

    async def answer(self, request: Request) -> Response | None:
        if request.method not in ("GET", "HEAD"):
            return None
        path = request.path.rstrip("/") or "/"
        first = path.split("/")[1]
        if first in ("healthz", "livez", "readyz"):
            return await self._health(path, "verbose" in request.query)
        match path:
            case "/":
                return Response(200, encode({"paths": self._paths()}))
            case "/version":
                return Response(200, encode(version()))
            case "/metrics":
                return Response(200, (await self._metrics()).encode(), "text/plain; version=0.0.4")
        if first == "openapi":
            return await self._openapi(request)
        return self._discovery.answer(request)

    async def _health(self, path: str, verbose: bool) -> Response | None:
        page, _, only = path.removeprefix("/").partition("/")
        # Who finds a server dead starts another. That mends no store, so a live one may be without.
        known = [_ALIVE] if page == "livez" else list(self._checks)
        wanted = {name: self._checks[name] for name in known if only in ("", name)}
        if only and not wanted:
            return None
        lines, failed = [], False
        for name, check in wanted.items():
            wrong = await check()
            failed = failed or wrong is not None
            lines.append(f"[+]{name} ok" if wrong is None else f"[-]{name} failed: {wrong}")
        if failed:
            return Response(500, "\n".join([*lines, f"{page} check failed", ""]).encode(), "text/plain")
        text = "\n".join([*lines, f"{page} check passed", ""]) if verbose else "ok"
        return Response(200, text.encode(), "text/plain")

    def _paths(self) -> list[str]:
        return [
            "/api",
            "/apis",
            "/healthz",
            "/livez",
            "/metrics",
            "/openapi/v2",
            "/openapi/v3",
            "/readyz",
            "/version",
        ]


def version() -> dict[str, str]:
    major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"{KUBERNETES_VERSION}+allot-{allot.__version__}",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": platform.python_implementation(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }
