"""Away with what a shape does not mention, whatever the rest looks like.

For what nobody sent just now: objects of the store, and the defaults of a custom
resource. What a client sends goes through `check`, which also names what it takes out.
"""

from typing import Any

from .node import Schema, Type


def prune(value: Any, schema: Schema) -> None:
    """Remove unknown fields in place."""
    match schema.type:
        case Type.OBJECT if isinstance(value, dict):
            for name in list(value):
                inner = schema.fields.get(name)
                if inner is not None:
                    prune(value[name], inner)
                elif not schema.preserves_unknown:
                    del value[name]
        case Type.MAP if isinstance(value, dict) and schema.element is not None:
            for member in value.values():
                prune(member, schema.element)
        case Type.LIST if isinstance(value, list) and schema.element is not None:
            for member in value:
                prune(member, schema.element)
        case Type.ANY:
            choice = schema.choices.get(type(value))
            if choice is not None:
                prune(value, choice)
        case _:
            return
