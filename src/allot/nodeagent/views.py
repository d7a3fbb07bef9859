"""What an agent reads of pods beside what a scheduler does (`api.core`): how containers are run."""

from collections.abc import Mapping
from typing import Any

from allot.api import meta


class ClaimUse(meta.View, frozen=True):
    name: str = ""
    request: str = ""


class Resources(meta.View, frozen=True):
    claims: tuple[ClaimUse, ...] = ()


class FieldRef(meta.View, frozen=True):
    field_path: str = ""


class KeyRef(meta.View, frozen=True):
    name: str = ""
    key: str = ""
    optional: bool = False


class EnvSource(meta.View, frozen=True):
    """One of these is set, or one that is not known here."""

    field_ref: FieldRef | None = None
    config_map_key_ref: KeyRef | None = None
    secret_key_ref: KeyRef | None = None


class EnvVar(meta.View, frozen=True):
    name: str = ""
    value: str = ""
    value_from: EnvSource | None = None


class Container(meta.View, frozen=True):
    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[Mapping[str, Any], ...] = ()
    volume_mounts: tuple[Mapping[str, Any], ...] = ()
    restart_policy: str | None = None  # of init containers; Always: a sidecar
    resources: Resources = Resources()


class PodSpec(meta.View, frozen=True):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    restart_policy: str = ""


class Pod(meta.View, frozen=True):
    spec: PodSpec = PodSpec()
