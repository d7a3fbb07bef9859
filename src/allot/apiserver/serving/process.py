"""An API server as a process: data directory, store, keys, HTTPS, socket, kubeconfig.

    D/kubeconfig    the administrator's way in
    D/api.sock      the way in for processes of the same user on the same machine
    D/pki           keys and certificates (see `security/keyfiles`)
    D/allot.db      the embedded store
    D/server.lock   held while a server runs: all of this is one server's at a time

Several servers on one etcd share the authority through the store: whoever comes
first writes it there, the others take it.
"""

import asyncio
import errno
import gc
import logging
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeVar

from allot.api import Request, User, errors
from allot.base import (
    FileLock,
    HeldByAnother,
    os_reason,
    return_large_blocks,
    return_small_blocks,
    write_file,
)
from allot.store import Compare, InUse, Put, Store, Unavailable, open_store, sealed_store

from ..assembly import ApiServer
from ..audit import Answered, Auditor, open_audit
from ..options import Encryption, ServingOptions
from ..security import (
    SERVING_NAMES,
    Authenticator,
    Authority,
    Kubeconfig,
    identities,
    keep_authority,
    open_authority,
    open_serving,
    private_directory,
    record_issued,
    server_context,
)
from ..server import error_response
from ..storing.examined import ExaminedStore, junk_below
from ..storing.repository import ROOT
from .connection import Peer
from .listener import Application, Authenticate, Listener
from .renewal import keep_renewed
from .socketlistener import SocketListener

SOCKET_NAME = "api.sock"
LOCK_NAME = "server.lock"
START_PATIENCE_S = 15.0
_START_PAUSE_S = 0.5
FORMER_PATIENCE_S = 3.0
"""For the one before: killed, it keeps what it holds until the kernel is done with its last write."""
_FORMER_PAUSE_S = 0.05
_AUTHORITY_KEY = "/system/authority"
_SECRET = (f"{ROOT}core/secrets/", _AUTHORITY_KEY)
"""What is encrypted where a key is given."""

Held = TypeVar("Held")

log = logging.getLogger(__name__)


class Serving:
    """A running server. Make one with `serve`."""

    def __init__(
        self,
        options: ServingOptions,
        api: ApiServer,
        authority: Authority,
        listener: Listener,
        local: SocketListener,
        held: AsyncExitStack,
    ) -> None:
        """`held` is everything that must be given back, the last first."""
        self.options = options
        self.api = api
        self.authority = authority
        self._listener = listener
        self._local = local
        self._held = held

    @property
    def url(self) -> str:
        host = "127.0.0.1" if self.options.host in ("", "0.0.0.0", "::") else self.options.host
        shown = f"[{host}]" if ":" in host else host
        return f"https://{shown}:{self._listener.port}"

    @property
    def kubeconfig(self) -> Path:
        return self.options.data_dir / "kubeconfig"

    @property
    def socket(self) -> Path:
        return self.options.data_dir / SOCKET_NAME

    async def lost(self) -> str:
        """Wait, mostly for ever, until what this server knows is worth nothing any more, and say why."""
        return await self.api.store.lost()

    async def close(self) -> None:
        await self._held.aclose()


async def serve(options: ServingOptions) -> Serving:
    """Start a server and return once it answers. Raises what keeps it from starting."""
    return_large_blocks()  # a burst of large requests is over, and so is what it took
    data_dir = private_directory(options.data_dir)
    async with AsyncExitStack() as held:
        held.callback((await _after_the_former(lambda: _occupied(data_dir))).release)
        audit = _opened_audit(options)
        if audit is not None:
            held.push_async_callback(asyncio.to_thread, audit.close)
        store = await _after_the_former(lambda: open_store(options.store, data_dir))
        held.push_async_callback(store.close)
        await _until_it_answers(store)
        store = await _sealed(store, options.encryption)
        junk = {} if options.store.startswith("etcd:") else await junk_below(store, ROOT)
        store = ExaminedStore(store, junk) if junk else store
        authority = await _shared_authority(store, data_dir, options)
        way = options.way_to_nodes
        forward = way(authority, options.server.clock) if way else None
        api = ApiServer(store, options.server, authority, forward, audit)
        held.push_async_callback(api.close)
        now = options.server.clock.now()
        names = (*SERVING_NAMES, socket.gethostname(), *_reached_as(options))
        files = open_serving(data_dir, authority, names, now)
        context = server_context(files, authority.ca.certificate)
        await api.start()
        await api.look_at(junk)
        application = Application(api.handle, _authenticate(api, audit), api.traffic.shares)
        listener = Listener(application, context, api.traffic)
        local = SocketListener(api.handle, api.traffic)
        await _listen(listener, local, options)
        held.push_async_callback(_close_both, listener, local)
        api.revocations.when_revoked = lambda: listener.end(api.revocations.covers)
        renewal = asyncio.create_task(
            keep_renewed(context, data_dir, authority, names, options.server.clock),
            name="certificate renewal",
        )
        held.callback(renewal.cancel)
        connections = listener.connections.state.connections
        returning = asyncio.create_task(
            return_small_blocks(lambda: len(connections)), name="memory of connections that are gone"
        )
        held.callback(returning.cancel)
        serving = Serving(options, api, authority, listener, local, held.pop_all())
    try:
        _write_kubeconfig(serving)
    except BaseException:
        await serving.close()
        raise
    # Start-up made many objects that stay; the collector need not look at them again.
    gc.collect()
    gc.freeze()
    return serving


