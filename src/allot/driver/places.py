"""Where a driver's sockets and files lie on a node, and what they are called. Pure.

A kubelet has a root directory (`/var/lib/kubelet`). Drivers put their registration sockets into its
`plugins_registry`, and what is their own into `plugins/<driver>`. In a rolling update two instances of
a driver run for a while: then the sockets bear the instance's name, and the files are shared.
"""

import base64
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from allot.api import names, resource
from allot.wire import ADDRESS_BYTES_MAX

KUBELET_ROOT: Final = Path("/var/lib/kubelet")
CDI_DIRECTORY: Final = Path("/var/run/cdi")


def check_name(driver: str) -> None:
    """Raises ValueError where no driver can be called so."""
    wrong = names.subdomain(driver)
    if wrong or len(driver) > resource.limits.DRIVER_NAME_MAX:
        raise ValueError(f"{driver!r} cannot be the name of a driver: {wrong or 'it is too long'}")


@dataclass(frozen=True, slots=True)
class Places:
    driver: str
    root: Path = KUBELET_ROOT
    cdi: Path = CDI_DIRECTORY
    instance: str = ""  # of a rolling update: the uid of the pod, as a rule

    @property
    def registry(self) -> Path:
        return self.root / "plugins_registry"

    @property
    def data(self) -> Path:
        return self.root / "plugins" / self.driver

    @property
    def service_socket(self) -> Path:
        return self.data / (f"dra-{self.instance}.sock" if self.instance else "dra.sock")

    @property
    def registration_socket(self) -> Path:
        """The first name that fits into an address."""
        names = [f"{self.driver}-reg.sock"]
        if self.instance:
            short, both = _hash(self.instance, 8), _hash(f"{self.driver}\0{self.instance}", 16)
            names = [
                f"{self.driver}-{self.instance}-reg.sock",
                f"{self.driver}-{short}-reg.sock",
                f"dra-{both}-reg.sock",
            ]
        paths = [self.registry / name for name in names]
        return next((path for path in paths if len(bytes(path)) <= ADDRESS_BYTES_MAX), paths[-1])


def _hash(text: str, length: int) -> str:
    digest = hashlib.sha256(text.encode()).digest()[:length]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
