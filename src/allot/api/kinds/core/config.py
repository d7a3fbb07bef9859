"""ConfigMaps and Secrets: small data that pods read."""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ... import names
from ...field import FieldError, Path, forbidden, invalid, required, too_long
from ...kind import Column, Fields, Kind, Rules, Version, WriteContext
from ..reading import default, obj, text

DATA_BYTES_MAX = 1024 * 1024
_FROZEN = "field is immutable when `immutable` is set"
_DATA = Path("data")


def _validate_frozen(new: Fields, old: Fields, contents: Sequence[str]) -> list[FieldError]:
    """Once `immutable` is set it stays set, and the contents stay."""
    if not old.get("immutable"):
        return []
    found = [] if new.get("immutable") else [forbidden(Path("immutable"), _FROZEN)]
    for name in contents:
        if (new.get(name) or {}) != (old.get(name) or {}):
            found.append(forbidden(Path(name), _FROZEN))
    return found


def _key_errors(data: Mapping[str, Any], path: Path) -> list[FieldError]:
    return [invalid(path[key], key, wrong) for key in data for wrong in names.config_key(key)]


def _validate_config_map(config: Fields) -> list[FieldError]:
    data, binary = obj(config, "data"), obj(config, "binaryData")
    found = _key_errors(data, _DATA) + _key_errors(binary, Path("binaryData"))
    for key in data.keys() & binary.keys():
        found.append(invalid(_DATA[key], key, "duplicate of key present in binaryData"))
    size = sum(len(value.encode()) for value in data.values())
    size += sum(_decoded_size(value) for value in binary.values())
    if size > DATA_BYTES_MAX:
        found.append(too_long(Path(""), DATA_BYTES_MAX))
    return found


def _decoded_size(encoded: str) -> int:
    return len(encoded) * 3 // 4


def _count(config: Fields) -> int:
    return len(obj(config, "data")) + len(obj(config, "binaryData"))


CONFIG_MAP = Kind(
    group="",
    kind="ConfigMap",
    plural="configmaps",
    singular="configmap",
    short_names=("cm",),
    versions=(Version("v1", "io.k8s.api.core.v1.ConfigMap"),),
    hub="v1",
    rules=Rules(
        validate_create=lambda new, context: _validate_config_map(new),
        validate_update=lambda new, old, context: [
            *_validate_frozen(new, old, ("data", "binaryData")),
            *_validate_config_map(new),
        ],
    ),
    columns=(
        Column("Name", format="name", description="Name must be unique within a namespace."),
        Column("Data", "integer", description="How many entries it has."),
        Column("Age", description="How long ago the object was created."),
    ),
    cells=lambda config, age: [config["metadata"]["name"], _count(config), age],
)

# -- secrets ------------------------------------------------------------------------------------

OPAQUE = "Opaque"
SERVICE_ACCOUNT_TOKEN = "kubernetes.io/service-account-token"
SERVICE_ACCOUNT_NAME = "kubernetes.io/service-account.name"
REQUIRED_KEYS: Mapping[str, tuple[str, ...]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_BASIC_AUTH = "kubernetes.io/basic-auth"
_JSON_KEYS = (".dockercfg", ".dockerconfigjson")


def _default_secret(secret: Fields, now: datetime) -> None:
    """`stringData` is a way to write data without encoding it, and is never read back."""
    default(secret, "type", OPAQUE)
    plain = secret.pop("stringData", None)
    if plain:
        encoded = {key: base64.b64encode(str(value).encode()).decode() for key, value in plain.items()}
        secret["data"] = {**obj(secret, "data"), **encoded}


def _validate_secret(secret: Fields) -> list[FieldError]:
    data = obj(secret, "data")
    found, size, decoded = _key_errors(data, _DATA), 0, {}
    for key, value in data.items():
        try:
            decoded[key] = base64.b64decode(value or "", validate=True)
        except (binascii.Error, ValueError):
            found.append(invalid(_DATA[key], "<redacted>", "must be base64"))
            continue
        size += len(decoded[key])
    if size > DATA_BYTES_MAX:
        found.append(too_long(_DATA, DATA_BYTES_MAX))
    return found + _validate_secret_type(secret, decoded)


def _validate_secret_type(secret: Fields, decoded: Mapping[str, bytes]) -> list[FieldError]:
    kind = text(secret, "type")
    found: list[FieldError] = []
    if kind == SERVICE_ACCOUNT_TOKEN and not text(secret, "metadata", "annotations", SERVICE_ACCOUNT_NAME):
        found.append(required(Path("metadata.annotations")[SERVICE_ACCOUNT_NAME]))
    if kind == _BASIC_AUTH and not decoded.keys() & {"username", "password"}:
        found += [required(_DATA["username"]), required(_DATA["password"])]
    for key in REQUIRED_KEYS.get(kind, ()):
        if key not in decoded:
            found.append(required(_DATA[key]))
        elif key in _JSON_KEYS and not _is_json(decoded[key]):
            found.append(invalid(_DATA[key], "<secret contents redacted>", "must be valid JSON"))
    return found


def _is_json(encoded: bytes) -> bool:
    try:
        json.loads(encoded)
    except (ValueError, RecursionError):
        return False
    return True


def _validate_secret_update(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    found = _validate_frozen(new, old, ("data",))
    if new.get("type") != old.get("type"):
        found.append(invalid(Path("type"), new.get("type"), "field is immutable"))
    return found + _validate_secret(new)


SECRET = Kind(
    group="",
    kind="Secret",
    plural="secrets",
    singular="secret",
    versions=(Version("v1", "io.k8s.api.core.v1.Secret", default=_default_secret),),
    hub="v1",
    rules=Rules(
        validate_create=lambda new, context: _validate_secret(new),
        validate_update=_validate_secret_update,
    ),
    columns=(
        Column("Name", format="name", description="Name must be unique within a namespace."),
        Column("Type", description="What the secret is for."),
        Column("Data", "integer", description="How many entries it has."),
        Column("Age", description="How long ago the object was created."),
    ),
    cells=lambda secret, age: [
        secret["metadata"]["name"], text(secret, "type"), len(obj(secret, "data")), age,
    ],
    selectable={"type": lambda secret: text(secret, "type")},
)  # fmt: skip
