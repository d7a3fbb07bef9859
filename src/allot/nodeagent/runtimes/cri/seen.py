"""What a runtime says of a container, as an attempt. Pure."""

from typing import Final

from allot.wire import cri

from ..contract import Attempt, Usage
from .asking import CONTAINER, CRASHES, POD_UID

OOM: Final = "OOMKilled"
_START_ERROR: Final = "StartError"
_ORDINARY: Final = ("", "Completed", "Error")  # what an exit code says as well
_UNKNOWN_CODE: Final = 137


def has_begun(status: cri.ContainerStatus) -> bool:
    """RUN1: one that was made and not started, or could not be, has not."""
    return status.state is not cri.ContainerState.CREATED and status.reason != _START_ERROR


def is_over(one: cri.Container | cri.ContainerStatus) -> bool:
    return one.state in (cri.ContainerState.EXITED, cri.ContainerState.UNKNOWN)


def attempt(status: cri.ContainerStatus, runtime: str) -> Attempt:
    runs = status.state is cri.ContainerState.RUNNING
    is_known = status.state is cri.ContainerState.EXITED
    started_ns = status.started_at or status.created_at
    metadata = status.metadata or cri.ContainerMetadata()
    return Attempt(
        pod_uid=status.labels.get(POD_UID, ""),
        name=status.labels.get(CONTAINER, metadata.name),
        number=metadata.attempt,
        started_at=started_ns / 1e9,
        finished_at=None if runs else max(status.finished_at, started_ns) / 1e9,  # it notes starts late
        exit_code=None if runs else status.exit_code if is_known else _UNKNOWN_CODE,
        crashes=int(status.annotations.get(CRASHES, "0")),
        log=status.log_path,
        reason="" if runs else _reason(status),
        id=f"{runtime}://{status.id}",
        image_id=status.image_ref,
    )


def _reason(status: cri.ContainerStatus) -> str:
    """Some process of a container that ended well may have been killed for its memory: it did without."""
    return "" if status.exit_code == 0 or status.reason in _ORDINARY else status.reason


def container_id(attempt: Attempt) -> str:
    return attempt.id.partition("://")[2]


def addresses(sandbox: cri.PodSandboxStatus | None) -> tuple[str, ...]:
    network = sandbox.network if sandbox is not None else None
    if network is None or not network.ip:
        return ()
    return (network.ip, *(one.ip for one in network.additional_ips if one.ip))


def may_be_told_otherwise(status: cri.ContainerStatus) -> bool:
    """That memory ran out is heard apart from the end that it brought, and perhaps after it."""
    return status.exit_code == 137 and status.reason != OOM


def not_run(why: str) -> int | None:
    """The exit code of a command that is not there, or may not be run, as shells have it; else None."""
    if "executable file not found" in why or "no such file or directory" in why:
        return 127
    return 126 if "permission denied" in why else None


def usage(stats: cri.ContainerStats) -> Usage | None:
    """None: nothing is measured of it yet."""
    about, cpu, memory = stats.attributes, stats.cpu, stats.memory
    if about is None or cpu is None or cpu.usage_core_nano_seconds is None:
        return None
    used = memory.working_set_bytes if memory is not None else None
    return Usage(
        about.labels.get(POD_UID, ""),
        about.labels.get(CONTAINER, ""),
        cpu.usage_core_nano_seconds.value,
        used.value if used is not None else 0,
    )
