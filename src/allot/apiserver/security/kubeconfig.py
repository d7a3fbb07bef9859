"""A kubeconfig: where the server is, who vouches for it, and who the caller is."""

import base64
import json
from dataclasses import dataclass

from .authority import KeyPair

CLUSTER = "allot"


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """What a client needs. `credential` is a client certificate or a bearer token."""

    server: str  # https://HOST:PORT
    ca: bytes  # PEM
    user: str
    credential: KeyPair | str
    namespace: str = ""

    def text(self) -> str:
        context = f"{self.user}@{CLUSTER}"
        lines = [
            "apiVersion: v1",
            "kind: Config",
            "clusters:",
            f"- name: {CLUSTER}",
            "  cluster:",
            f"    server: {json.dumps(self.server)}",
            f"    certificate-authority-data: {_base64(self.ca)}",
            "users:",
            f"- name: {json.dumps(self.user)}",
            "  user:",
            *self._credential_lines(),
            "contexts:",
            f"- name: {json.dumps(context)}",
            "  context:",
            f"    cluster: {CLUSTER}",
            f"    user: {json.dumps(self.user)}",
            *([f"    namespace: {json.dumps(self.namespace)}"] if self.namespace else []),
            f"current-context: {json.dumps(context)}",
            "preferences: {}",
        ]
        return "\n".join(lines) + "\n"

    def _credential_lines(self) -> list[str]:
        if isinstance(self.credential, str):
            return [f"    token: {json.dumps(self.credential)}"]
        return [
            f"    client-certificate-data: {_base64(self.credential.certificate)}",
            f"    client-key-data: {_base64(self.credential.key)}",
        ]


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
