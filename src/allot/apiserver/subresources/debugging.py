"""pods/NAME/ephemeralcontainers: a container joins a pod that runs, as `kubectl debug` wants it."""

from collections.abc import Awaitable, Callable, Mapping

from allot.api import Response

from ..requests.call import Call
from .reaching import Reaching, hollow_pod, is_hollow

Verb = Callable[[Call], Awaitable[Response]]


def ephemeral_containers(reaching: Reaching, get: Verb, update: Verb, patch: Verb) -> Mapping[str, Verb]:
    """By method. What is added, and what may be, the rules of pods say (`podspec.ephemeral`)."""

    def where_something_runs(write: Verb) -> Verb:
        async def checked(call: Call) -> Response:
            pod = await reaching.pod(call)
            if (pod.get("spec") or {}).get("nodeName"):
                node = await reaching.node(pod)
                if is_hollow(node.fields):
                    raise hollow_pod(call.target.name, node.name, "there is nothing to look into")
            return await write(call)

        return checked

    return {"get": get, "update": where_something_runs(update), "patch": where_something_runs(patch)}
