"""The variables of a container, from its pod and from what that names.

Only what is asked for: a process sees nothing of the agent's own environment. A variable may name
those before it, `$(LIKE_THIS)`; what is not known stays as it is written.
"""

import re
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from allot.api import Object, errors

from .fields import Around, UnknownField, field, hostname, resource
from .views import Container, EnvVar, KeyRef, Pod

Lookup = Callable[[str, str, str], Awaitable[Object]]
"""The object of a plural, a namespace and a name, asked of the server."""

_REFERENCE = re.compile(r"\$\$|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)")


class BadEnvironment(Exception):
    """The message names the variable, and what it lacks."""


async def environment(pod: Object, container: Container, around: Around, lookup: Lookup) -> dict[str, str]:
    """Raises BadEnvironment, and ApiError when the server cannot be asked."""
    found: dict[str, str] = {"HOSTNAME": hostname(pod)}
    for source in container.env_from:
        found |= await _all_of(source, pod.namespace, lookup)
    for variable in container.env:
        value = await _value(variable, pod, container, around, lookup)
        if value is not None:
            found[variable.name] = expanded(value, found) if variable.value_from is None else value
    return found


def expanded(text: str, known: Mapping[str, str]) -> str:
    def put(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return known.get(match[1], match[0])

    return _REFERENCE.sub(put, text)


async def _all_of(source: Mapping[str, Any], namespace: str, lookup: Lookup) -> dict[str, str]:
    prefix = source.get("prefix") or ""
    for ref, plural in (("configMapRef", "configmaps"), ("secretRef", "secrets")):
        named = source.get(ref)
        if named is not None:
            name = named.get("name") or ""
            data = await _data(plural, namespace, name, bool(named.get("optional")), lookup)
            return {f"{prefix}{key}": value for key, value in data.items()}
    return {}


async def _value(
    variable: EnvVar, pod: Object, container: Container, around: Around, lookup: Lookup
) -> str | None:
    source = variable.value_from
    if source is None:
        return variable.value
    try:
        if source.field_ref is not None:
            return field(pod, source.field_ref.field_path, around)
        if source.resource_field_ref is not None:
            every = pod.view(Pod).spec.every_container
            return resource(every, container.name, source.resource_field_ref, around)
    except UnknownField as unknown:
        raise BadEnvironment(f"variable {variable.name}: {unknown}") from None
    for plural, ref in (("configmaps", source.config_map_key_ref), ("secrets", source.secret_key_ref)):
        if ref is not None:
            return await _key(variable.name, plural, pod.namespace, ref, lookup)
    raise BadEnvironment(f"variable {variable.name}: its source is not known to this node")


async def _key(variable: str, plural: str, namespace: str, ref: KeyRef, lookup: Lookup) -> str | None:
    try:
        data = await _data(plural, namespace, ref.name, ref.optional, lookup)
    except BadEnvironment as missing:
        raise BadEnvironment(f"variable {variable}: {missing}") from None
    if ref.key in data:
        return data[ref.key]
    if ref.optional:
        return None
    raise BadEnvironment(
        f"variable {variable}: couldn't find key {ref.key} in {plural} {namespace}/{ref.name}"
    )


async def _data(
    plural: str, namespace: str, name: str, is_optional: bool, lookup: Lookup
) -> Mapping[str, str]:
    try:
        found = (await lookup(plural, namespace, name)).fields
    except (errors.NotFound, errors.Forbidden):
        if is_optional:
            return {}
        raise BadEnvironment(f'{plural} "{name}" not found') from None
    data = found.get("data") or {}
    if plural == "secrets":
        return {key: b64decode(value).decode(errors="replace") for key, value in data.items()}
    return dict(data)
