"""Strategic merge patch: a merge patch that knows which lists have keys.

A list whose schema has a merge key is merged element by element; one of scalars
with the strategy "merge" is a set; every other list is replaced. Beyond that a
patch may carry directives:

    $patch: replace | delete | merge     for the object or list element that holds it
    $retainKeys: [a, b]                  drop every other field of this object
    $deleteFromPrimitiveList/x: [...]    remove these values from the list x
    $setElementOrder/x: [...]            the order of the merged list x

Neither the document nor the patch is changed; the result may share parts with
both. Only kinds with a schema of their own have strategic patches: the caller
answers 415 for the others.
"""

from collections.abc import Hashable
from typing import Any

from allot.api import errors
from allot.api import schema as shapes

from .ordering import in_order, name_of

PATCH = "$patch"
RETAIN = "$retainKeys"
ORDER = "$setElementOrder/"
DELETE_VALUES = "$deleteFromPrimitiveList/"

Object = dict[str, Any]


def strategic_merge(document: Object, patch: Object, schema: shapes.Schema) -> Object:
    """The document with the patch merged into it."""
    return _merged(document, patch, schema)


def _merged(old: Object, patch: Object, schema: shapes.Schema) -> Object:
    if "$" in "".join(patch) and any(name.startswith("$") for name in patch):  # quicker than asking each
        return _merged_as_directed(old, patch, schema)
    new = dict(old)
    for name, value in patch.items():
        if value is None:
            new.pop(name, None)
        elif type(value) is dict or type(value) is list:
            _lay(new, name, value, schema.within(name))
        else:
            new[name] = value
    return new


def _merged_as_directed(old: Object, patch: Object, schema: shapes.Schema) -> Object:
    directive = patch.get(PATCH)
    if directive == "replace":
        return _plain_object(patch, schema)
    if directive == "delete":
        return {}
    if PATCH in patch and directive != "merge":
        raise errors.BadRequest(f"{PATCH} is merge, replace or delete, not {str(directive)[:40]!r}")

    new = _retained(old, patch)
    for name, values in _directives(patch, DELETE_VALUES):
        if type(new.get(name)) is list:
            unwanted = {name_of(value) for value in values}
            new[name] = [value for value in new[name] if name_of(value) not in unwanted]
    new = _merged(new, {name: value for name, value in patch.items() if not name.startswith("$")}, schema)
    for name, order in _directives(patch, ORDER):
        if type(new.get(name)) is list:
            field = schema.within(name)
            new[name] = in_order(new[name], order, old.get(name) or [], field.merge_key)
    return new


def _retained(old: Object, patch: Object) -> Object:
    if RETAIN not in patch:
        return dict(old)
    kept = patch[RETAIN]
    if type(kept) is not list:
        raise errors.BadRequest(f"{RETAIN} is a list of field names")
    stray = [name for name in patch if not name.startswith("$") and name not in kept]
    if stray:
        raise errors.BadRequest(
            f"{RETAIN} must list every field that the patch sets; {stray[0]!r} is missing"
        )
    return {name: value for name, value in old.items() if name in kept}


def _directives(patch: Object, prefix: str) -> list[tuple[str, list[Any]]]:
    found = [(name[len(prefix) :], value) for name, value in patch.items() if name.startswith(prefix)]
    for name, value in found:
        if type(value) is not list:
            raise errors.BadRequest(f"{prefix}{name} is a list")
    return found


def _lay(new: Object, name: str, value: Any, field: shapes.Schema) -> None:
    """Put an object or a list of a patch where it belongs."""
    old = new.get(name)
    if type(value) is dict and type(old) is dict and "replace" not in field.strategies:
        new[name] = _merged(old, value, field)
    elif type(value) is list and "merge" in field.strategies:
        new[name] = _merged_list(old if type(old) is list else [], value, field)
    else:
        new[name] = _plain(value, field)


def _merged_list(old: list[Any], patch: list[Any], field: shapes.Schema) -> list[Any]:
    if not field.merge_key:
        unique = {name_of(value): value for value in [*patch, *old]}
        known = {name_of(value) for value in old}
        return [*old, *(value for name, value in unique.items() if name not in known)]
    for element in patch:
        if type(element) is not dict:
            raise errors.BadRequest(
                f"elements of this list are objects with the merge key {field.merge_key!r}"
            )
    if any(element.get(PATCH) == "replace" for element in patch):
        return [_plain_object(element, _element(field)) for element in patch if PATCH not in element]
    return _merged_elements(old, patch, field)


def _merged_elements(old: list[Any], patch: list[Any], field: shapes.Schema) -> list[Any]:
    """Deletions first, whatever their place in the patch; then changes, then what is new."""
    key = field.merge_key
    for element in patch:
        if key not in element:
            raise errors.BadRequest(f"an element of the patch lacks the merge key {key!r}")
    deleted = {name_of(element, key) for element in patch if element.get(PATCH) == "delete"}
    new = [element for element in old if name_of(element, key) not in deleted]
    places: dict[Hashable, int] = {}
    for place, element in enumerate(new):
        places.setdefault(name_of(element, key), place)
    for element in patch:
        if element.get(PATCH) == "delete":
            continue
        place = places.setdefault(name_of(element, key), len(new))
        if place == len(new):
            new.append(_plain_object(element, _element(field)))
        else:
            new[place] = _merged(new[place], element, _element(field))
    return new


def _element(field: shapes.Schema) -> shapes.Schema:
    return field.element or shapes.ANYTHING


def _plain(value: Any, field: shapes.Schema) -> Any:
    """A value of the patch for which there is nothing to merge with: directives and nulls go."""
    if type(value) is dict:
        return _plain_object(value, field)
    if type(value) is list:
        element = _element(field)
        return [_plain(one, element) for one in value if not (type(one) is dict and PATCH in one)]
    return value


def _plain_object(value: Object, field: shapes.Schema) -> Object:
    return _merged({}, {name: one for name, one in value.items() if name != PATCH}, field)
