"""Which client certificates there are, and taking them back, through the API of the running server.

The way there is the socket in the data directory, which needs no certificate and so cannot be
lost by revoking one; where there is none, the administrator's kubeconfig.
"""

import argparse
import asyncio
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from allot.api import errors
from allot.apiserver import SOCKET_NAME, identities, security
from allot.base import SystemClock
from allot.client import BadAccess, Client, HttpsTransport, Resource, Socket, kubeconfig

from .wording import plain

Answer = TypeVar("Answer")


class Unusable(Exception):
    """The command cannot be carried out. The message says what is missing."""


def no_server(data_dir: Path) -> Unusable:
    return Unusable(
        f"{data_dir} has no keys: start `allot apiserver` there first, or name another --data-dir"
    )


def serial(text: str) -> str:
    """As people copy it: with colons, in capitals."""
    digits = text.replace(":", "").lower().lstrip("0")
    if re.fullmatch(r"[0-9a-f]{1,40}", digits) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a serial number in hexadecimal")
    return digits


def revoke(data_dir: Path, user: str, serial: str, reason: str) -> int:
    """From now on, on every server of the cluster: nobody gets in with it, and who is in is put out."""
    wanted = {"user": user} if user else {"serial": serial}
    spec = {**wanted, **({"reason": reason} if reason else {})}

    async def work(revocations: Resource) -> bool:
        if _about(await _all(revocations), user, serial):
            return False
        await revocations.create({"metadata": {"generateName": "revoked-"}, "spec": spec})
        return True

    is_new = _asked(data_dir, work)
    what = f"every certificate of {user}" if user else f"the certificate {serial}"
    print(f"{what} is revoked" if is_new else f"{what} was revoked before")
    if not any(one.user == user or one.serial == serial for one in security.issued_from(data_dir)):
        whose = f"certificate of {user}" if user else f"certificate with the serial number {serial}"
        print(
            f"allot credentials: {data_dir} has made no {whose} (`allot credentials list` shows all); "
            "the revocation stands all the same",
            file=sys.stderr,
        )
    return 0


def restore(data_dir: Path, user: str, serial: str) -> int:
    async def work(revocations: Resource) -> int:
        found = _about(await _all(revocations), user, serial)
        for one in found:
            await revocations.delete(one["metadata"]["name"])
        return len(found)

    what = f"the certificates of {user}" if user else f"the certificate {serial}"
    if not _asked(data_dir, work):
        raise Unusable(f"{what} {'are' if user else 'is'} not revoked")
    print(f"{what} {'count' if user else 'counts'} again")
    return 0


def show(data_dir: Path) -> int:
    issued = security.issued_from(data_dir)
    try:
        revoked = [one["spec"] for one in _asked(data_dir, _all)]
    except Unusable as away:
        if not issued:
            raise
        print(f"allot credentials: who is revoked is not known: {away}", file=sys.stderr)
        revoked = None
    for row in _columns(_rows(issued, revoked)):
        print(row)
    return 0


def _rows(issued: Iterable[security.Issued], revoked: Sequence[Any] | None) -> list[Sequence[str]]:
    now = SystemClock().now()
    users = {spec["user"]: spec.get("reason", "") for spec in revoked or () if spec.get("user")}
    serials = {spec["serial"]: spec.get("reason", "") for spec in revoked or () if spec.get("serial")}
    rows: list[Sequence[str]] = [("SERIAL", "USER", "GROUPS", "UNTIL", "STATE")]
    for one in issued:
        state = "expired" if one.until <= now else "valid" if revoked is not None else "valid, or revoked"
        if one.user in users or one.serial in serials:
            state = _because(serials.get(one.serial) or users.get(one.user) or "")
        rows.append((one.serial, one.user, ",".join(one.groups), f"{one.until:%Y-%m-%d %H:%M}", state))
    listed = {one.user for one in issued}, {one.serial for one in issued}
    rows += [("*", user, "", "", _because(why)) for user, why in users.items() if user not in listed[0]]
    rows += [
        (number, "", "", "", _because(why)) for number, why in serials.items() if number not in listed[1]
    ]
    return rows


def _because(reason: str) -> str:
    """On one line, whatever was written there."""
    return f"revoked: {' '.join(reason.split())}" if reason.strip() else "revoked"


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _about(found: Iterable[Any], user: str, serial: str) -> list[Any]:
    return [
        one for one in found if (one["spec"].get("user", ""), one["spec"].get("serial", "")) == (user, serial)
    ]


async def _all(revocations: Resource) -> list[Any]:
    return [one.fields for one in (await revocations.list()).objects]


def _asked(data_dir: Path, work: Callable[[Resource], Awaitable[Answer]]) -> Answer:
    async def ask() -> Answer:
        client = _client(data_dir)
        try:
            return await work(
                client.resource("security.allot.dev", "v1alpha1", "credentialrevocations", namespaced=False)
            )
        finally:
            await client.close()

    try:
        return asyncio.run(ask())
    except (errors.ApiError, BadAccess, OSError) as away:
        raise Unusable(
            f"asked the server of {data_dir}, which keeps the revocations: {plain(away)}"
        ) from None


def _client(data_dir: Path) -> Client:
    path = data_dir / SOCKET_NAME
    if path.exists():
        return Client(Socket(path).transport(identities.ADMIN), user_agent="allot-credentials")
    if not (data_dir / "kubeconfig").exists():
        raise no_server(data_dir)
    return Client(HttpsTransport(kubeconfig.load(data_dir / "kubeconfig")), user_agent="allot-credentials")
