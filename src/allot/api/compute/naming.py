"""Names: of classes as containers and quotas write them, and of compute resources.

A class is written bare (`gpu-gold`), or qualified for servers that know no bare names
(`resourceclass.compute.allot.dev/gpu-gold`); both mean the same. The name of a compute resource follows from
what it is: its raw name and a hash of its properties, so that equal devices have equal names everywhere.
"""

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache

from .. import names, standard
from . import limits

_HASH_DIGITS = 16


@lru_cache(maxsize=1024)
def is_bare(resource: str) -> bool:
    """Whether a resource name can only be that of a class."""
    return "/" not in resource and not wrong_class_name(resource)


def wrong_class_name(name: str) -> list[str]:
    """Why no class can have this name."""
    if len(name) > limits.CLASS_NAME_MAX:
        return [f"must be no more than {limits.CLASS_NAME_MAX} characters, as names of resources are"]
    if standard.is_standard(name) or name.startswith("count"):
        return ["is the name of something else that containers ask for or quotas count"]
    return names.subdomain(name)


def class_of(resource: str) -> str:
    """The class that a resource name names, bare or qualified; "" for every other resource."""
    if resource.startswith(limits.QUALIFIED):
        return resource.removeprefix(limits.QUALIFIED)
    return resource if is_bare(resource) else ""


def wrong_raw_name(resource: str) -> list[str]:
    """Why no device plugin could register under this name."""
    domain, slash, _ = resource.partition("/")
    if not slash:
        return ["must have the domain of a vendor, as in example.com/gpu"]
    if domain.endswith("kubernetes.io") or f"{domain}/" == limits.QUALIFIED:
        return ["must not be a native resource or the name of a class"]
    return names.qualified(resource) or names.qualified(f"requests.{resource}")


def property_hash(properties: Mapping[str, str]) -> str:
    said = json.dumps(dict(properties), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(said.encode()).hexdigest()[:_HASH_DIGITS]


def compute_resource_name(resource: str, properties: Mapping[str, str]) -> str:
    return f"{resource}-{property_hash(properties)}"
