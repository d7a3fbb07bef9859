"""What the API says when it says no.

    ApiError
      BadRequest          400   the request cannot be understood
      Unauthorized        401   nobody vouches for the caller
      Forbidden           403   the caller may not do this
      NotFound            404
      MethodNotAllowed    405
      NotAcceptable       406   no media type both sides speak
      Conflict            409   the object moved on; read again and retry
        AlreadyExists     409
      Gone                410   the revision asked for is compacted away: list again
        Expired           410   likewise, for a continue token or a watch
      TooLarge            413
      UnsupportedMedia    415
      Invalid             422   the object breaks a rule; `causes` name the fields
      TooManyRequests     429   try again after `retry_after_s`
      Internal            500   a bug of ours
      Unavailable         503   the store is away; retry
      Timeout             504   unknown outcome; read before retrying

The type says whether to retry; nobody parses messages. Every error can be shown
as a Kubernetes `Status` object and read back from one.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple


class Cause(NamedTuple):
    reason: str  # FieldValueRequired, FieldValueInvalid, ...
    message: str
    field: str


class ApiError(Exception):
    code: ClassVar[int] = 500
    reason: ClassVar[str] = "InternalError"

    def __init__(
        self,
        message: str,
        *,
        group: str = "",
        kind: str = "",
        name: str = "",
        uid: str = "",
        causes: Sequence[Cause] = (),
        retry_after_s: int = 0,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.group = group
        self.kind = kind
        self.name = name
        self.uid = uid
        self.causes = tuple(causes)
        self.retry_after_s = retry_after_s

    def status(self) -> dict[str, Any]:
        """The error as a Kubernetes Status object."""
        details: dict[str, Any] = {}
        if self.name:
            details["name"] = self.name
        if self.group:
            details["group"] = self.group
        if self.kind:
            details["kind"] = self.kind
        if self.uid:
            details["uid"] = self.uid
        if self.causes:
            details["causes"] = [_cause(cause) for cause in self.causes]
        if self.retry_after_s:
            details["retryAfterSeconds"] = self.retry_after_s
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if details or self.code == NotFound.code:  # kubectl looks into those of a 404 without asking
            status["details"] = details
        status["code"] = self.code
        return status


def _cause(cause: Cause) -> dict[str, str]:
    shown = {"reason": cause.reason, "message": cause.message}
    return {**shown, "field": cause.field} if cause.field else shown


class BadRequest(ApiError):
    code, reason = 400, "BadRequest"


class Unauthorized(ApiError):
    code, reason = 401, "Unauthorized"


class Forbidden(ApiError):
    code, reason = 403, "Forbidden"


class NotFound(ApiError):
    code, reason = 404, "NotFound"


class MethodNotAllowed(ApiError):
    code, reason = 405, "MethodNotAllowed"


class NotAcceptable(ApiError):
    code, reason = 406, "NotAcceptable"


class Conflict(ApiError):
    code, reason = 409, "Conflict"


class AlreadyExists(Conflict):
    code, reason = 409, "AlreadyExists"


class Gone(ApiError):
    code, reason = 410, "Gone"


class Expired(Gone):
    code, reason = 410, "Expired"


class TooLarge(ApiError):
    code, reason = 413, "RequestEntityTooLarge"


class UnsupportedMedia(ApiError):
    code, reason = 415, "UnsupportedMediaType"


class Invalid(ApiError):
    code, reason = 422, "Invalid"


class TooManyRequests(ApiError):
    code, reason = 429, "TooManyRequests"


class Internal(ApiError):
    code, reason = 500, "InternalError"


class Unavailable(ApiError):
    code, reason = 503, "ServiceUnavailable"


class Timeout(ApiError):
    code, reason = 504, "Timeout"


_BY_REASON: Mapping[str, type[ApiError]] = {
    error.reason: error
    for error in (
        BadRequest, Unauthorized, Forbidden, NotFound, MethodNotAllowed, NotAcceptable, Conflict,
        AlreadyExists, Gone, Expired, TooLarge, UnsupportedMedia, Invalid, TooManyRequests, Internal,
        Unavailable, Timeout,
    )
}  # fmt: skip
_BY_CODE: Mapping[int, type[ApiError]] = {error.code: error for error in reversed(list(_BY_REASON.values()))}


def from_status(status: Mapping[str, Any], code: int = 0) -> ApiError:
    """The error that a Status object describes. Unknown reasons fall back to the HTTP code."""
    code = int(status.get("code") or code or 500)
    kind = _BY_REASON.get(str(status.get("reason", ""))) or _BY_CODE.get(code, ApiError)
    details = status.get("details") or {}
    return kind(
        str(status.get("message", "")),
        group=str(details.get("group", "")),
        kind=str(details.get("kind", "")),
        name=str(details.get("name", "")),
        uid=str(details.get("uid", "")),
        causes=[
            Cause(str(c.get("reason", "")), str(c.get("message", "")), str(c.get("field", "")))
            for c in details.get("causes") or ()
        ],
        retry_after_s=int(details.get("retryAfterSeconds") or 0),
    )
