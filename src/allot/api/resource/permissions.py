"""Who may ask for administrator access, and who may write which part of a claim's status.

The answers are field errors, so they surface as 422 and not as 403:
upstream decides them during validation, and clients have learned that.
"""

from collections.abc import Sequence

from .. import field
from ..field import FieldError, Path
from ..kind import Fields, WriteContext
from ..user import Action, User
from . import limits
from .reading import same

_STATUS = Path("status")
_NODE_NAME_EXTRA = "authentication.kubernetes.io/node-name"
_NO_LABEL = (
    f"admin access to devices requires the `{limits.ADMIN_ACCESS_LABEL}: true` label"
    " on the containing namespace"
)


# Administrator access


def admin_access_asked(requests: Sequence[Fields], context: WriteContext) -> list[FieldError]:
    """The path has neither `exactly` nor a template's second `spec`: upstream's, kept."""
    path = Path("spec") / "devices" / "requests"
    asking = [at for at, one in enumerate(requests) if (one.get("exactly") or {}).get("adminAccess")]
    if not asking or _is_admin_namespace(context):
        return []
    return [field.forbidden(path[at] / "adminAccess", _NO_LABEL) for at in asking]


def admin_access_given(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    """Results with administrator access need the label again, unless they were there before."""
    path = _STATUS / "allocation" / "devices" / "results"
    given = [at for at, one in enumerate(_results(new)) if one.get("adminAccess")]
    if not given or any(one.get("adminAccess") for one in _results(old)) or _is_admin_namespace(context):
        return []
    return [field.forbidden(path[at] / "adminAccess", _NO_LABEL) for at in given]


def _results(status: Fields) -> Sequence[Fields]:
    return ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()


def _is_admin_namespace(context: WriteContext) -> bool:
    namespace = context.namespace() or {}
    labels = (namespace.get("metadata") or {}).get("labels") or {}
    return bool(labels.get(limits.ADMIN_ACCESS_LABEL) == "true")


# Parts of the status


def status_write(new: Fields, old: Fields, namespace: str, context: WriteContext) -> list[FieldError]:
    """May the caller change what differs between the two statuses?"""
    if not context.gates["DRAResourceClaimGranularStatusAuthorization"]:
        return []
    return _binding(new, old, context) + _drivers(new, old, namespace, context)


def _binding(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    if all(same(new.get(part), old.get(part)) for part in ("allocation", "reservedFor")):
        return []
    action = Action(context.verb, limits.GROUP, "resourceclaims", limits.BINDING_SUBRESOURCE)
    why = refusal(context, action)
    if why is None:
        return []
    text = (
        "changing status.allocation or status.reservedFor requires"
        f' resource="resourceclaims/{limits.BINDING_SUBRESOURCE}", verb="{context.verb}" permission:'
        f" {why}"
    )
    return [field.forbidden(_STATUS / "allocation", text)]


def _drivers(new: Fields, old: Fields, namespace: str, context: WriteContext) -> list[FieldError]:
    """Without an allocation the server itself removes the entries; nobody needs permission."""
    if new.get("allocation") is None:
        return []
    prefixes = [limits.ARBITRARY_NODE]
    if _runs_on_the_claims_node(context.user, new):
        prefixes.insert(0, limits.ASSOCIATED_NODE)
    verbs = [f"{prefix}{context.verb}" for prefix in prefixes]
    errors = []
    for driver in _changed_drivers(new, old):
        refusals = [refusal(context, _driver_action(verb, namespace, driver)) for verb in verbs]
        if all(why is not None for why in refusals):
            text = (
                f'changing status.devices requires resource="resourceclaims/{limits.DRIVER_SUBRESOURCE}",'
                f' verb="[{" ".join(verbs)}]" permission: {refusals[-1]}'
            )
            errors.append(field.forbidden(_STATUS / "devices", text))
    return errors


def _driver_action(verb: str, namespace: str, driver: str) -> Action:
    return Action(
        verb, limits.GROUP, "resourceclaims", limits.DRIVER_SUBRESOURCE, namespace=namespace, name=driver
    )


def _changed_drivers(new: Fields, old: Fields) -> list[str]:
    """Drivers of which an entry was added, modified or removed."""
    before, after = _entries(old), _entries(new)
    changed = {key[0] for key in before.keys() | after.keys() if not same(before.get(key), after.get(key))}
    return sorted(changed)


def _entries(status: Fields) -> dict[tuple[str, ...], Fields]:
    return {
        tuple(one.get(name) or "" for name in ("driver", "pool", "device", "shareID")): one
        for one in status.get("devices") or ()
    }


def _runs_on_the_claims_node(user: User, status: Fields) -> bool:
    """A service account whose token is bound to the one node that the allocation names."""
    nodes = tuple(user.extra.get(_NODE_NAME_EXTRA, ()))
    return (
        user.name.startswith("system:serviceaccount:")
        and len(nodes) == 1
        and nodes[0] == only_node(status.get("allocation") or {})
    )


def only_node(allocation: Fields) -> str | None:
    terms: Sequence[Fields] = (allocation.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()
    if len(terms) != 1 or terms[0].get("matchExpressions"):
        return None
    fields: Sequence[Fields] = terms[0].get("matchFields") or ()
    if len(fields) != 1 or fields[0].get("key") != "metadata.name" or fields[0].get("operator") != "In":
        return None
    values: Sequence[str] = fields[0].get("values") or ()
    return values[0] if len(values) == 1 else None


def refusal(context: WriteContext, action: Action) -> str | None:
    """Why the caller may not do it, as the server would say it, or None."""
    decision = context.authorize(action)
    if decision.allowed:
        return None
    named = f' "{action.name}"' if action.name else ""
    where = f'in the namespace "{action.namespace}"' if action.namespace else "at the cluster scope"
    text = (
        f'resourceclaims.{limits.GROUP}{named} is forbidden: User "{context.user.name}" cannot {action.verb}'
        f' resource "resourceclaims/{action.subresource}" in API group "{limits.GROUP}" {where}'
    )
    return f"{text}: {decision.reason}" if decision.reason else text
