"""The end of a namespace: everything in it goes, then the namespace itself.

A namespace that is deleted stays, Terminating, while `kubernetes` is among the
finalizers of its spec. This controller deletes what is in it, pods before everything
else, waits until all of it is gone, and takes the finalizer off. Meanwhile the
namespace's conditions tell what is left and what holds it.

What it promises
    * The finalizer goes only after every resource that the server serves has been listed
      and found empty. The server lets nothing new into a namespace that is Terminating.
    * Nothing else goes while a pod is there: a pod that is ending may still need its
      config maps, its claims and its network policies.
"""

from ..controller import Controller
from .loop import NAMESPACES, make

CONTROLLER = Controller("namespace-controller", "namespace-controller", (NAMESPACES,), make)

__all__ = ["CONTROLLER"]
