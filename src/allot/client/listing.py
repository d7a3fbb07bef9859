"""A list, from bytes to objects. The objects stay encoded: whoever needs one decodes it."""

from dataclasses import dataclass

import msgspec

from allot.api import Object, errors


@dataclass(frozen=True, slots=True)
class Page:
    """A list, or a part of one: `continue_token` asks for the next part."""

    objects: tuple[Object, ...]
    resource_version: str
    continue_token: str = ""
    remaining: int | None = None


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_token: str = msgspec.field(name="continue", default="")
    remaining_item_count: int | None = None


class _List(msgspec.Struct, rename="camel"):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None
    kind: str = ""
    api_version: str = ""


_list_decoder = msgspec.json.Decoder(_List)


def read_page(body: bytes) -> Page:
    try:
        read = _list_decoder.decode(body)
    except msgspec.MsgspecError as broken:
        raise errors.Internal(f"the server sent a list that cannot be read: {broken}") from broken
    raws = [bytes(item) for item in read.items or ()]
    if raws and read.kind.endswith("List") and not Object(raws[0]).kind:
        # A server may leave out of the items what the list says for all of them.
        head = f'{{"kind":"{read.kind.removesuffix("List")}","apiVersion":"{read.api_version}",'.encode()
        raws = [head + raw[1:] for raw in raws]
    meta = read.metadata
    return Page(
        tuple(Object(raw) for raw in raws),
        meta.resource_version,
        meta.continue_token,
        meta.remaining_item_count,
    )
