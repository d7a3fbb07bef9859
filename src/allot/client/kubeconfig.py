"""Kubeconfig files: which server, which caller, which namespace.

`load` reads the files that KUBECONFIG lists (or one that is named), merges them
(the first to say something wins), follows the current context and comes back
with an `Access`. A program inside a pod has no kubeconfig but files that the
cluster put there: `in_cluster`.

Paths in a kubeconfig are relative to the file that names them. What this client
cannot do (a proxy, an old auth-provider) is refused by name, not ignored.
"""

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from allot.base import Clock, SystemClock

from .access import Access, BadAccess, Credential, Credentials, Fixed, Server
from .execplugin import ExecPlugin, ExecSpec
from .tokenfile import TokenFile

FILE_BYTES_MAX = 16 * 1024 * 1024
SERVICE_ACCOUNT_DIR = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class Entry:
    """A named cluster, user or context, and the folder that its paths start from."""

    body: Mapping[str, Any]
    folder: Path


@dataclass(slots=True)
class Kubeconfig:
    """What the files say together, before any of it is followed."""

    current_context: str = ""
    clusters: dict[str, Entry] = field(default_factory=dict)
    users: dict[str, Entry] = field(default_factory=dict)
    contexts: dict[str, Entry] = field(default_factory=dict)


def load(path: str | Path = "", *, context: str = "", clock: Clock | None = None) -> Access:
    """Access as the kubeconfig at `path` describes it, or as KUBECONFIG and ~/.kube/config do."""
    files = [Path(path)] if path else default_files(os.environ)
    if not path and not any(file.exists() for file in files):
        why = "named by KUBECONFIG" if os.environ.get("KUBECONFIG") else "and KUBECONFIG is not set"
        raise BadAccess(f"there is no kubeconfig at {_listed(files)}, {why}")
    merged = merge(files, must_exist=bool(path))
    try:
        return access(merged, context, clock or SystemClock())
    except BadAccess as wrong:
        raise BadAccess(f"{_listed(files)}: {wrong}") from wrong


def _listed(files: Sequence[Path]) -> str:
    return ", ".join(map(str, files))


