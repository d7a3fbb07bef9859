"""From a key file to a store."""

import logging
from collections.abc import Sequence
from pathlib import Path

from ..contract import Store
from .keys import read_keys
from .rewriting import require_keys, rewrite

log = logging.getLogger(__name__)


async def sealed_store(
    store: Store, key_file: Path | None, prefixes: Sequence[str], *, rewrite_all: bool = False
) -> Store:
    """`store`, with what lies below `prefixes` encrypted if there is a key file.

    Raises BadKeys, before anything is written, if something there is encrypted with another key. With
    `rewrite_all` the first key is the only one in use afterwards.
    """
    if key_file is None:
        await require_keys(store, (), prefixes)
        return store
    from .engine import SealedStore
    from .envelope import Seals

    seals = Seals(read_keys(key_file))
    await require_keys(store, seals.known, prefixes)
    if rewrite_all:
        count = await rewrite(store, seals, prefixes)
        log.info("%d records were encrypted anew: all are with key %s", count, seals.current)
    return SealedStore(store, seals, prefixes)