async def _close_both(listener: Listener, local: SocketListener) -> None:
    await asyncio.gather(listener.close(), local.close())


async def _until_it_answers(store: Store) -> None:
    """Server and etcd are often started together, and etcd needs a moment longer."""
    loop = asyncio.get_running_loop()
    end_s = loop.time() + START_PATIENCE_S
    while True:
        try:
            await store.revision()
            return
        except Unavailable:
            if not store.trouble() or loop.time() >= end_s:
                raise
        await asyncio.sleep(_START_PAUSE_S)


async def _after_the_former(take: Callable[[], Held]) -> Held:
    """What one server at a time has, once the one before has had a moment to end. Raises InUse."""
    loop = asyncio.get_running_loop()
    end_s, is_told = loop.time() + FORMER_PATIENCE_S, False
    while True:
        try:
            return take()
        except InUse as taken:
            if loop.time() >= end_s:
                raise
            if not is_told:
                log.warning("%s: waiting for its end", taken)
            is_told = True
        await asyncio.sleep(_FORMER_PAUSE_S)


def _occupied(data_dir: Path) -> FileLock:
    """Whatever the store is, keys, socket and kubeconfig are there: a second server would take them over."""
    try:
        return FileLock(data_dir / LOCK_NAME)
    except HeldByAnother as taken:
        raise InUse(f"{data_dir} is in use by process {taken.holder} (--data-dir names another)") from None


async def _listen(listener: Listener, local: SocketListener, options: ServingOptions) -> None:
    """On both or on none."""
    try:
        await listener.open(options.host, options.port)
    except OSError as refused:
        raise _no_address(options, refused) from refused
    if options.socket:
        try:
            await local.open(options.data_dir / SOCKET_NAME)
        except OSError:
            await listener.close()
            raise


def _no_address(options: ServingOptions, refused: OSError) -> OSError:
    what = f"cannot listen on {options.host or '*'} port {options.port}"
    match refused.errno:
        case errno.EADDRINUSE:
            why = f"{os_reason(refused)} (port 0 picks a free one)"
        case errno.EADDRNOTAVAIL:
            why = "this is no address of this machine"
        case errno.ETIMEDOUT:
            why = "no name server has told its address"
        case _:
            why = os_reason(refused)
    return OSError(refused.errno, f"{what}: {why}")


def _reached_as(options: ServingOptions) -> tuple[str, ...]:
    return (*((options.host,) if options.host not in ("", "0.0.0.0", "::") else ()), *options.names)


async def _shared_authority(store: Store, data_dir: Path, options: ServingOptions) -> Authority:
    """The authority of the store's cluster; of the data directory if the store has none yet."""
    found = await store.get(_AUTHORITY_KEY)
    if found is not None:
        authority = _read_shared(found.value)
        keep_authority(data_dir, authority)
        return authority
    authority = open_authority(data_dir, options.server.clock.now())
    if options.store.startswith("etcd:"):
        await store.transact([Compare(_AUTHORITY_KEY, 0)], [Put(_AUTHORITY_KEY, authority.to_bytes())])
        return await _shared_authority(store, data_dir, options)
    return authority


def _read_shared(record: bytes) -> Authority:
    try:
        authority = Authority.from_bytes(record)
        authority.check()
    except ValueError as wrong:
        raise ValueError(
            f"the store's record {_AUTHORITY_KEY} cannot be read ({wrong}): restore it, or remove it and "
            "the next server to start writes that of its data directory"
        ) from None
    return authority


def _write_kubeconfig(serving: Serving) -> None:
    authority, admin = serving.authority, identities.ADMIN
    groups = identities.well_known_groups(admin.name)
    now = serving.api.clock.now()
    pair = authority.client(admin.name, groups, now)
    record_issued(serving.options.data_dir, pair, admin.name, groups, now)
    text = Kubeconfig(serving.url, authority.ca.certificate, admin.name, pair).text()
    write_file(serving.kubeconfig, text.encode())


async def _sealed(store: Store, encryption: Encryption | None) -> Store:
    if encryption is None:
        return await sealed_store(store, None, _SECRET)
    return await sealed_store(store, encryption.key_file, _SECRET, rewrite_all=encryption.rewrite)


def _opened_audit(options: ServingOptions) -> Auditor | None:
    if options.audit is None:
        return None
    return open_audit(options.audit, options.server.clock, options.server.ids)


def _authenticate(api: ApiServer, audit: Auditor | None) -> Authenticate:
    """Who is calling: by the certificate of the connection, else by the token of the request."""
    authenticator = Authenticator(
        api.tokens(), api.revocations, anonymous_health=api.options.anonymous_health
    )

    def who(request: Request, peer: Peer) -> User:
        try:
            return authenticator.authenticate(
                peer.certified(), request.headers, request.path, api.clock.now()
            )
        except errors.Unauthorized as refused:
            if audit is not None:
                audit.answered(Answered(request, None, None, None, 0.0), error_response(refused))
            raise

    return who