def default_files(environment: Mapping[str, str]) -> list[Path]:
    listed = [Path(part) for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    return listed or [Path(environment.get("HOME", "~")).expanduser() / ".kube" / "config"]


def merge(files: Sequence[Path], *, must_exist: bool = False) -> Kubeconfig:
    merged = Kubeconfig()
    for file in files:
        if not file.exists() and not must_exist:
            continue
        document = _document(file)
        merged.current_context = merged.current_context or str(document.get("current-context") or "")
        for plural, singular in (("clusters", "cluster"), ("users", "user"), ("contexts", "context")):
            into: dict[str, Entry] = getattr(merged, plural)
            for item in document.get(plural) or ():
                if not isinstance(item, dict) or not isinstance(item.get("name"), str):
                    raise BadAccess(f"{file}: an entry of {plural} has no name")
                into.setdefault(item["name"], Entry(item.get(singular) or {}, file.absolute().parent))
    return merged


def _document(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > FILE_BYTES_MAX:
            raise BadAccess(f"{file}: too large for a kubeconfig")
        document = yaml.safe_load(file.read_bytes())
    except OSError as missing:
        raise BadAccess(f"{file}: {missing.strerror}") from missing
    except yaml.reader.ReaderError as wrong:
        raise BadAccess(f"{file} is not text") from wrong
    except yaml.YAMLError as wrong:
        raise BadAccess(f"{file}: not YAML: {' '.join(str(wrong).split())}") from wrong
    if document is None:
        return {}
    if not isinstance(document, dict) or document.get("kind", "Config") != "Config":
        raise BadAccess(f"{file}: not a kubeconfig")
    return document


def access(config: Kubeconfig, context: str, clock: Clock) -> Access:
    name = context or config.current_context
    if not name:
        raise BadAccess("no context is named and the kubeconfig has no current-context")
    chosen = config.contexts.get(name)
    if chosen is None:
        raise BadAccess(f"context {name!r} does not exist")
    cluster_name = str(chosen.body.get("cluster") or "")
    cluster = config.clusters.get(cluster_name)
    if cluster is None:
        raise BadAccess(f"context {name!r}: cluster {cluster_name!r} does not exist")
    user_name = str(chosen.body.get("user") or "")
    user = config.users.get(user_name) if user_name else Entry({}, Path())
    if user is None:
        raise BadAccess(f"context {name!r}: user {user_name!r} does not exist")
    server = _server(cluster_name, cluster)
    return Access(
        server,
        _credentials(user_name, user, cluster, server, clock),
        str(chosen.body.get("namespace") or "default"),
    )


def _server(name: str, cluster: Entry) -> Server:
    body = cluster.body
    if body.get("proxy-url"):
        raise BadAccess(f"cluster {name!r}: proxy-url is not supported; connect to the server directly")
    if not body.get("server"):
        raise BadAccess(f"cluster {name!r} names no server")
    return Server.at(
        str(body["server"]),
        server_name=str(body.get("tls-server-name") or ""),
        authorities=_bytes(cluster, "certificate-authority"),
        verify=not body.get("insecure-skip-tls-verify"),
    )


def _credentials(name: str, user: Entry, cluster: Entry, server: Server, clock: Clock) -> Credentials:
    body = user.body
    if body.get("auth-provider"):
        raise BadAccess(f"user {name!r}: auth-provider was replaced by exec plugins and is not supported")
    certificate = _bytes(user, "client-certificate")
    key = _bytes(user, "client-key")
    if bool(certificate) != bool(key):
        raise BadAccess(f"user {name!r}: a client certificate and its key come together")
    always = Credential(_impersonation(body), certificate, key)
    if body.get("tokenFile"):
        token = str(body.get("token") or "")
        return TokenFile(user.folder / str(body["tokenFile"]), clock, always, fallback=token)
    if body.get("exec"):
        spec = ExecSpec.read(name, body["exec"], user.folder)
        return ExecPlugin(spec, clock, always, _cluster_info(cluster, server))
    shown = Credential()
    if body.get("token"):
        shown = Credential.token(str(body["token"]))
    elif body.get("username"):
        pair = f"{body['username']}:{body.get('password') or ''}".encode()
        shown = Credential(headers=(("authorization", f"Basic {base64.b64encode(pair).decode()}"),))
    return Fixed(Credential((*shown.headers, *always.headers), certificate, key))


def _impersonation(body: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    headers = [("impersonate-user", str(body["as"]))] if body.get("as") else []
    headers += [("impersonate-uid", str(body["as-uid"]))] if body.get("as-uid") else []
    headers += [("impersonate-group", str(group)) for group in body.get("as-groups") or ()]
    for key, values in (body.get("as-user-extra") or {}).items():
        headers += [(f"impersonate-extra-{key}", str(value)) for value in values or ()]
    return tuple(headers)


def _bytes(entry: Entry, name: str) -> bytes:
    """`name`-data as it stands, or what the file `name` holds."""
    data = entry.body.get(f"{name}-data")
    if data:
        try:
            return base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError, TypeError) as wrong:
            raise BadAccess(f"{name}-data is not base64") from wrong
    file = entry.body.get(name)
    if not file:
        return b""
    try:
        return (entry.folder / str(file)).read_bytes()
    except OSError as missing:
        raise BadAccess(f"{name}: {entry.folder / str(file)}: {missing.strerror}") from missing


def _cluster_info(cluster: Entry, server: Server) -> dict[str, Any]:
    """What an exec plugin may learn about the cluster, if its entry provides for that."""
    info: dict[str, Any] = {"server": str(cluster.body.get("server"))}
    if server.server_name:
        info["tls-server-name"] = server.server_name
    if not server.verify:
        info["insecure-skip-tls-verify"] = True
    if server.authorities:
        info["certificate-authority-data"] = base64.b64encode(server.authorities).decode()
    for extension in cluster.body.get("extensions") or ():
        if extension.get("name") == "client.authentication.k8s.io/exec":
            info["config"] = extension.get("extension")
    return info


def in_cluster(
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path = SERVICE_ACCOUNT_DIR,
    clock: Clock | None = None,
) -> Access:
    """Access for a program in a pod, from its service account."""
    environment = os.environ if environment is None else environment
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise BadAccess("not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
    try:
        authorities = (folder / "ca.crt").read_bytes()
        namespace_file = folder / "namespace"
        namespace = namespace_file.read_text().strip() if namespace_file.exists() else "default"
    except OSError as missing:
        raise BadAccess(f"not in a cluster: {missing}") from missing
    written = f"[{host}]" if ":" in host else host
    server = Server.at(f"https://{written}:{port}", authorities=authorities)
    return Access(server, TokenFile(folder / "token", clock or SystemClock()), namespace)
