"""Who a pod of a stateful set is: `<set>-<ordinal>`, and how the pod of an ordinal is made. Pure."""

import re
from collections.abc import Mapping
from typing import Any

from allot.api import Object

from ..workloads import POD_LABEL, pod_from
from .views import set_of

NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"

_ORDINAL = re.compile(r"(.*)-(0|[1-9][0-9]{0,9})")


def ordinal_of(stateful_set: Object, pod: Object) -> int | None:
    """None if the pod's name is not one of this set's."""
    found = _ORDINAL.fullmatch(pod.name)
    return int(found[2]) if found is not None and found[1] == stateful_set.name else None


def is_member(stateful_set: Object, pod: Object) -> bool:
    """Only pods with a name of the set are adopted: others would have no ordinal."""
    return ordinal_of(stateful_set, pod) is not None


def revision_of(pod: Object) -> str:
    return (pod.metadata.labels or {}).get(POD_LABEL, "")


def pod_for(stateful_set: Object, ordinal: int, template: Mapping[str, Any], revision: str) -> dict[str, Any]:
    """The pod of an ordinal, from the template of a revision."""
    pod = pod_from(template, stateful_set, "")
    name = f"{stateful_set.name}-{ordinal}"
    metadata = pod["metadata"]
    mine = {POD_LABEL: revision, NAME_LABEL: name, INDEX_LABEL: str(ordinal)}
    metadata |= {"name": name, "labels": {**(metadata.get("labels") or {}), **mine}}
    spec = {**pod["spec"], "hostname": name}
    if service := set_of(stateful_set).spec.service_name:
        spec["subdomain"] = service
    claimed = _claimed_volumes(stateful_set, name)
    if claimed:
        others = [one for one in spec.get("volumes") or () if one.get("name") not in claimed]
        spec["volumes"] = [*others, *claimed.values()]
    return {**pod, "spec": spec}


def _claimed_volumes(stateful_set: Object, pod_name: str) -> dict[str, dict[str, Any]]:
    """A volume for each claim template, by name."""
    templates = stateful_set.fields["spec"].get("volumeClaimTemplates") or ()
    names = [one["metadata"]["name"] for one in templates if (one.get("metadata") or {}).get("name")]
    return {
        name: {"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{pod_name}"}} for name in names
    }
