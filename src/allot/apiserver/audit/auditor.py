"""The one place that is told of every answer."""

from collections.abc import Callable
from datetime import timedelta

import msgspec

from allot.api import Request, Response, User
from allot.base import Clock, Ids, Metrics

from ..requests.target import Target
from .event import Happened, left_out_line, line_of, lost_line
from .flood import Flood, LeftOut
from .logfile import LogFile
from .policy import Level, is_recorded, is_refused
from .settings import AuditSettings
from .writer import Writer


class Answered(msgspec.Struct, frozen=True):
    """A request, who sent it and for whom, what it named, and how long the answer took."""

    request: Request
    caller: User | None
    acting_as: User | None  # if not for themselves
    target: Target | None
    seconds: float
    in_dry_run: bool = False  # of a transaction, which says so for its members
    transaction: str = ""  # the id of the one that it is a part of


class _Status(msgspec.Struct):
    reason: str = ""


class Auditor:
    def __init__(self, writer: Writer, level: Level, clock: Clock, ids: Ids) -> None:
        self._writer = writer
        self._level = level
        self._clock = clock
        self._ids = ids
        self._flood = Flood()

    def new_id(self) -> str:
        """For a request whose id has to be known before it is answered."""
        return self._ids.uid()

    def answered(self, what: Answered, response: Response) -> Response:
        """Record it if the policy says so. What is recorded tells the caller under which id."""
        request, target, code = what.request, what.target, response.status
        named = what.acting_as is not None
        if not is_recorded(self._level, target, request.method, code, in_another_name=named):
            return response
        now = self._clock.now()
        for left_out in self._flood.moved_on(now):
            self._tell_left_out(left_out)
        if is_refused(code) and not self._flood.admits(what.caller.name if what.caller else ""):
            return response
        happened = Happened(
            request.audit_id or self.new_id(),
            request.method,
            request.path,
            request.source,
            request.headers.get("user-agent", ""),
            what.caller,
            what.acting_as,
            target,
            _created(target, response),
            what.in_dry_run or bool(request.query.get("dryRun")),
            what.transaction,
            code,
            _reason(response),
            now - timedelta(seconds=what.seconds),
            now,
        )
        self._writer.put(line_of(happened))
        return msgspec.structs.replace(response, headers=(*response.headers, ("Audit-Id", happened.id)))

    def show(self, metrics: Metrics) -> None:
        """Names are upstream's where upstream has them."""
        writer = self._writer
        readings: list[tuple[str, str, Callable[[], float]]] = [
            ("apiserver_audit_event_total", "Lines written to the audit log.", lambda: writer.written),
            ("apiserver_audit_error_total", "Writes that its disk refused.", lambda: writer.failures),
            ("allot_audit_lost_total", "Lines that found no room.", lambda: writer.lost),
            ("allot_audit_waiting_bytes", "Waiting to be written.", lambda: writer.waiting_bytes),
        ]
        for reading in readings:
            metrics.reading(*reading)

    def close(self) -> None:
        for left_out in self._flood.rest():
            self._tell_left_out(left_out)
        self._writer.close()

    def _tell_left_out(self, one: LeftOut) -> None:
        self._writer.put(left_out_line(one.user, one.refusals, one.since, self._clock.now()))


def open_audit(settings: AuditSettings, clock: Clock, ids: Ids) -> Auditor:
    """Raises OSError when the file cannot be written."""
    file = LogFile(settings.path, settings.file_bytes_max, settings.backups)
    writer = Writer(file, lambda count, why: lost_line(count, why, clock.now()))
    return Auditor(writer, settings.level, clock, ids)


def _created(target: Target | None, response: Response) -> str:
    """The name of what was created: its path does not have it."""
    if target is None or target.verb != "create" or response.object is None:
        return ""
    return response.object.name


def _reason(response: Response) -> str:
    if response.status < 400:
        return ""
    try:
        return msgspec.json.decode(response.body, type=_Status).reason
    except msgspec.DecodeError:
        return ""
