"""Credentials from a program: client.authentication.k8s.io, v1 and v1beta1.

The program prints an ExecCredential with a token, a client certificate, or both.
What it says is kept until it expires or until the server refuses it; callers
that come while it runs wait for the one run. Nobody is asked anything: it gets
no standard input, and a plugin that insists on a terminal is refused.
"""

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from allot.api import age
from allot.base import Clock

from .access import BadAccess, Credential

GROUP = "client.authentication.k8s.io"
API_VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
RUN_S_MAX = 60.0
OUTPUT_BYTES_MAX = 1024 * 1024
REFUSED_AGAIN_S = 5.0  # a fresh credential that is refused too is not worth another run at once


@dataclass(frozen=True, slots=True)
class ExecSpec:
    user: str
    api_version: str
    command: str
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    provide_cluster_info: bool = False
    install_hint: str = ""

    @classmethod
    def read(cls, user: str, body: Mapping[str, Any], folder: Path) -> "ExecSpec":
        version, command = str(body.get("apiVersion") or ""), str(body.get("command") or "")
        if version not in API_VERSIONS:
            raise BadAccess(f"user {user!r}: exec plugins of {version!r} are not supported")
        if not command:
            raise BadAccess(f"user {user!r}: exec has no command")
        mode = body.get("interactiveMode") or ("" if version.endswith("/v1") else "IfAvailable")
        if mode not in ("Never", "IfAvailable"):
            why = "needs a terminal" if mode == "Always" else "does not say its interactiveMode"
            raise BadAccess(f"user {user!r}: exec plugin {command!r} {why}")
        if os.sep in command:
            command = str(folder / command)
        return cls(
            user,
            version,
            command,
            tuple(str(argument) for argument in body.get("args") or ()),
            tuple((str(e.get("name")), str(e.get("value") or "")) for e in body.get("env") or ()),
            bool(body.get("provideClusterInfo")),
            str(body.get("installHint") or ""),
        )


class ExecPlugin:
    def __init__(
        self, spec: ExecSpec, clock: Clock, always: Credential, cluster_info: Mapping[str, Any]
    ) -> None:
        self._spec = spec
        self._clock = clock
        self._always = always
        self._cluster_info = cluster_info
        self._kept: Credential | None = None
        self._expires: datetime | None = None
        self._ran_at_s = 0.0
        self._running = asyncio.Lock()

    async def current(self) -> Credential:
        async with self._running:
            if self._kept is None or self._is_expired():
                self._kept, self._expires = self._read(await self._run())
                self._ran_at_s = self._clock.monotonic_s()
            return self._kept

    async def refused(self) -> bool:
        if self._clock.monotonic_s() - self._ran_at_s < REFUSED_AGAIN_S:
            return False
        self._kept = None
        return True

    def _is_expired(self) -> bool:
        return self._expires is not None and self._clock.now() >= self._expires

    async def _run(self) -> bytes:
        spec = self._spec
        info: dict[str, Any] = {"interactive": False}
        if spec.provide_cluster_info:
            info["cluster"] = self._cluster_info
        request = {"apiVersion": spec.api_version, "kind": "ExecCredential", "spec": info}
        environment = {**os.environ, **dict(spec.environment), "KUBERNETES_EXEC_INFO": json.dumps(request)}
        try:
            process = await asyncio.create_subprocess_exec(
                spec.command,
                *spec.arguments,
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                limit=OUTPUT_BYTES_MAX,
            )
        except OSError as missing:
            raise self._failure(f"cannot be run: {missing.strerror}") from missing
        return await self._output(process)

    async def _output(self, process: asyncio.subprocess.Process) -> bytes:
        assert process.stdout is not None
        try:
            async with asyncio.timeout(RUN_S_MAX):
                output = b""
                while chunk := await process.stdout.read(65536):
                    output += chunk
                    if len(output) > OUTPUT_BYTES_MAX:
                        raise self._failure("prints too much")
                code = await process.wait()
        except TimeoutError as late:
            raise self._failure(f"does not end within {RUN_S_MAX:.0f} s") from late
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if code != 0:
            raise self._failure(f"failed with exit code {code}")
        return output

    def _read(self, output: bytes) -> tuple[Credential, datetime | None]:
        try:
            document = json.loads(output)
            status = document.get("status") or {}
            said = document.get("apiVersion")
            token = str(status.get("token") or "")
            certificate = str(status.get("clientCertificateData") or "").encode()
            key = str(status.get("clientKeyData") or "").encode()
            expires = age.moment(str(status.get("expirationTimestamp") or ""))
        except (ValueError, AttributeError, RecursionError) as wrong:
            raise self._failure(f"does not print an ExecCredential: {wrong}") from wrong
        if said != self._spec.api_version:
            raise self._failure(f"answers in {said!r} and was asked in {self._spec.api_version!r}")
        if not token and not (certificate and key):
            raise self._failure("prints neither a token nor a client certificate with its key")
        headers = (*Credential.token(token).headers, *self._always.headers)
        if certificate and key:
            return Credential(headers, certificate, key), expires
        return Credential(headers, self._always.certificate, self._always.key), expires

    def _failure(self, why: str) -> BadAccess:
        hint = f"\n{self._spec.install_hint}" if self._spec.install_hint else ""
        return BadAccess(f"user {self._spec.user!r}: exec plugin {self._spec.command!r} {why}{hint}")
