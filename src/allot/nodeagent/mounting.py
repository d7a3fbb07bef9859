"""The volumes of pods: made before the first container begins, kept up to date, removed with the pod.

    ROOT/pods/UID/volumes/NAME

Config maps and secrets are asked for again every so often, tokens when most of their time is over; a volume
changes at one moment (`volume_files`). What is mounted where is the runtime's.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from allot.api import Object, age, errors
from allot.base import Clock, FileKind, Files

from . import volumes
from .environment import Lookup, expanded
from .fields import Around
from .runtimes import Mount
from .views import (
    ConfigMapFiles,
    Container,
    FieldFile,
    FieldFiles,
    FieldRef,
    HostPath,
    Pod,
    Projected,
    Projection,
    TokenFile,
    Volume,
    VolumeMount,
)
from .volume_files import lay_out
from .volumes import BadVolume, Content, File

log = logging.getLogger(__name__)

EMPTY_DIR_MODE = 0o777
API_ACCESS = "/var/run/secrets/kubernetes.io/serviceaccount"
API_ACCESS_SECONDS = 3607
_API_VOLUME = "..kube-api-access"  # no volume of a pod is called so

_NO_TOKENS = (errors.BadRequest, errors.Forbidden, errors.NotFound)
"""What a server answers that issues none for this pod. Nobody asked for one, and it starts without."""

GetToken = Callable[[Object, str, int], Awaitable[Object]]
"""A token for the account of a pod, bound to the pod: an audience, and for how many seconds."""

_TYPES = {
    "Directory": FileKind.DIRECTORY,
    "File": FileKind.FILE,
    "Socket": FileKind.SOCKET,
    "CharDevice": FileKind.CHARACTER_DEVICE,
    "BlockDevice": FileKind.BLOCK_DEVICE,
}


class FailedMount(Exception):
    """The message names the volume, and what it lacks."""


class _Token(NamedTuple):
    text: str
    refresh_at: float


class Sources(NamedTuple):
    """Whom volumes are made from."""

    lookup: Lookup
    token: GetToken
    authority: bytes = b""  # by which containers know the API server


class Volumes:
    def __init__(self, root: Path, files: Files, sources: Sources, clock: Clock) -> None:
        self._root, self._files, self._clock = root, files, clock
        self._sources = sources
        self._tokens: dict[tuple[str, str, str, str], _Token] = {}  # pod, volume, path, audience
        self._on_disk: set[Path] = set()  # volumes that should be in memory

    async def make(self, pod: Object, around: Around) -> None:
        """All volumes of the pod, or what has changed of them since. Raises FailedMount."""
        spec = pod.view(Pod).spec
        for volume in self._volumes(pod):
            try:
                await self._make(pod, volume, around)
            except (BadVolume, errors.ApiError, OSError) as why:
                if volume.name == _API_VOLUME and isinstance(why, _NO_TOKENS):
                    log.warning("pod %s has no token of its account: %s", pod.name, why)
                    continue
                raise FailedMount(f'MountVolume.SetUp failed for volume "{volume.name}" : {why}') from why
        group = spec.security_context.fs_group
        if group is not None and spec.volumes:
            await asyncio.to_thread(self._files.give, self._of(pod.uid), group)

    async def refresh(self, pod: Object, around: Around) -> None:
        """What others may have changed; one that is gone stays as it was."""
        for volume in self._volumes(pod):
            if volume.empty_dir is None and volume.host_path is None:
                try:
                    await self._make(pod, volume, around)
                except (BadVolume, errors.ApiError, OSError) as why:
                    log.warning("volume %s of pod %s stays as it is: %s", volume.name, pod.name, why)

    def mounts(self, pod: Object, container: Container, env: Mapping[str, str]) -> tuple[Mount, ...]:
        """What the container is to find where. Raises FailedMount."""
        known = {one.name: one for one in pod.view(Pod).spec.volumes}
        found = [self._mount(pod, known, wish, env) for wish in container.volume_mounts]
        access = self._of(pod.uid) / _API_VOLUME
        if self._has_api_access(pod, container) and self._files.kind(access) is not None:
            found.append(Mount(str(access), API_ACCESS, read_only=True, is_optional=True))
        return tuple(found)

    async def remove(self, uid: str) -> None:
        for key in [key for key in self._tokens if key[0] == uid]:
            del self._tokens[key]
        self._on_disk = {one for one in self._on_disk if self._of(uid) not in one.parents}
        await asyncio.to_thread(self._files.remove_tree, self._root / uid)

    # -- what is in them --------------------------------------------------------------------------

    def _of(self, uid: str) -> Path:
        return self._root / uid / "volumes"

    def _volumes(self, pod: Object) -> Iterator[Volume]:
        spec = pod.view(Pod).spec
        yield from spec.volumes
        if any(self._has_api_access(pod, one) for one in spec.every_container):
            yield _api_access()

    def _has_api_access(self, pod: Object, container: Container) -> bool:
        spec = pod.view(Pod).spec
        if not spec.service_account_name or not self._sources.authority:
            return False
        if spec.automount_service_account_token is False:
            return False
        return all(one.mount_path.rstrip("/") != API_ACCESS for one in container.volume_mounts)

    async def _make(self, pod: Object, volume: Volume, around: Around) -> None:
        volumes.require_known(volume)
        directory = self._of(pod.uid) / volume.name
        if volume.empty_dir is not None:
            await asyncio.to_thread(self._make_empty, pod, volume, directory)
        elif volume.host_path is not None:
            await asyncio.to_thread(self._require_host_path, volume.host_path)
        else:
            content = await self._content(pod, volume, around)
            await asyncio.to_thread(lay_out, self._files, directory, content)

    def _make_empty(self, pod: Object, volume: Volume, directory: Path) -> None:
        if not volumes.is_in_memory(volume):
            self._files.place_directory(directory, EMPTY_DIR_MODE)
            return
        size = volumes.memory_size(volume, pod.view(Pod).spec.every_container)
        is_in_memory = self._files.place_memory(directory, EMPTY_DIR_MODE, size)
        if not is_in_memory and directory not in self._on_disk:
            self._on_disk.add(directory)
            log.warning(
                "volume %s of pod %s/%s lies on disk: this node may not mount memory",
                volume.name,
                pod.namespace,
                pod.name,
            )

    async def oversized(self, pod: Object) -> str:
        """Which volume has grown beyond its limit, in words; empty: none. In memory none can."""
        for volume in pod.view(Pod).spec.volumes:
            limit = volumes.size_limit(volume)
            directory = self._of(pod.uid) / volume.name
            if limit is None or (volumes.is_in_memory(volume) and directory not in self._on_disk):
                continue
            if await asyncio.to_thread(self._files.used, directory) > limit:
                return f'the emptyDir "{volume.name}" holds more than its sizeLimit of {limit} bytes'
        return ""

    async def _content(self, pod: Object, volume: Volume, around: Around) -> Content:
        if volume.config_map is not None:
            return await self._keys(pod, "configmaps", volume.config_map, volumes.MODE)
        if volume.secret is not None:
            secret = volume.secret
            named = ConfigMapFiles(
                name=secret.secret_name,
                items=secret.items,
                default_mode=secret.default_mode,
                optional=secret.optional,
            )
            return await self._keys(pod, "secrets", named, volumes.MODE)
        if volume.downward_api is not None:
            mode = _mode(volume.downward_api.default_mode, volumes.MODE)
            every = pod.view(Pod).spec.every_container
            return volumes.fields(pod, every, volume.downward_api.items, mode, around)
        assert volume.projected is not None
        mode = _mode(volume.projected.default_mode, volumes.MODE)
        parts = [
            await self._projected(pod, volume.name, one, mode, around) for one in volume.projected.sources
        ]
        if volume.name == _API_VOLUME:
            parts.append({"ca.crt": File(self._sources.authority, mode)})
        return volumes.together(parts)

    async def _projected(
        self, pod: Object, volume: str, source: Projection, mode: int, around: Around
    ) -> Content:
        if source.config_map is not None:
            return await self._keys(pod, "configmaps", source.config_map, mode)
        if source.secret is not None:
            return await self._keys(pod, "secrets", source.secret, mode)
        if source.downward_api is not None:
            every = pod.view(Pod).spec.every_container
            return volumes.fields(pod, every, source.downward_api.items, mode, around)
        if source.service_account_token is not None:
            wanted = source.service_account_token
            return {wanted.path: File((await self._token(pod, volume, wanted)).encode(), mode)}
        raise BadVolume("it projects something that is not known to this node")

    async def _keys(self, pod: Object, plural: str, wanted: ConfigMapFiles, mode: int) -> Content:
        singular = "configmap" if plural == "configmaps" else "secret"
        try:
            found = await self._sources.lookup(plural, pod.namespace, wanted.name)
        except (errors.NotFound, errors.Forbidden):
            if wanted.optional:
                return {}
            raise BadVolume(f'{singular} "{wanted.name}" not found') from None
        data = volumes.data_of(found.fields, is_secret=plural == "secrets")
        return volumes.keys(
            data,
            wanted.items,
            _mode(wanted.default_mode, mode),
            named=f'{singular} "{wanted.name}"',
            is_optional=wanted.optional,
        )

    async def _token(self, pod: Object, volume: str, wanted: TokenFile) -> str:
        key, now = (pod.uid, volume, wanted.path, wanted.audience), self._clock.now()
        known = self._tokens.get(key)
        if known is not None and now.timestamp() < known.refresh_at:
            return known.text
        answer = (await self._sources.token(pod, wanted.audience, wanted.expiration_seconds)).fields
        expires = age.moment(answer["status"]["expirationTimestamp"])
        expires_at = expires.timestamp() if expires is not None else now.timestamp()
        refresh_at = volumes.token_refresh_at(now.timestamp(), expires_at)
        self._tokens[key] = _Token(answer["status"]["token"], refresh_at)
        return self._tokens[key].text

    def _require_host_path(self, wanted: HostPath) -> None:
        path, files = Path(wanted.path), self._files
        if wanted.type == "DirectoryOrCreate" and files.kind(path) is None:
            files.place_directory(path, 0o755)
        if wanted.type == "FileOrCreate" and files.kind(path) is None:
            files.place(path, b"", 0o644)
        kind = _TYPES.get(wanted.type.removesuffix("OrCreate"))
        if kind is not None and files.kind(path) is not kind:
            raise BadVolume(f"hostPath type check failed: {wanted.path} is not a {kind.value}")

    # -- where they are seen ----------------------------------------------------------------------

    def _mount(
        self, pod: Object, known: Mapping[str, Volume], wish: VolumeMount, env: Mapping[str, str]
    ) -> Mount:
        volume = known.get(wish.name)
        if volume is None:
            raise FailedMount(f"the pod has no volume {wish.name}")
        is_host = volume.host_path is not None
        path = Path(volume.host_path.path) if volume.host_path is not None else self._of(pod.uid) / wish.name
        part = wish.sub_path or expanded(wish.sub_path_expr, env)
        is_writable = is_host or volume.empty_dir is not None
        if part:
            try:
                path = self._part(path, part, makes=is_writable)
            except (BadVolume, OSError) as wrong:
                raise FailedMount(
                    f"failed to prepare subPath for volumeMount {wish.name!r}: {wrong}"
                ) from None
        return Mount(str(path), wish.mount_path, wish.read_only or not is_writable, wish.mount_propagation)

    def _part(self, volume: Path, part: str, *, makes: bool) -> Path:
        """Where a part of a volume really lies: a container may have left a link that leads out of it."""
        volumes.require_inside(part)
        path, files = volume / part, self._files
        if not files.real(path).is_relative_to(files.real(volume)):
            raise BadVolume(f"{part} leads out of the volume")
        if files.kind(path) is None:
            if not makes:
                raise BadVolume(f"the volume has no {part}")
            files.place_directory(path, EMPTY_DIR_MODE)
        return files.real(path)


def _mode(mode: int | None, otherwise: int) -> int:
    return otherwise if mode is None else mode


def _api_access() -> Volume:
    """What a container needs to talk to the API server as the account of its pod."""
    namespace = FieldFile(path="namespace", field_ref=FieldRef(field_path="metadata.namespace"))
    token = TokenFile(path="token", expiration_seconds=API_ACCESS_SECONDS)
    sources = (
        Projection(service_account_token=token),
        Projection(downward_api=FieldFiles(items=(namespace,))),
    )
    return Volume(name=_API_VOLUME, projected=Projected(sources=sources))
