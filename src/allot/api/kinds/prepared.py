"""node.allot.dev/v1alpha1 PreparedClaims: what a node has made ready for its pods.

One object a node, named like it and written by it alone. A node lists a claim before it
prepares it and takes it off the list after it has unprepared it, so a claim that no node
lists is used by nobody, and its devices may be offered again (N2).
"""

from typing import Any

from ..custom import validate
from ..field import FieldError, Path, duplicate, required
from ..kind import Column, Fields, Kind, Rules, Version, WriteContext
from ..schema import from_structural
from .reading import items

GROUP = "node.allot.dev"
_CLAIMS = Path("status.claims")

_CLAIM: dict[str, Any] = {
    "type": "object",
    "required": ["uid"],
    "properties": {
        "uid": {"type": "string"},
        "namespace": {"type": "string"},  # for people: the uid is what counts
        "name": {"type": "string"},
    },
}
_SHAPE = from_structural(
    {
        "type": "object",
        "properties": {
            "status": {
                "type": "object",
                "properties": {
                    "since": {"type": "string"},  # when the agent that speaks began
                    "claims": {
                        "type": "array",
                        "items": _CLAIM,
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["uid"],
                    },
                },
            }
        },
    }
)


def _validate(prepared: Fields) -> list[FieldError]:
    """What the keys of the list must be, then everything else that the shape says, down to every null."""
    return _check_claims(prepared) or validate(prepared, _SHAPE)


def _check_claims(prepared: Fields) -> list[FieldError]:
    found: list[FieldError] = []
    seen = set()
    for at, claim in enumerate(items(prepared, "status", "claims")):
        uid = (claim or {}).get("uid") or ""  # a null may stand where a claim belongs
        if not uid:
            found.append(required(_CLAIMS[at] / "uid"))
        elif uid in seen:
            found.append(duplicate(_CLAIMS[at] / "uid", uid))
        seen.add(uid)
    return found


def _validate_change(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    return _validate(new)


PREPARED_CLAIMS = Kind(
    group=GROUP,
    kind="PreparedClaims",
    plural="preparedclaims",
    singular="preparedclaims",
    versions=(Version("v1alpha1", "", custom=_SHAPE),),
    hub="v1alpha1",
    namespaced=False,
    has_status=True,
    status_on_create=True,
    rules=Rules(
        validate_create=lambda new, context: _validate(new),
        validate_update=_validate_change,
        validate_status=_validate_change,
    ),
    columns=(
        Column("Name", format="name", description="The name of the node."),
        Column("Claims", type="integer", description="How many claims the node has prepared."),
        Column("Age", description="How long ago the object was created."),
    ),
    cells=lambda prepared, age: [prepared["metadata"]["name"], len(items(prepared, "status", "claims")), age],
)

KINDS = (PREPARED_CLAIMS,)
