"""D7: no node gives more of a compute resource than it has; and what a pod asks for is what it is given.

D7  When a pod gets its node, all unfinished pods there together have at most as many devices of each compute
    resource that it was given as the node had of it at that moment.
    Its record comes in the same write, adds up to what its containers ask for, and does not change.
P2  Once things are quiet, a pod that asks for one name waits only where no node has that many devices free.

Judged from pods and nodes alone, for the classes of made-up worlds as they are in the end.
"""

from collections import Counter
from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .reading import Fields, is_finished, is_leaving, name_of, node_of

RAW = "cards.example.com/card"
CLASSES: dict[str, tuple[str, ...]] = {"card-any": (), "card-gold": ("a",), "card-plain": ("b", "c")}


class ComputeHeld:
    follows = ("pods", "nodes")

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)
        self._records: dict[str, object] = {}  # of bound pods, by uid

    def see(self, seen: Seen) -> Iterator[str]:
        self._now.see(seen)
        if seen.resource != "pods" or seen.type == "DELETED":
            return
        pod = dict(seen.fields)
        uid, asked = pod["metadata"]["uid"], asked_by(pod)
        if not asked:
            return
        record = record_of(pod)
        if not node_of(pod):
            if record:
                yield f"D7: pod {name_of(pod)} has a record and no node"
        elif uid not in self._records:
            self._records[uid] = record
            yield from self._bound(pod, asked, record)
        elif record != self._records[uid]:
            yield f"D7: the record of pod {name_of(pod)} became {record}"

    def _bound(self, pod: Fields, asked: Counter[str], record: dict[str, Counter[str]]) -> Iterator[str]:
        given = Counter({name: sum(counts.values()) for name, counts in record.items()})
        if given != asked:
            yield f"D7: pod {name_of(pod)} asks for {dict(asked)} and was given {dict(given)}"
        node = self._now.named("nodes", node_of(pod), "")
        if node is None:
            return  # it went meanwhile, and its pods with it
        has, held = self._has(node), self._held(node_of(pod))
        for name in {one for counts in record.values() for one in counts}:
            if held[name] > has.get(name, 0):
                where = f"{held[name]} devices of {name} on {node_of(pod)}, which has {has.get(name, 0)}"
                yield f"D7: with pod {name_of(pod)} pods hold {where}"

    def _has(self, node: Fields) -> dict[str, int]:
        listed = (node.get("status") or {}).get("computeResources") or ()
        return {one["name"]: len(one.get("allocatableDevices") or ()) for one in listed}

    def _held(self, node: str) -> Counter[str]:
        total: Counter[str] = Counter()
        for pod in self._now.all("pods"):
            if node_of(pod) == node and not is_finished(pod):
                for counts in record_of(pod).values():
                    total += counts
        return total

    def rest(self) -> Iterator[str]:
        for pod in self._now.all("pods"):
            asked = asked_by(pod)
            if len(asked) != 1 or node_of(pod) or is_finished(pod) or is_leaving(pod):
                continue
            ((name, amount),) = asked.items()
            for node in self._now.all("nodes"):
                if not (node.get("spec") or {}).get("taints") and self._free(node, name) >= amount:
                    yield f"P2: pod {name_of(pod)} waits for {amount} of {name}, which {name_of(node)} has"
                    break

    def _free(self, node: Fields, name: str) -> int:
        has, held = self._has(node), self._held(name_of(node))
        types = {
            one["name"]: (one.get("properties") or {}).get("type")  # none of a plugin that is given up on
            for one in node["status"].get("computeResources") or ()
        }
        wanted = CLASSES.get(name, ())
        return sum(max(0, has[one] - held[one]) for one in has if not wanted or types[one] in wanted)


def asked_by(pod: Fields) -> Counter[str]:
    asked: Counter[str] = Counter()
    for container in pod["spec"]["containers"]:
        for name, amount in ((container.get("resources") or {}).get("limits") or {}).items():
            if name in CLASSES or name == RAW:
                asked[name] += int(amount)
    return asked


def record_of(pod: Fields) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for container in pod["spec"]["containers"]:
        for name, entries in (container.get("allocatedComputeResources") or {}).items():
            own = found.setdefault(name, Counter())
            for one in entries:
                own[one["computeResourceName"]] += one["count"]
    return found
