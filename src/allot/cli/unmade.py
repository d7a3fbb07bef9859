"""Why claims of a pod have not been made from their templates.

The scheduler knows only that they are not there: it reads neither templates nor events. For a
person both are looked at: a template that does not exist is said, and otherwise what the
claim controller last said about the pod. What may not be read is left out.
"""

from dataclasses import dataclass

from allot import scheduler
from allot.api import Object, age, core, errors, podclaims, resource
from allot.base import SystemClock
from allot.client import Client

REASON = "FailedResourceClaimCreation"


@dataclass(frozen=True, slots=True)
class Causes:
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()  # what may not be read, and why


async def causes(client: Client, pod: scheduler.PodInfo, snapshot: scheduler.Snapshot) -> Causes:
    if pod.view.is_finished or pod.is_deleting:
        return Causes()  # none will be made
    notes: list[str] = []
    unread: list[str] = []
    unexplained: list[core.PodClaim] = []
    for use in _unmade(pod, snapshot):
        template = use.resource_claim_template_name or ""
        try:
            if not await _is_there(client, template, pod.key.namespace):
                notes.append(
                    f'there is no ResourceClaimTemplate "{template}" in namespace {pod.key.namespace}'
                )
                continue
        except (errors.Forbidden, errors.NotFound) as refused:
            unread.append(f"cannot list resourceclaimtemplates: {refused}")
        unexplained.append(use)
    if unexplained:
        try:
            failures = await _failures(client, pod)
        except (errors.Forbidden, errors.NotFound) as refused:
            unread.append(f"cannot list events: {refused}")
        else:
            notes += [said for use in unexplained if (said := _said(use.name, failures))]
    return Causes(tuple(dict.fromkeys(notes)), tuple(dict.fromkeys(unread)))


def _unmade(pod: scheduler.PodInfo, snapshot: scheduler.Snapshot) -> list[core.PodClaim]:
    """What is to be made from a template and is not there, or not any more."""
    missing = {
        use.entry
        for use in podclaims.used(pod.view)
        if use.origin is podclaims.Origin.TEMPLATE and snapshot.claim(pod.key._replace(name=use.name)) is None
    }
    return [entry for entry in pod.spec.resource_claims if entry.name in missing]


async def _is_there(client: Client, template: str, namespace: str) -> bool:
    """Listed and not fetched: "not found" would also be the answer where templates are not served."""
    templates = client.of(resource.RESOURCE_CLAIM_TEMPLATE)
    return bool((await templates.list(namespace, field_selector=f"metadata.name={template}")).objects)


async def _failures(client: Client, pod: scheduler.PodInfo) -> list[Object]:
    """The newest first."""
    about = f"involvedObject.uid={pod.uid},reason={REASON}"
    found = await client.resource("", "v1", "events").list(pod.key.namespace, field_selector=about)
    return sorted(found.objects, key=_when, reverse=True)


def _when(event: Object) -> str:
    fields = event.fields
    return fields.get("lastTimestamp") or fields.get("eventTime") or event.metadata.creation_timestamp or ""


def _said(entry: str, failures: list[Object]) -> str:
    """Of a pod with several claims each is told its own trouble: the message begins with whose it is."""
    for event in failures:
        message = event.fields.get("message") or ""
        if message.startswith(f"PodResourceClaim {entry}: "):
            return f"{REASON}, {age.since(_when(event), SystemClock().now())} ago: {message}"
    return ""
