"""What an agent says about the containers of its pods, in events, as a kubelet does."""

from collections.abc import Callable, Sequence

from allot.api import Object
from allot.informers import NORMAL, WARNING

from .hooks import Moment
from .probes import Outcome, Purpose
from .probing import Failure
from .views import Container, Pod

Record = Callable[[Object, str, str, str, str], None]
"""Of a pod: the type, the reason, the message, and which part of it that is about."""


def nobody(pod: Object, type: str, reason: str, message: str, field_path: str) -> None:
    pass


class Telling:
    def __init__(self, record: Record = nobody) -> None:
        self._record = record

    def image(self, pod: Object, container: Container, reason: str, message: str) -> None:
        self._say(pod, container, NORMAL, reason, message)

    def no_pull_secrets(self, pod: Object, wrong: Sequence[str]) -> None:
        message = f"imagePullSecrets are of no use, and images may not be pulled: {'; '.join(wrong)}"
        self._record(pod, WARNING, "FailedToRetrieveImagePullSecret", message, "")

    def started(self, pod: Object, container: Container) -> None:
        self._say(pod, container, NORMAL, "Created", "Container created")
        self._say(pod, container, NORMAL, "Started", "Container started")

    def failed(self, pod: Object, container: Container, reason: str, message: str) -> None:
        """Of an image first what happened to it, and then what its container waits for."""
        match reason:
            case "ErrImagePull":
                message, what = "", f'Failed to pull image "{container.image}": {message}'
                self._say(pod, container, WARNING, "Failed", what)
            case "ImagePullBackOff":
                message, what = "", f'Back-off pulling image "{container.image}"'
                self._say(pod, container, NORMAL, "BackOff", what)
            case "ErrImageNeverPull":
                self._say(pod, container, WARNING, "ErrImageNeverPull", message)
                message = ""
            case "InvalidImageName":
                self._say(pod, container, WARNING, "InspectFailed", message)
                message = ""
        self._say(pod, container, WARNING, "Failed", f"Error: {message}" if message else f"Error: {reason}")

    def not_mounted(self, pod: Object, message: str) -> None:
        self._record(pod, WARNING, "FailedMount", message, "")

    def backs_off(self, pod: Object, container: Container) -> None:
        name = f"{pod.name}_{pod.namespace}({pod.uid})"
        message = f"Back-off restarting failed container {container.name} in pod {name}"
        self._say(pod, container, WARNING, "BackOff", message)

    def unhealthy(self, pod: Object, container: Container, purpose: Purpose, outcome: Outcome) -> None:
        message = f"{purpose.value} probe failed: {outcome.message}"
        self._say(pod, container, WARNING, "Unhealthy", message)

    def stopping(self, pod: Object, container: Container) -> None:
        self._say(pod, container, NORMAL, "Killing", f"Stopping container {container.name}")

    def killing(self, pod: Object, container: Container, failure: Failure) -> None:
        probe = failure.purpose.value.lower()
        message = f"Container {container.name} failed {probe} probe, will be restarted"
        self._say(pod, container, NORMAL, "Killing", message)

    def hook_failed(self, pod: Object, container: Container, moment: Moment, outcome: Outcome) -> None:
        message = f"{moment.value}Hook failed: {outcome.message}"
        self._say(pod, container, WARNING, f"Failed{moment.value}Hook", message)

    def evicted(self, pod: Object, message: str) -> None:
        self._record(pod, WARNING, "Evicted", message, "")

    def too_late(self, pod: Object, message: str) -> None:
        self._record(pod, NORMAL, "DeadlineExceeded", message, "")

    def _say(self, pod: Object, container: Container, type: str, reason: str, message: str) -> None:
        self._record(pod, type, reason, message, field_path(pod, container))


def field_path(pod: Object, container: Container) -> str:
    spec = pod.view(Pod).spec
    for kind, containers in (
        ("initContainers", spec.init_containers),
        ("ephemeralContainers", spec.ephemeral_containers),
    ):
        if any(one.name == container.name for one in containers):
            return f"spec.{kind}{{{container.name}}}"
    return f"spec.containers{{{container.name}}}"
