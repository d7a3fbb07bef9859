"""C7: a consumer that is not a pod is kept. Nobody in a made-up world removes one."""

from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .reading import reserved


class Outsiders:
    follows = ("resourceclaims",)

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)

    def see(self, seen: Seen) -> Iterator[str]:
        before = self._now.see(seen)
        now = [one["uid"] for one in reserved(seen.fields)] if seen.type != "DELETED" else []
        for one in reserved(before or {}):
            if one["resource"] != "pods" and one["uid"] not in now:
                yield f"C7: claim {seen.object.name} was taken from {one['resource']} {one['name']}"

    def rest(self) -> Iterator[str]:
        yield from ()
