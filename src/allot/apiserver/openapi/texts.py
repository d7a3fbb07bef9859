"""What each field of resource.k8s.io means, in a sentence of our own."""

from collections.abc import Mapping

TYPES: Mapping[str, tuple[str, Mapping[str, str]]] = {}
