"""No node gives more devices of a compute resource than it has (D7): what counts, and until when."""

import json

import pytest

from allot.api import compute, errors
from kep.compute import NS, Place, class_, container, cr, given, named, node, pod, put, to_a_cluster

P100, ECC = {"type": "p100"}, {"type": "p100", "ecc": "true"}
PLAIN = class_("p100", ("type", "In", "p100"))
ENTRY = {"computeResourceName": named(P100), "count": 1}
CHOICE = {compute.limits.RECORD_ANNOTATION: json.dumps({"c": {"p100": [ENTRY]}})}


async def bind(here: Place, name: str) -> None:
    await here.resource("pods").bind(name, NS, "n1", annotations=CHOICE)


@to_a_cluster(scheduled=False)
async def test_devices_that_are_not_healthy_are_not_given(here: Place):
    await put(here, PLAIN, node("n1", cr(P100, 2, healthy=1)))
    for name in ("p", "q"):
        await put(here, pod(name, {"p100": 1}))
    await bind(here, "p")
    with pytest.raises(errors.Conflict, match=r"1 devices of .* are wanted and 0 of 1 are free"):
        await bind(here, "q")


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_lets_go_however_it_ended(phase):
    @to_a_cluster(scheduled=False)
    async def story(here: Place):
        await put(here, PLAIN, node("n1", cr(P100, 1)))
        for name in ("p", "q"):
            await put(here, pod(name, {"p100": 1}))
        await bind(here, "p")
        with pytest.raises(errors.Conflict):
            await bind(here, "q")
        ended = {"status": {"phase": phase}}
        await here.resource("pods").patch("p", ended, NS, subresource="status")
        await bind(here, "q")

    story()


@to_a_cluster(scheduled=False)
async def test_a_pod_that_was_made_on_a_node_is_its_nodes_to_judge_and_is_counted(here: Place):
    """14-BIND-09: its author decided, also for more than there is; who comes later finds nothing free."""
    await put(here, PLAIN, node("n1", cr(P100, 1)))
    for name in ("p", "q"):
        own = container(record={"p100": [ENTRY]}, p100=1)
        await put(here, pod(name, None, own, nodeName="n1"))
    await put(here, pod("late", {"p100": 1}))
    with pytest.raises(errors.Conflict, match="0 of 1 are free"):
        await bind(here, "late")
    for name in ("p", "q"):
        await here.delete_pod(name)
    await bind(here, "late")


@to_a_cluster(scheduled=False)
async def test_a_binding_does_not_overwrite_what_the_author_of_a_pod_has_chosen(here: Place):
    """14-BIND-06, whichever scheduler binds: it is what the pod is given, and what counts."""
    await put(here, PLAIN, node("n1", cr(P100, 1), cr(ECC, 1)))
    other = [{"computeResourceName": named(ECC), "count": 1}]
    await put(here, pod("p", None, container(record={"p100": other}, p100=1)), pod("q", {"p100": 1}))
    await bind(here, "p")
    assert given(await here.resource("pods").get("p", NS)) == {"p100": {named(ECC): 1}}
    await bind(here, "q")
