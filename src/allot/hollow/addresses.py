"""An address for each pod, out of the network of its node. Pure.

A node's network has room for 253 pods, more than a node takes; should it be full all the
same, the pod goes without.
"""

from ipaddress import IPv4Network

_FIRST, _LAST = 2, 254  # .1 is the node's own


class Addresses:
    def __init__(self) -> None:
        self._of_pod: dict[str, dict[str, str]] = {}  # node -> pod -> address

    def take(self, node: str, network: str, pod: str) -> str:
        """The address of a pod: the one that it has, or the first that is free."""
        taken = self._of_pod.setdefault(node, {})
        if pod not in taken:
            found = _first_free(network, set(taken.values()))
            if not found:
                return ""
            taken[pod] = found
        return taken[pod]

    def keep(self, node: str, pod: str, address: str) -> None:
        """The pod had this address before this process began."""
        if address:
            self._of_pod.setdefault(node, {})[pod] = address

    def give_back(self, node: str, pod: str) -> None:
        taken = self._of_pod.get(node, {})
        taken.pop(pod, None)
        if not taken:
            self._of_pod.pop(node, None)

    def forget(self, node: str) -> None:
        self._of_pod.pop(node, None)


def _first_free(network: str, taken: set[str]) -> str:
    try:
        base = int(IPv4Network(network).network_address)
    except ValueError:
        return ""  # a node that has no network of its own
    for host in range(_FIRST, _LAST + 1):
        address = ".".join(str((base + host) >> shift & 255) for shift in (24, 16, 8, 0))
        if address not in taken:
            return address
    return ""
