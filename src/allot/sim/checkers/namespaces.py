"""The end of a namespace.

NSEND1  A namespace that is deleted goes, and all that was in it.
NSEND2  Nothing new comes in meanwhile.
"""

from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .reading import is_leaving, name_of


class Namespaces:
    follows = (
        "namespaces",
        "pods",
        "configmaps",
        "resourcequotas",
        "resourceclaims",
        "resourceclaimtemplates",
        "deployments",
        "replicasets",
        "daemonsets",
        "statefulsets",
        "controllerrevisions",
        "jobs",
        "cronjobs",
    )

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)

    def see(self, seen: Seen) -> Iterator[str]:
        self._now.see(seen)
        if seen.type != "ADDED" or seen.resource == "namespaces":
            return
        home = self._now.named("namespaces", seen.object.namespace)
        if home is None or is_leaving(home):
            what, where = f"{seen.resource} {seen.object.name}", seen.object.namespace
            yield f"NSEND2: {what} came into {where}, which is ending"

    def rest(self) -> Iterator[str]:
        homes = {name_of(one) for one in self._now.all("namespaces")}
        for one in self._now:
            namespace = one["metadata"].get("namespace", "")
            if namespace and namespace not in homes:
                yield f"NSEND1: {name_of(one)} is in {namespace}, which is gone"
        for home in self._now.all("namespaces"):
            if is_leaving(home):
                yield f"NSEND1: the namespace {name_of(home)} is ending, and does not end"
