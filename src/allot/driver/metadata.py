"""What programs in a container may read of their devices: a file for each request (KEP-5304).

A file holds the same object once for each version that there is, the newest first, and is mounted read-only
where programs look for it: below `resourceclaims` by the claim's name, or below `resourceclaimtemplates` by
the name that the pod gives a claim that was made for it. Each driver has a file of its own there.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from allot.base import Files
from allot.wire import cdi

from .state import Entry, Held

DIRECTORY: Final = "dra-device-metadata"
INSIDE: Final = Path("/var/run/kubernetes.io/dra-device-attributes")
VERSIONS: Final = ("metadata.resource.k8s.io/v1beta1", "metadata.resource.k8s.io/v1alpha1")


def requests(entry: Entry) -> dict[str, list[Held]]:
    """Devices of which something may be read, by request; of one with alternatives by the request itself."""
    found: dict[str, list[Held]] = {}
    for held in entry.devices:
        if held.attributes is not None:
            found.setdefault(held.request.partition("/")[0], []).append(held)
    return found


def content(entry: Entry, held: Iterable[Held], driver: str) -> bytes:
    """Pure."""
    listed: dict[str, list[dict[str, object]]] = {}
    for one in held:
        device: dict[str, object] = {
            "driver": driver,
            "pool": one.pool,
            "name": one.device,
            "attributes": one.attributes,
        }
        listed.setdefault(one.request, []).append(device)
    about: dict[str, object] = {
        "metadata": {"name": entry.name, "namespace": entry.namespace, "uid": entry.uid, "generation": 1},
        **({"podClaimName": entry.pod_claim} if entry.pod_claim else {}),
        "requests": [{"name": name, "devices": devices} for name, devices in listed.items()],
    }
    objects = ({"kind": "DeviceMetadata", "apiVersion": version, **about} for version in VERSIONS)
    return b"".join(msgspec.json.encode(one) + b"\n" for one in objects)


def path_inside(entry: Entry, request: str, driver: str) -> Path:
    """Pure."""
    sort = ("resourceclaimtemplates", entry.pod_claim) if entry.pod_claim else ("resourceclaims", entry.name)
    return INSIDE.joinpath(*sort, request, f"{driver}-metadata.json")


class Metadata:
    """The files of one driver."""

    def __init__(self, root: Path, driver: str, files: Files) -> None:
        self._root, self._driver, self._files = root, driver, files

    def mounts(self, entry: Entry) -> Iterator[tuple[int, cdi.Mount]]:
        """Of each request, and which of the entry's devices brings it."""
        for request, held in requests(entry).items():
            inside = str(path_inside(entry, request, self._driver))
            options = ("ro", "nosuid", "nodev", "bind")
            mount = cdi.Mount(str(self._file(entry.uid, request)), inside, options)
            yield entry.devices.index(held[0]), mount

    def write(self, entry: Entry) -> None:
        """Raises OSError. What is there and right is left alone."""
        for request, held in requests(entry).items():
            path, wanted = self._file(entry.uid, request), content(entry, held, self._driver)
            if self._files.read(path) != wanted:
                self._files.place_directory(path.parent, 0o755)
                self._files.remove(path)
                self._files.place(path, wanted, 0o644)

    def remove(self, uid: str) -> None:
        self._files.remove_tree(self._root / uid)

    def reconcile(self, uids: Iterable[str]) -> None:
        """Files of claims that nobody has go."""
        for uid in {*self._files.names(self._root)} - {*uids}:
            self.remove(uid)

    def _file(self, uid: str, request: str) -> Path:
        return self._root / uid / request / "metadata.json"
