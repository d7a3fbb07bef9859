"""Away with what the schema does not mention.

Built-in kinds keep unknown fields; custom ones lose them, as everywhere in
Kubernetes, because the author of the schema has the last word on its kind.
"""

from typing import Any

from ..schema import Schema, Type


def prune(value: Any, schema: Schema) -> None:
    """Remove unknown fields in place. `check` has already named them to the client."""
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
        case _:
            return
