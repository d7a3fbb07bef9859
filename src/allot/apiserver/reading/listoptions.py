"""What the query of a list or a watch asks for, and which questions make no sense."""

from typing import NamedTuple

from allot.api import Request, errors, field

from .watching import WatchOptions

WATCH_S_MAX = 3600.0
"""Whoever wants to see more comes again, and is asked again who they are."""
REVISION_MAX = (1 << 63) - 1


class ListOptions(NamedTuple):
    limit: int
    token: str
    revision: int | None  # None: not given
    match: str  # "", Exact or NotOlderThan


def read_list_options(request: Request) -> ListOptions:
    query = request.query
    limit, token = _number(query.get("limit", ""), "limit"), query.get("continue", "")
    text, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    revision = read_revision(text) if text else None
    problem = _match_problem(match, revision, token, query.get("sendInitialEvents", ""), watching=False)
    if problem is not None:
        raise field.refusal("meta.k8s.io", "ListOptions", "", [problem])
    if token and revision:
        raise errors.BadRequest("specifying resource version is not allowed when using continue")
    return ListOptions(limit, token, revision, match)


def read_watch_options(request: Request) -> tuple[WatchOptions, int | None]:
    """The options, and the revision the cache must have reached (None: the newest)."""
    query = request.query
    text, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    revision = read_revision(text) if text else None
    initial = query.get("sendInitialEvents", "")
    problem = _match_problem(match, revision, "", initial, watching=True)
    if problem is not None:
        raise field.refusal("meta.k8s.io", "ListOptions", "", [problem])
    seconds = _number(query.get("timeoutSeconds", ""), "timeoutSeconds")
    bookmarks = request.asks_for("allowWatchBookmarks")
    wants_initial = bool(initial) and request.asks_for("sendInitialEvents")
    begins_with_state = wants_initial or (initial == "" and not revision)
    options = WatchOptions(
        None if begins_with_state else (revision or None),
        bookmarks,
        wants_initial and bookmarks,
        min(float(seconds), WATCH_S_MAX),
    )
    return options, revision if text else None


def _match_problem(
    match: str, revision: int | None, token: str, initial: str, *, watching: bool
) -> field.FieldError | None:
    path = field.Path("resourceVersionMatch")
    if initial and not watching:
        return field.forbidden(field.Path("sendInitialEvents"), "sendInitialEvents is forbidden for list")
    if initial and match != "NotOlderThan":
        return field.forbidden(
            path, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        )
    if not match:
        return None
    if match not in ("Exact", "NotOlderThan"):
        return field.unsupported(path, match, ["Exact", "NotOlderThan"])
    if watching:
        return None if initial else field.forbidden(path, "resourceVersionMatch is forbidden for watch")
    if token:
        return field.forbidden(path, "resourceVersionMatch is forbidden when continue is provided")
    if revision is None:
        return field.forbidden(path, "resourceVersionMatch is forbidden unless resourceVersion is provided")
    if match == "Exact" and revision == 0:
        return field.forbidden(path, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
    return None


def read_revision(text: str) -> int:
    if not text:
        return 0
    if not text.isascii() or not text.isdigit() or len(text) > 19 or int(text) > REVISION_MAX:
        raise field.refusal(
            "meta.k8s.io",
            "ListOptions",
            "",
            [field.invalid(field.Path("resourceVersion"), text[:64], "not a resource version")],
        )
    return int(text)


def _number(text: str, name: str) -> int:
    if not text:
        return 0
    if not text.lstrip("-").isdigit() or not text.isascii() or len(text) > 19:
        raise errors.BadRequest(f"{name} must be a whole number, not {text[:64]!r}")
    return max(0, int(text))
