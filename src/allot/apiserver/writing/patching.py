"""patch: from the stored object and a wish to the object that is wanted.

The patch is applied to the object as the client's version shows it, and what
comes out takes the path of every update (`writing`). An apply may also create.
"""

from allot.api import Fields, Object, Response, errors, schema

from ..deciding.context import ServerWriteContext
from ..patch import json_patch, merge_patch, strategic_merge
from ..registry import Served
from ..requests.call import Call
from ..requests.negotiate import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, body_type
from ..requests.render import in_version
from .applying import Applier
from .body import Body, notes_of, respell, settle_type, settled
from .writer import Writer

_PURE = (MERGE_PATCH, STRATEGIC_PATCH)
"""They change nothing of what they are laid over."""
_KNOWN = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)


class Patcher:
    def __init__(self, writer: Writer, applier: Applier) -> None:
        self._writer = writer
        self._applier = applier

    async def patch(self, call: Call) -> Response:
        media = check_media(call)
        if media == APPLY_PATCH:
            return await self._applier.apply(call)

        def build(old: Object, context: ServerWriteContext) -> Body:
            current = _shared(old, call.served) if media in _PURE else in_version(old, call.served)
            wanted, notes = patched(call, current, call.served.version.shape())
            settle_type(call.served, wanted)
            return settled(call, wanted, context.now, notes, old.fields, patched=True)

        return (await self._writer.change(call, build)).response(call)


def _shared(old: Object, served: Served) -> Fields:
    """The object in the client's version, of which the patched one may keep parts as they are: what is the
    same need not be looked at again. Metadata is the patched object's own, the server writes into it."""
    is_kept = served.is_hub and served.version.defaults_by_part
    return old.opened() if is_kept else in_version(old, served)


def check_media(call: Call) -> str:
    media = body_type(call.request)
    if media not in _KNOWN:
        raise errors.UnsupportedMedia(
            "the body of the request was in an unknown format - accepted media types include: "
            + ", ".join(_KNOWN)
        )
    if media == STRATEGIC_PATCH and call.served.version.custom is not None:
        raise errors.UnsupportedMedia(
            f"custom resources know no strategic merge patch; send {MERGE_PATCH} or {APPLY_PATCH}"
        )
    return media


def patched(call: Call, current: Fields, shape: schema.Schema) -> tuple[Fields, list[str]]:
    """`current` after the patch in the body, both in the client's version; and notes on the patch."""
    media = check_media(call)
    notes: list[str] = []
    if media == JSON_PATCH:
        result = json_patch(current, schema.decode_value(call.request.body))
    else:
        decoded = schema.decode(call.request.body, find_duplicates=call.field_validation != "Ignore")
        patch, notes = decoded.fields, notes_of(decoded)
        respell(call, patch)
        result = (
            merge_patch(current, patch) if media == MERGE_PATCH else strategic_merge(current, patch, shape)
        )
    if not isinstance(result, dict):
        raise errors.Invalid("the patched object is no object")
    respell(call, result)  # what single steps of a JSON patch made
    return result, notes
