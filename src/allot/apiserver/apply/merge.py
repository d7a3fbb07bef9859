"""An applied configuration laid over the live object, and what nobody wants any more taken away.

    merged(live, config, schema)               everything that either says; the configuration wins
    pruned(fields, last, owned, schema)        without what the applier gave up and nobody else owns

Neither changes its arguments; results share what is unchanged.
"""

from typing import Any

from allot.api import schema as shapes

from .elements import edge_maker
from .extract import always_there, is_named
from .fieldset import EMPTY, FieldSet, is_member


def merged(live: Any, config: Any, schema: shapes.Schema) -> Any:
    if schema.is_leaf:
        return config
    if type(config) is dict and type(live) is dict:
        out = dict(live)
        for name, value in config.items():
            out[name] = merged(out[name], value, schema.within(name)) if name in out else value
        return out
    if type(config) is list and type(live) is list and not schema.is_free:
        return _merged_list(live, config, schema)
    return live if config is None and type(live) in (dict, list) else config


def _merged_list(live: list[Any], config: list[Any], schema: shapes.Schema) -> list[Any]:
    """Elements of the configuration in its order; the others stay in front of what they preceded.

    Live lists may hold elements with the same key, which only old ways of writing allow. They are
    left alone unless the configuration has that key: then one takes the place of all.
    """
    assert schema.element is not None
    edge = edge_maker(schema)
    wanted = {edge(one): one for one in config}
    there: dict[str, Any] = {}
    for one in live:
        there.setdefault(edge(one), one)
    waiting = iter(wanted.items())
    out: list[Any] = []
    done: set[str] = set()
    for one in live:
        name = edge(one)
        if name not in wanted:
            out.append(one)
        while name in wanted and name not in done:
            key, value = next(waiting)
            done.add(key)
            out.append(merged(there[key], value, schema.element) if key in there else value)
    out.extend(value for _, value in waiting)
    return out


def pruned(fields: dict[str, Any], last: FieldSet, owned: FieldSet, schema: shapes.Schema) -> dict[str, Any]:
    """`fields` without what is in `last` and not in `owned`.

    A field of a type, and an element or key that the applier had made, goes with all that is in
    it. Nobody's fields stay unless they are inside something that goes.
    """
    out = dict(fields)
    for edge, theirs in last.items():
        name = edge[2:]
        if edge[:2] != "f:" or name not in fields:
            continue
        others = owned.get(edge)
        named = is_named(schema, name)
        if _goes(theirs, others, named):
            del out[name]
        else:
            value = _pruned_value(fields[name], theirs, others or EMPTY, schema.within(name))
            emptied = not value and fields[name] and type(value) in (dict, list)
            if emptied and not _stays(others, schema, name):
                del out[name]
            else:
                out[name] = value
    return out


def _goes(last: FieldSet, owned: FieldSet | None, named: bool) -> bool:
    """Whether the applier had it itself, and now nobody has. A field is had with anything in it."""
    had = named or is_member(last)
    has = owned is not None and (named or is_member(owned))
    return had and not has


def _stays(owned: FieldSet | None, schema: shapes.Schema, name: str) -> bool:
    """Whether a container stays when there is nothing left in it."""
    if owned is not None and is_member(owned):
        return True
    return schema.type is shapes.Type.OBJECT and always_there(schema, name)


def _pruned_value(value: Any, last: FieldSet, owned: FieldSet, schema: shapes.Schema) -> Any:
    if schema.is_leaf or not last:
        return value
    if type(value) is dict:
        return pruned(value, last, owned, schema)
    if type(value) is list and schema.element is not None:
        return _pruned_list(value, last, owned, schema)
    return value


def _pruned_list(value: list[Any], last: FieldSet, owned: FieldSet, schema: shapes.Schema) -> list[Any]:
    assert schema.element is not None
    edge = edge_maker(schema)
    out = []
    for one in value:
        name = edge(one)
        theirs, others = last.get(name), owned.get(name)
        if theirs is None:
            out.append(one)
        elif not _goes(theirs, others, named=False):
            out.append(_pruned_value(one, theirs, others or EMPTY, schema.element))
    return out
