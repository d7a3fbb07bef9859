"""Strange objects from sound ones: a few changes, each of the right type.

What the server refuses names the fields it refuses (`details.causes`). Those are taken out and the
object is sent again, so that what is left of the strangeness is stored, which is the point.
"""

import copy
import re
from typing import Any

from allot.api.schema import Schema, Type

from .values import Values

Fields = dict[str, Any]

_STEP = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
_KEEP = frozenset(("apiVersion", "kind"))


def mutated(sound: Fields, shape: Schema, values: Values, changes: int) -> Fields:
    """A copy with so many changes in it."""
    fields = copy.deepcopy(sound)
    for _ in range(changes):
        draw = values.rng.random()
        if draw < 0.2:
            _about(fields, values)
        else:
            _change(fields, shape, values)
    return fields


def _about(fields: Fields, values: Values) -> None:
    """Owners, finalizers, labels: what every object may carry."""
    rng = values.rng
    if not isinstance(fields.get("metadata"), dict):
        fields["metadata"] = {}
    metadata = fields["metadata"]
    match rng.randrange(7):
        case 0:
            metadata["ownerReferences"] = [_owner(values) for _ in range(rng.randrange(3))]
        case 1:
            usual = ("example.com/wait", "foregroundDeletion", "orphan", "kubernetes")
            metadata["finalizers"] = [rng.choice(usual) for _ in range(rng.randrange(3))]
        case 2:
            metadata["labels"] = rng.choice(({}, None, {"app": "x", "": ""}, {"hollow.allot.dev/fleet": "x"}))
        case 3:
            metadata["annotations"] = {values.key(): values.text("annotation") for _ in range(2)}
        case 4:
            metadata["generateName"] = "g-"
        case 5:
            metadata[rng.choice(("uid", "resourceVersion", "deletionTimestamp", "creationTimestamp"))] = None
        case _:
            metadata["managedFields"] = rng.choice(([], None, [{"manager": "m", "operation": "Apply"}]))


def _owner(values: Values) -> Fields:
    rng = values.rng
    return {
        "apiVersion": values.text("apiVersion") or "v1",
        "kind": values.text("kind") or "Pod",
        "name": values.text("name") or "x",
        "uid": values.text("uid") or "00000000-0000-4000-8000-000000000000",
        "controller": rng.choice((True, False, None)),
        "blockOwnerDeletion": rng.choice((True, False)),
    }


def _change(value: Any, schema: Schema, values: Values) -> None:
    """Walk down the shape for a while, then put something strange there."""
    rng = values.rng
    for depth in range(9):
        match schema.type, value:
            case Type.OBJECT, dict():
                here = [name for name in value if name in schema.fields and name not in _KEEP]
                every = [
                    name for name in schema.fields if name not in _KEEP and (depth or name != "metadata")
                ]
                if not every or rng.random() < 0.04:
                    value[rng.choice(("unknown", "source", "spec", "x"))] = values.junk()
                    return
                name = rng.choice(here) if here and rng.random() < 0.55 else rng.choice(every)
                inner = schema.fields[name]
                if not _goes_on(value.get(name), inner, values):
                    value[name] = values.of(inner, name, depth)
                    return
                value, schema = value[name], inner
            case Type.LIST, list() if schema.element is not None and value:
                at = rng.randrange(len(value))
                if rng.random() < 0.08:
                    value.append(copy.deepcopy(value[at]))
                    return
                if not _goes_on(value[at], schema.element, values):
                    value[at] = values.of(schema.element, "", depth)
                    return
                value, schema = value[at], schema.element
            case Type.MAP, dict() if schema.element is not None:
                value[values.key()] = values.of(schema.element, "", depth)
                return
            case Type.ANY, dict():
                value[values.key()] = values.junk()
                return
            case _:
                return


def _goes_on(member: Any, schema: Schema, values: Values) -> bool:
    containers = (Type.OBJECT, Type.LIST, Type.MAP)
    return bool(member) and schema.type in containers and values.rng.random() < 0.85


def without(fields: Fields, causes: list[str], sound: Fields) -> bool:
    """Puts what the sound object has in place of the refused fields, or takes them out; True if it
    found one of them."""
    found = False
    for cause in causes:
        steps = [first or second for first, second in _STEP.findall(cause)]
        found = _restored(fields, steps, sound) or found
    return found


def _restored(value: Any, steps: list[str], sound: Any) -> bool:
    if not steps:
        return False
    key: Any = steps[0]
    if isinstance(value, list):
        if not key.isdigit() or int(key) >= len(value):
            return False
        key = int(key)
    elif not isinstance(value, dict):
        return False
    inside = value.get(key) if isinstance(value, dict) else value[key]
    good = _member(sound, key)
    if len(steps) > 1 and _restored(inside, steps[1:], good):
        return True
    if isinstance(value, dict) and key not in value and good is None:
        return False
    if good is not None:
        value[key] = copy.deepcopy(good)
    else:
        del value[key]
    return True


def _member(value: Any, key: Any) -> Any:
    if isinstance(value, dict):
        return value.get(key)
    if isinstance(value, list) and isinstance(key, int) and key < len(value):
        return value[key]
    return None
