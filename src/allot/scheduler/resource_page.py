"""What pods request and are limited to, pod by pod: the page /metrics/resources, under upstream's names.

Worked out when somebody looks, a few pods at a time, so that a large cluster holds nobody up. Pods
that have ended use nothing and are not shown.
"""

import asyncio
from collections.abc import Iterable

from allot.api import Fields, Object, podresources
from allot.base import Gauge, Metrics

PODS_AT_ONCE = 100
LABELS = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")
ENDED = ("Succeeded", "Failed")
_UNITS = {"cpu": "cores", "memory": "bytes", "storage": "bytes", "ephemeral-storage": "bytes"}


async def resource_page(pods: Iterable[Object]) -> str:
    page = Metrics()
    requests = page.gauge("kube_pod_resource_request", "What a pod requests of a resource.", *LABELS)
    limits = page.gauge("kube_pod_resource_limit", "What a pod is limited to of a resource.", *LABELS)
    for count, pod in enumerate(list(pods), 1):
        fields = dict(pod.fields)
        if (fields.get("status") or {}).get("phase") not in ENDED:
            _show(requests, fields, "requests")
            _show(limits, fields, "limits")
        if count % PODS_AT_ONCE == 0:
            await asyncio.sleep(0)
    return page.text()


def _show(gauge: Gauge, pod: Fields, side: podresources.Side) -> None:
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    priority = spec.get("priority")
    who = (
        metadata["namespace"],
        metadata["name"],
        spec.get("nodeName") or "",
        spec.get("schedulerName") or "",
        "" if priority is None else str(priority),
    )
    for resource, amount in podresources.pod_needs(spec, side).items():
        gauge.set(amount.milli() / 1000, *who, resource, _unit(resource))


def _unit(resource: str) -> str:
    if resource.startswith(podresources.HUGE_PAGES):
        return "bytes"
    return _UNITS.get(resource, "integer")
