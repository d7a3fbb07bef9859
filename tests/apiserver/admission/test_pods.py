"""What every new pod is given."""

import asyncio
import itertools

import pytest

from allot.api import errors


def priority_class(name: str, value: int, **rest):
    metadata = {"name": name}
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": metadata, "value": value, **rest}


def pod(name: str, **spec):
    metadata = {"name": name, "namespace": "default"}
    containers = [{"name": "main", "image": "busybox"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": containers, **spec},
    }


def test_a_pod_may_name_a_class_that_was_created_a_moment_ago(allot_server):
    """One `kubectl apply` of both: what the server has acknowledged, it knows."""
    client = allot_server.client()
    classes = client.resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False)
    pods = client.resource("", "v1", "pods")

    async def story():
        for at in range(20):
            await classes.create(priority_class(f"class-{at}", at))
            made = await pods.create(pod(f"pod-{at}", priorityClassName=f"class-{at}"))
            assert made.fields["spec"]["priority"] == at

    allot_server.run(story())


def test_a_class_that_does_not_exist_is_refused_by_name(allot_server):
    pods = allot_server.client().resource("", "v1", "pods")
    with pytest.raises(errors.Forbidden, match="no PriorityClass with name missing was found"):
        allot_server.run(pods.create(pod("p", priorityClassName="missing")))


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"priority": 7}, r"the integer value of priority \(7\) must not be provided in pod spec"),
        ({"priorityClassName": "low", "priority": 7}, "admission controller computed 5"),
        (
            {"priorityClassName": "low", "preemptionPolicy": "PreemptLowerPriority"},
            "the priority class says Never",
        ),
    ],
)
def test_how_important_a_pod_is_its_class_says_and_not_the_pod(allot_server, spec, text):
    """Whoever may create pods could evict everybody else's otherwise."""
    client = allot_server.client()
    classes = client.resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False)
    pods = client.resource("", "v1", "pods")
    allot_server.run(classes.create(priority_class("low", 5, preemptionPolicy="Never")))
    with pytest.raises(errors.Forbidden, match=text):
        allot_server.run(pods.create(pod("p", **spec)))
    said = {"priorityClassName": "low", "priority": 5, "preemptionPolicy": "Never"}
    made = allot_server.run(pods.create(pod("p", **said)))
    assert said.items() <= made.fields["spec"].items()


def test_of_several_defaults_the_least_important_counts(allot_server):
    client = allot_server.client()
    classes = client.resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False)
    for name, value in (("high", 10), ("low", 5)):
        allot_server.run(classes.create(priority_class(name, value, globalDefault=True)))

    async def story():
        await asyncio.sleep(0.2)  # which class is the default is read from the watch
        return await client.resource("", "v1", "pods").create(pod("p"))

    assert allot_server.run(story()).fields["spec"]["priorityClassName"] == "low"


def test_the_default_changes_with_the_classes(allot_server):
    """It is worked out once, and anew whenever a class comes, changes or goes."""
    client = allot_server.client()
    classes = client.resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False)
    pods, numbers = client.resource("", "v1", "pods"), itertools.count()

    async def given(wanted: int) -> int:
        """The priority of new pods, once the watch has told of the change."""
        for _ in range(500):
            made = await pods.create(pod(f"p-{next(numbers)}"))
            if made.fields["spec"]["priority"] == wanted:
                break
            await asyncio.sleep(0.02)
        return made.fields["spec"]["priority"]

    async def story():
        assert await given(0) == 0
        await classes.create(priority_class("usual", 5, globalDefault=True))
        assert await given(5) == 5
        await classes.create(priority_class("lower", 3, globalDefault=True))
        assert await given(3) == 3
        await classes.delete("lower")
        assert await given(5) == 5
        await classes.delete("usual")
        assert await given(0) == 0

    allot_server.run(story())
