"""Calls to an etcd cluster: which member, with which token, and what a failure means.

Where it sits
    `engine` and `watch` call through here and see four failures only: `NotDone`, `Lost`
    and the contract's own. All knowledge of etcd's error texts is in `verdict`.

Which member
    All calls go to one member until it fails; then to the next. gRPC could choose by
    itself, but only among addresses of one name, and TLS wants the name.

How long a silence is waited for
    PATIENCE_S from its beginning, whoever asks: while it lasts, later calls are answered
    at once. What was sent, and may have been done, is asked after for longer.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from enum import Enum, auto
from typing import Any, Final, Generic, NamedTuple, TypeVar

import grpc
from google.protobuf.message import Message

from ..contract import OutcomeUnknown, TooLarge, Unavailable
from . import allot_etcd_pb2 as pb
from .address import Address
from .origin import Origin

log = logging.getLogger(__name__)

ATTEMPT_S_LEAST = 0.5
ATTEMPT_S = 2.0  # where another attempt is harmless: requests vanish while a leader is being elected
ONLY_ATTEMPT_S = 8.0  # where it is not; etcd itself gives up after seven
PATIENCE_S = 3.0  # an election takes two or three seconds
PATIENCE_WHEN_LOST = 4  # times as long
PAUSE_S, PAUSE_S_MAX = 0.05, 1.0

CHANNEL_OPTIONS: Final = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
]

REQUIRE_LEADER: Final = ("hasleader", "true")
"""A member that has lost its leader goes silent; asked this way it says so instead."""

Answer = TypeVar("Answer", bound=Message)


class Method(NamedTuple, Generic[Answer]):
    path: str
    answer: type[Answer]


RANGE: Final = Method("/etcdserverpb.KV/Range", pb.RangeResponse)
TXN: Final = Method("/etcdserverpb.KV/Txn", pb.TxnResponse)
COMPACT: Final = Method("/etcdserverpb.KV/Compact", pb.CompactionResponse)
WATCH: Final = Method("/etcdserverpb.Watch/Watch", pb.WatchResponse)
AUTHENTICATE: Final = Method("/etcdserverpb.Auth/Authenticate", pb.AuthenticateResponse)


LINEARIZABLE: Final = (RANGE, TXN)


class NotDone(Exception):
    """The call had no effect; another attempt may have."""


class Lost(Exception):
    """The call was on its way and no answer came back."""


class RevisionCompacted(Exception):
    """etcd no longer has that revision."""


class Verdict(Enum):
    """What a failed call tells."""

    NOT_DONE = auto()
    LOST = auto()
    REFUSED = auto()  # not done, and trying again will not help
    BAD_TOKEN = auto()
    COMPACTED = auto()
    FUTURE = auto()
    TOO_LARGE = auto()


BY_TEXT: Final = (
    ("required revision has been compacted", Verdict.COMPACTED),
    ("required revision is a future revision", Verdict.FUTURE),
    ("request is too large", Verdict.TOO_LARGE),
    ("too many operations in txn request", Verdict.TOO_LARGE),
    ("trying to send message larger than max", Verdict.TOO_LARGE),
    ("invalid auth token", Verdict.BAD_TOKEN),
    ("revision of auth store is old", Verdict.BAD_TOKEN),
    ("failed to connect to all addresses", Verdict.NOT_DONE),
    ("etcdserver: no leader", Verdict.NOT_DONE),
    ("etcdserver: too many requests", Verdict.NOT_DONE),
    ("etcdserver: permission denied", Verdict.REFUSED),
    ("etcdserver: user name is empty", Verdict.REFUSED),
)

BY_CODE: Final = {
    grpc.StatusCode.UNAVAILABLE: Verdict.LOST,
    grpc.StatusCode.DEADLINE_EXCEEDED: Verdict.LOST,
    grpc.StatusCode.CANCELLED: Verdict.LOST,
    grpc.StatusCode.INTERNAL: Verdict.LOST,
    grpc.StatusCode.UNKNOWN: Verdict.LOST,
    grpc.StatusCode.ABORTED: Verdict.LOST,
}


def verdict(code: grpc.StatusCode, text: str) -> Verdict:
    """In doubt a call is lost, never undone; what etcd refused outright stays refused."""
    for part, meaning in BY_TEXT:
        if part in text:
            return meaning
    return BY_CODE.get(code, Verdict.REFUSED)


class Connection:
    def __init__(self, address: Address) -> None:
        self._address = address
        self._credentials = _credentials(address)
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._current = 0
        self._token = ""
        self.silence = ""  # in words, from the first call without an answer to the next with one
        self._silent_since_s = 0.0
        self.origin = Origin()
        self._authenticating = asyncio.Lock()

    async def read(self, method: Method[Answer], request: Message) -> Answer:
        """A call that changes nothing, tried again until it is answered or patience ends."""
        problem: Exception = Unavailable("no attempt was made")
        async for waited_s in self.patience():
            within_s = max(ATTEMPT_S_LEAST, min(ATTEMPT_S, PATIENCE_S - waited_s))
            try:
                return await self.attempt(method, request, within_s)
            except (NotDone, Lost) as error:
                problem = error
        raise Unavailable(f"etcd does not answer: {problem}", soon=False)

    async def look(self, key: bytes) -> pb.RangeResponse:
        """Whether it answers, and at which revision it is; `key` is one that we may read."""
        return await self.read(RANGE, pb.RangeRequest(key=key))

    async def attempt(self, method: Method[Answer], request: Message, within_s: float = ATTEMPT_S) -> Answer:
        """One call to one member."""
        if self.origin.lost:
            raise Unavailable(self.origin.lost, soon=False)
        member, before = self._current, self.origin.revision
        metadata = await self._metadata()
        call = self._channel().unary_unary(
            method.path, request_serializer=_encode, response_deserializer=method.answer.FromString
        )
        try:
            answer: Answer = await call(request, timeout=within_s, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            raise self._as_store_error(error, member) from error
        if method in LINEARIZABLE and not self.origin.is_ours(answer, before):
            if method is TXN:
                raise OutcomeUnknown(self.origin.lost)
            raise Unavailable(self.origin.lost, soon=False)
        if self.silence:
            self.silence = ""
            log.warning("etcd answers again")
        return answer

    def _as_store_error(self, error: grpc.aio.AioRpcError, member: int) -> Exception:
        """The failure in our words; calls go to the next member if this one seems unwell."""
        text = error.details() or str(error.code())
        meaning = verdict(error.code(), text)
        if meaning in (Verdict.NOT_DONE, Verdict.LOST):
            self._tell_of_silence(member, text)
            self.leave(member)
        match meaning:
            case Verdict.LOST:
                return Lost(text)
            case Verdict.NOT_DONE:
                return NotDone(text)
            case Verdict.BAD_TOKEN:
                self._token = ""
                return NotDone(text)
            case Verdict.COMPACTED:
                return RevisionCompacted(text)
            case Verdict.FUTURE:
                return ValueError(text)
            case Verdict.TOO_LARGE:
                return TooLarge(f"etcd refused: {text}")
            case Verdict.REFUSED:
                return Unavailable(f"etcd refused: {text}", soon=False)

    def _tell_of_silence(self, member: int, text: str) -> None:
        """Once, until it answers again: whoever waits should know for what."""
        if not self.silence:
            self._silent_since_s = asyncio.get_running_loop().time()
            self.silence = f"etcd at {self._address.endpoints[member]} does not answer: {text}"
            log.warning("etcd at %s does not answer, trying on: %s", self._address.endpoints[member], text)

    async def patience(self, times: int = 1) -> AsyncIterator[float]:
        """One attempt at least, and others, each a little later, until patience ends. Yields how long
        there was no answer."""
        loop = asyncio.get_running_loop()
        began_s = self._silent_since_s if self.silence else loop.time()
        pause_s = PAUSE_S
        while True:
            yield loop.time() - began_s
            if loop.time() + pause_s > began_s + times * PATIENCE_S:
                return
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, PAUSE_S_MAX)

    async def stream(self, method: Method[Answer]) -> Any:
        """Open a stream in both directions to the current member."""
        call = self._channel().stream_stream(
            method.path, request_serializer=_encode, response_deserializer=method.answer.FromString
        )
        return call(metadata=await self._metadata())

    @property
    def member(self) -> int:
        return self._current

    def leave(self, member: int) -> None:
        """Go on to the next member, unless somebody else already did."""
        if member == self._current:
            self._current = (self._current + 1) % len(self._address.endpoints)

    def expire_token(self) -> None:
        self._token = ""

    async def _metadata(self) -> Sequence[tuple[str, str]]:
        if not self._address.user:
            return (REQUIRE_LEADER,)
        async with self._authenticating:
            if not self._token:
                self._token = await self._authenticate()
        return (REQUIRE_LEADER, ("token", self._token))

    async def _authenticate(self) -> str:
        member = self._current
        call = self._channel().unary_unary(
            AUTHENTICATE.path,
            request_serializer=_encode,
            response_deserializer=AUTHENTICATE.answer.FromString,
        )
        who = pb.AuthenticateRequest(name=self._address.user, password=self._address.password)
        try:
            answer = await call(who, timeout=ATTEMPT_S)
        except grpc.aio.AioRpcError as error:
            told = self._as_store_error(error, member)
            raise NotDone(str(told)) if isinstance(told, Lost) else told from error
        return str(answer.token)

    def _channel(self) -> grpc.aio.Channel:
        """Made on first use: a channel belongs to the loop it was made on."""
        endpoint = self._address.endpoints[self._current]
        channel = self._channels.get(endpoint)
        if channel is None:
            if self._credentials is None:
                channel = grpc.aio.insecure_channel(endpoint, options=CHANNEL_OPTIONS)
            else:
                channel = grpc.aio.secure_channel(endpoint, self._credentials, options=CHANNEL_OPTIONS)
            self._channels[endpoint] = channel
        return channel

    async def close(self) -> None:
        for channel in self._channels.values():
            await channel.close()


def _encode(message: Message) -> bytes:
    return message.SerializeToString()


def _credentials(address: Address) -> grpc.ChannelCredentials | None:
    if not address.tls:
        return None
    return grpc.ssl_channel_credentials(
        root_certificates=address.ca.read_bytes() if address.ca else None,
        private_key=address.private_key.read_bytes() if address.private_key else None,
        certificate_chain=address.certificate.read_bytes() if address.certificate else None,
    )
