"""Every namespace has a config map `kube-root-ca.crt`: by whom the server's certificate is signed.

Pods that talk to the server find it there, and trust nobody else. It is made when the namespace is,
and put right when somebody changes or deletes it; not in a namespace that is going away. A process
that was not told who signs (`Process.authorities`) publishes nothing.
"""

from ..controller import Controller
from .loop import NAMESPACES, make

CONTROLLER = Controller(
    "root-ca-certificate-publisher-controller", "root-ca-cert-publisher", (NAMESPACES,), make
)

__all__ = ["CONTROLLER"]
