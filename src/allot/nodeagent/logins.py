"""Who an image is pulled as: the logins that a pod's secrets hold for the image's registry. Pure.

A secret holds a file of docker's, in which each login stands under what it is good for: a host, with `*` for
parts of its name, a port, and the beginning of a path. Those that say more come first.
"""

import binascii
import json
from base64 import b64decode
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from .runtimes import Login

DOCKER_HUB: Final = "index.docker.io"
"""Where images lie whose name says no registry."""

_JSON, _OLD = ".dockerconfigjson", ".dockercfg"


class BadSecret(Exception):
    """It holds no logins. The message says what it should."""


class Registry(NamedTuple):
    """Or a part of one."""

    host: str
    port: int | None
    path: str


Entry = tuple[Registry, Login]


def logins_for(image: str, entries: Iterable[Entry]) -> tuple[Login, ...]:
    """All that are good for it, each once."""
    wanted = _registry(_with_registry(image))
    fitting = [entry for entry in entries if _fits(entry[0], wanted)]
    fitting.sort(key=lambda entry: (entry[0].host, entry[0].path), reverse=True)
    return tuple(dict.fromkeys(login for _, login in fitting))


def entries(secret: Mapping[str, bytes]) -> list[Entry]:
    """Of the data of a secret. Raises BadSecret."""
    if _JSON in secret:
        auths = _read(secret[_JSON]).get("auths")
    elif _OLD in secret:
        auths = _read(secret[_OLD])
    else:
        raise BadSecret(f"it has neither {_JSON} nor {_OLD}")
    if not isinstance(auths, dict):
        raise BadSecret("it has no auths")
    found = [(_registry(where), _login(entry)) for where, entry in auths.items()]
    return [(registry, login) for registry, login in found if login is not None]


def _read(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise BadSecret("it is no JSON object")
    return found


def _login(entry: Any) -> Login | None:
    """By name and password, which `auth` has as one word; None: somebody who has neither."""
    if not isinstance(entry, dict):
        raise BadSecret("a login in it is no JSON object")
    name, password = entry.get("username") or "", entry.get("password") or ""
    if not name and entry.get("auth"):
        try:
            name, _, password = b64decode(str(entry["auth"]), validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            raise BadSecret("an auth in it is not USER:PASSWORD in base64") from None
    return Login(str(name), str(password)) if name else None


def _with_registry(image: str) -> str:
    first, slash, _ = image.partition("/")
    is_registry = bool(slash) and ("." in first or ":" in first or first == "localhost")
    if not is_registry:
        return f"{DOCKER_HUB}/{image}"
    return image.replace("docker.io/", f"{DOCKER_HUB}/", 1) if first == "docker.io" else image


def _registry(text: str) -> Registry:
    """Some write it as an address, with the version of the registry's API in front of the path."""
    whole = text if text.startswith(("http://", "https://")) else f"https://{text}"
    try:
        parts = urlsplit(whole)
        host, port, path = parts.hostname or "", parts.port, parts.path
    except ValueError:
        raise BadSecret(f"{text!r} is no registry") from None
    if path.startswith(("/v1/", "/v2/")):
        path = path[3:]
    return Registry(DOCKER_HUB if host == "docker.io" else host, port, path.rstrip("/"))


def _fits(known: Registry, wanted: Registry) -> bool:
    ours, theirs = known.host.split("."), wanted.host.split(".")
    return (
        known.port == wanted.port
        and wanted.path.startswith(known.path)
        and len(ours) == len(theirs)
        and all(fnmatchcase(name, pattern) for name, pattern in zip(theirs, ours, strict=True))
    )
