"""What /healthz, /livez and /readyz look at."""

from collections.abc import Callable, Mapping

from allot.store import Store, StoreError

from .pages import Check
from .reading.cache import Caches

_TROUBLES_SHOWN_MAX = 8
_TROUBLE_LENGTH_MAX = 200


def checks(store: Store, caches: Caches, is_ready: Callable[[], bool]) -> Mapping[str, Check]:
    """Each says what is wrong, or None."""

    async def ping() -> str | None:
        return None

    async def the_store() -> str | None:
        if trouble := store.trouble():
            return trouble
        try:
            await store.revision()
        except StoreError as away:
            return str(away)
        return None

    async def started() -> str | None:
        return None if is_ready() else "still starting"

    async def objects() -> str | None:
        troubles = caches.troubles()
        shown = [f"{key} is passed over: {why[:_TROUBLE_LENGTH_MAX]}" for key, why in troubles.items()]
        more = len(shown) - _TROUBLES_SHOWN_MAX
        return "; ".join(shown[:_TROUBLES_SHOWN_MAX]) + (f"; and {more} more" if more > 0 else "") or None

    return {"ping": ping, "store": the_store, "started": started, "objects": objects}
