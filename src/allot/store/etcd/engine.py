"""Reads and transactions on etcd.

etcd's own key space has the contract's shape: one revision, compare and write, ranges
at a revision. What remains is to be honest about answers that never came.

What happened to a transaction without an answer
    Most transactions compare a key that they also write. Such a transaction can take
    effect once only, for it changes what it compares: so it is simply sent again. If
    it is then refused, either its first sending did take effect, which the value shows,
    or somebody else's write came first. A transaction that guards nothing in this way is
    never sent twice; what it wrote is looked for, and if that is not there nobody knows
    (`OutcomeUnknown`), for it might still arrive.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from allot.base import require

from ..contract import (
    Change,
    Committed,
    Compacted,
    Compare,
    Entry,
    OutcomeUnknown,
    Page,
    Put,
    Refused,
    Revise,
    Unavailable,
    Write,
)
from ..keyspace import require_distinct, settled
from ..order import just_after
from . import allot_etcd_pb2 as pb
from . import connection
from .address import Address
from .connection import (
    ATTEMPT_S,
    COMPACT,
    ONLY_ATTEMPT_S,
    PATIENCE_WHEN_LOST,
    RANGE,
    TXN,
    Connection,
    Lost,
    NotDone,
    RevisionCompacted,
)
from .watch import EtcdWatch

PAGE = 2_000  # entries asked for in one call
REVISIONS_MAX = 16
"""How often a transaction that revises a key may find that another was faster, before it is refused."""


class EtcdStore:
    def __init__(self, address: Address) -> None:
        self._connection = Connection(address)
        self._prefix = address.prefix + "/"  # so that /allot does not see what is below /allot2
        self._watches: set[EtcdWatch] = set()
        self._closed = False

    # -- reading -----------------------------------------------------------------------------------

    async def get(self, key: str) -> Entry | None:
        self._require_open()
        answer = await self._connection.read(RANGE, pb.RangeRequest(key=self._key(key)))
        return self._entry(answer.kvs[0]) if answer.kvs else None

    def peek(self, key: str) -> Entry | None:
        return None

    async def revision(self) -> int:
        self._require_open()
        answer = await self._connection.look(self._key(""))
        return answer.header.revision

    async def range(self, prefix: str, *, after: str = "", limit: int = 0, at: int = 0) -> Page:
        self._require_open()
        start = max(prefix, just_after(after)) if after else prefix
        async for _ in self._connection.patience():
            try:
                return await self._range(prefix, start, limit, at)
            except RevisionCompacted:
                # Reading the present in pieces, compaction can overtake us: begin again.
                if at:
                    raise Compacted(at) from None
        raise Unavailable("compaction overtook every attempt to read")

    async def _range(self, prefix: str, start: str, limit: int, at: int) -> Page:
        entries: list[Entry] = []
        key, end = self._key(start), _end(self._key(prefix))
        total, more = 0, True
        while more and (not limit or len(entries) < limit):
            count = min(limit - len(entries), PAGE) if limit else PAGE
            asked = pb.RangeRequest(key=key, range_end=end, limit=count, revision=at)
            answer = await self._connection.read(RANGE, asked)
            at = at or answer.header.revision
            total = total or answer.count
            entries += map(self._entry, answer.kvs)
            more = answer.more
            key = answer.kvs[-1].key + b"\0" if answer.kvs else key
        return Page(entries, at, more, max(0, total - len(entries)))

    def watch(self, prefix: str, after: int) -> EtcdWatch:
        self._require_open()
        key = self._key(prefix)
        watch = EtcdWatch(self._connection, key, _end(key), len(self._prefix), after, self._watches.discard)
        self._watches.add(watch)
        return watch

    # -- writing -----------------------------------------------------------------------------------

    async def transact(self, compares: Sequence[Compare], changes: Sequence[Change]) -> Committed | Refused:
        self._require_open()
        require_distinct(changes)
        revised = {change.key for change in changes if isinstance(change, Revise)}
        for _ in range(REVISIONS_MAX):
            seen = {key: await self.get(key) for key in revised}
            read = [Compare(key, entry.revision if entry else 0) for key, entry in seen.items()]
            values = {key: entry.value for key, entry in seen.items() if entry}
            conditions = [*compares, *read]
            outcome: Committed | Refused
            try:
                writes = settled(changes, values.get)
            except Exception:
                refused = await self._refused(conditions)
                if refused is None:
                    raise  # it says no, and all that it says no to is true
                outcome = refused
            else:
                outcome = await self._transact(conditions, writes)
            if isinstance(outcome, Committed) or not outcome.current.keys() <= revised:
                break
        return outcome

    async def _refused(self, compares: Sequence[Compare]) -> Refused | None:
        """What a transaction without writes would be told if it were refused now."""
        answer = await self._connection.read(TXN, self._request(compares, []))
        return None if answer.succeeded else Refused(self._differing(compares, answer))

    async def _transact(self, compares: Sequence[Compare], writes: Sequence[Write]) -> Committed | Refused:
        request = self._request(compares, writes)
        guards = _guards(compares, writes)
        # Sent again, a write is recognised by its value; a deletion is not.
        recognisable = any(isinstance(write, Put) for write in guards.values())
        within_s = ATTEMPT_S if recognisable else ONLY_ATTEMPT_S
        lost: Lost | None = None
        problem: NotDone | None = None
        async for waited_s in self._connection.patience(PATIENCE_WHEN_LOST):
            if problem is not None and lost is None and waited_s > connection.PATIENCE_S:
                break
            try:
                answer = await self._connection.attempt(TXN, request, within_s)
            except Lost as error:
                lost = error
                if not guards:
                    return await self._look_for(writes, error)
            except NotDone as error:
                problem = error
            else:
                if answer.succeeded:
                    return Committed(answer.header.revision)
                refused = Refused(self._differing(compares, answer))
                return refused if lost is None else _resolved(refused, guards, lost)
        if lost is not None:
            raise OutcomeUnknown(f"etcd did not answer: {lost}")
        raise Unavailable(f"etcd does not answer: {problem}", soon=False)

    def _request(self, compares: Sequence[Compare], writes: Sequence[Write]) -> pb.TxnRequest:
        request = pb.TxnRequest()
        for compare in compares:
            key = self._key(compare.key)
            request.compare.add(target=pb.Compare.MOD, key=key, mod_revision=compare.revision)
            request.failure.add(request_range=pb.RangeRequest(key=key))
        for write in writes:
            if isinstance(write, Put):
                request.success.add(request_put=pb.PutRequest(key=self._key(write.key), value=write.value))
            else:
                request.success.add(request_delete_range=pb.DeleteRangeRequest(key=self._key(write.key)))
        return request

    def _differing(self, compares: Sequence[Compare], answer: pb.TxnResponse) -> dict[str, Entry | None]:
        found: dict[str, Entry | None] = {}
        for compare, response in zip(compares, answer.responses, strict=True):
            kvs = response.response_range.kvs
            entry = self._entry(kvs[0]) if kvs else None
            if (entry.revision if entry is not None else 0) != compare.revision:
                found[compare.key] = entry
        require(bool(found), "a refused transaction differs somewhere")
        return found

    async def _look_for(self, writes: Sequence[Write], lost: Lost) -> Committed:
        """Everything as we wrote it, all at one revision: then it was us."""
        found = [await self.get(write.key) for write in writes if isinstance(write, Put)]
        wanted = [write.value for write in writes if isinstance(write, Put)]
        revisions = {entry.revision for entry in found if entry is not None}
        values = [entry.value for entry in found if entry is not None]
        if values == wanted and len(revisions) == 1:
            return Committed(revisions.pop())
        raise OutcomeUnknown(f"etcd did not answer: {lost}")

    def trouble(self) -> str:
        if self._closed:
            return "the store is closed"
        return self._connection.origin.lost or self._connection.silence

    async def lost(self) -> str:
        return await self._connection.origin.wait_lost()

    async def compact(self, revision: int) -> None:
        self._require_open()
        with suppress(RevisionCompacted):  # by another API server on the same etcd
            await self._connection.read(COMPACT, pb.CompactionRequest(revision=revision))

    async def scrub(self) -> None:
        """The files are etcd's: `etcdctl defrag`."""
        self._require_open()

    async def close(self) -> None:
        self._closed = True
        for watch in list(self._watches):
            watch.close()
        await self._connection.close()

    # -- keys --------------------------------------------------------------------------------------

    def _key(self, key: str) -> bytes:
        return (self._prefix + key).encode()

    def _entry(self, kv: pb.KeyValue) -> Entry:
        return Entry(kv.key.decode()[len(self._prefix) :], kv.value, kv.create_revision, kv.mod_revision)

    def _require_open(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed")


def _end(prefix: bytes) -> bytes:
    """The smallest key greater than every key with this prefix, which is not empty. Text has no byte 0xff."""
    return prefix[:-1] + bytes([prefix[-1] + 1])


def _guards(compares: Sequence[Compare], writes: Sequence[Write]) -> Mapping[str, Write]:
    """Writes that undo the transaction's own conditions, so that it cannot take effect twice."""
    revisions = {compare.key: compare.revision for compare in compares}
    return {
        write.key: write
        for write in writes
        if write.key in revisions and (isinstance(write, Put) or revisions[write.key] > 0)
    }


def _resolved(refused: Refused, guards: Mapping[str, Write], lost: Lost) -> Committed | Refused:
    """A lost transaction, sent again, was refused: by its own first sending, or by somebody else's write?"""
    if not guards.keys() <= refused.current.keys():
        return refused  # a guard stands as it was compared: the first sending had no effect
    # All of them, at one revision: of one alone, another writer may have written the same (a mark, a count).
    written = {key: write.value if isinstance(write, Put) else None for key, write in guards.items()}
    found = {key: refused.current[key] for key in guards}
    revisions = {entry.revision for entry in found.values() if entry is not None}
    are_ours = {key: entry and entry.value for key, entry in found.items()} == written
    if are_ours and len(revisions) == 1:
        return Committed(revisions.pop())
    raise OutcomeUnknown(f"etcd did not answer: {lost}")
