"""The choice of compute resources that comes with a binding, put into the containers of the pod.

What the author of a pod has written beforehand stays as it is; the rest must be what the containers ask for.
"""

from typing import Any

import msgspec

from .. import field
from ..field import Path
from ..kind import Fields
from . import limits, pods

_ANNOTATION = Path("metadata.annotations")[limits.RECORD_ANNOTATION]
_DECODER = msgspec.json.Decoder(dict[str, dict[str, list[dict[str, Any]]]])


def record(pod: Fields, chosen: str) -> None:
    """Raises Invalid. `pod` is opened for this write; its spec is new, what is below it is shared."""
    name = (pod.get("metadata") or {}).get("name") or ""
    try:
        choice = _DECODER.decode(chosen)
    except msgspec.DecodeError as why:
        raise _refused(name, [field.invalid(_ANNOTATION, chosen, str(why))]) from why
    spec = pod["spec"]
    for sort in pods.SORTS:
        if spec.get(sort):
            spec[sort] = [_with(one, choice.pop(one.get("name") or "", {})) for one in spec[sort]]
    wrong = [field.invalid(_ANNOTATION, one, "the pod has no such container") for one in choice]
    wrong += pods.spec_errors(spec, Path("spec"))
    if wrong:
        raise _refused(name, wrong)


def _with(container: Fields, chosen: Fields) -> Fields:
    if not chosen:
        return container
    return {**container, pods.RECORD: {**chosen, **(container.get(pods.RECORD) or {})}}


def _refused(name: str, wrong: list[field.FieldError]) -> Exception:
    return field.refusal("", "Pod", name, wrong)
