"""Every namespace has a service account named `default`, for pods that name no other.

It is made when the namespace is, and made again when somebody deletes it; not in a
namespace that is going away.
"""

from ..controller import Controller
from .loop import ACCOUNTS, NAMESPACES, make

CONTROLLER = Controller(
    "serviceaccount-controller", "service-account-controller", (NAMESPACES, ACCOUNTS), make
)

__all__ = ["CONTROLLER"]
