"""The scale subresource: replicas of anything that has them, in one shape."""

from collections.abc import Callable
from typing import Any

from allot.api import Fields, Object, Response, Scale, encode, errors, schema

from ..deciding.context import ServerWriteContext
from ..reading.reader import not_found
from ..requests.call import Call
from ..requests.warnings import warning_headers
from ..storing.repository import Repository
from ..writing.body import Body, held_to, read_other
from ..writing.patching import patched
from ..writing.writer import Writer

_SCHEMA = "io.k8s.api.autoscaling.v1.Scale"


class Scaling:
    def __init__(self, repository: Repository, writer: Writer) -> None:
        self._repository = repository
        self._writer = writer

    async def get(self, call: Call) -> Response:
        found = await self._repository.find(call.kind, call.target.namespace, call.target.name)
        if found.object is None:
            raise not_found(call.kind, call.target.name)
        return Response(200, encode(scale_of(call, found.object)))

    async def update(self, call: Call) -> Response:
        wanted, warnings = await call.read(
            lambda: read_other(call.request, schema.get(_SCHEMA), "Scale", ("autoscaling/v1",))
        )
        return await self._write(call, lambda current: (wanted, warnings))

    async def patch(self, call: Call) -> Response:
        shape = schema.get(_SCHEMA)

        def wanted_from(current: Fields) -> tuple[Fields, list[str]]:
            wanted, notes = patched(call, current, shape)
            return wanted, held_to(call.request, wanted, shape, "Scale", notes)

        return await self._write(call, wanted_from)

    async def _write(self, call: Call, wanted_from: Callable[[Fields], tuple[Fields, list[str]]]) -> Response:
        def build(old: Object, context: ServerWriteContext) -> Body:
            wanted, warnings = wanted_from(scale_of(call, old))
            replicas = (wanted.get("spec") or {}).get("replicas") or 0
            if replicas < 0:
                raise errors.Invalid(
                    f'Scale.autoscaling "{call.target.name}" is invalid: spec.replicas: Invalid value: '
                    f"{replicas}: must be greater than or equal to 0",
                    causes=[
                        errors.Cause(
                            "FieldValueInvalid", "must be greater than or equal to 0", "spec.replicas"
                        )
                    ],
                )
            new = old.fresh()
            write_path(new, _paths(call).spec_replicas, replicas)
            said = (wanted.get("metadata") or {}).get("resourceVersion")
            if said:
                new["metadata"]["resourceVersion"] = said
            is_conditional = bool(said) and said != old.resource_version
            return Body(new, warnings, patched=True, conditional=is_conditional)

        outcome = await self._writer.change(call, build)
        headers = warning_headers(outcome.warnings)
        return call.renderer.answer_made(outcome.object, lambda object: scale_of(call, object), headers)


def _paths(call: Call) -> Scale:
    paths = call.kind.scale
    if paths is None:
        raise not_found(call.kind, call.target.name)
    return paths


def scale_of(call: Call, object: Object) -> Fields:
    paths, metadata = _paths(call), object.metadata
    selector = read_path(object.fields, paths.selector)
    status: Fields = {"replicas": read_path(object.fields, paths.status_replicas) or 0}
    if selector:
        status["selector"] = selector if isinstance(selector, str) else selector_text(selector)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "uid": metadata.uid,
            "resourceVersion": object.resource_version,
            "creationTimestamp": metadata.creation_timestamp,
        },
        "spec": {"replicas": read_path(object.fields, paths.spec_replicas) or 0},
        "status": status,
    }


def read_path(fields: Any, path: str) -> Any:
    for name in path.strip(".").split("."):
        if not isinstance(fields, dict):
            return None
        fields = fields.get(name)
    return fields


def write_path(fields: Fields, path: str, value: Any) -> None:
    *way, last = path.strip(".").split(".")
    for name in way:
        fields = fields.setdefault(name, {})
    fields[last] = value


def selector_text(selector: Fields) -> str:
    """A label selector object as the string that clients parse."""
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for need in selector.get("matchExpressions") or []:
        key, values = need.get("key", ""), ",".join(sorted(need.get("values") or []))
        match need.get("operator"):
            case "In":
                parts.append(f"{key} in ({values})")
            case "NotIn":
                parts.append(f"{key} notin ({values})")
            case "Exists":
                parts.append(key)
            case "DoesNotExist":
                parts.append(f"!{key}")
    return ",".join(parts)
