"""What a namespace lets one container, one pod or one claim for a volume ask for."""

import pytest

from allot.api import errors


def limit_range(*limits, name="limits"):
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"limits": [*limits]}}


def pod(name="p", init=None, **sides):
    container = {"name": "main", "image": "busybox", "resources": sides}
    spec = {"containers": [container]}
    if init is not None:
        spec["initContainers"] = [{"name": "first", "image": "busybox", "resources": init}]
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


@pytest.fixture
def core(allot_server):
    client = allot_server.client()
    return lambda plural: client.resource("", "v1", plural)


@pytest.fixture
def made(allot_server, core):
    """A pod under these limits, as it was stored."""

    def make(wanted, *limits):
        allot_server.run(core("limitranges").create(limit_range(*limits)))
        return allot_server.run(core("pods").create(wanted)).fields

    return make


def test_containers_that_say_nothing_get_what_the_range_says(made):
    limit = {"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1", "memory": "1Gi"}}
    found = made(pod(init={}), limit)
    for container in (*found["spec"]["containers"], *found["spec"]["initContainers"]):
        assert container["resources"] == {"limits": {"cpu": "2"}, "requests": {"cpu": "1", "memory": "1Gi"}}
    assert found["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: cpu, memory request for container main; cpu limit for container main; "
        "cpu, memory request for init container first; cpu limit for init container first"
    )
    assert found["status"]["qosClass"] == "Burstable"


def test_what_a_container_says_for_itself_stays(made):
    limit = {"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}
    found = made(pod(limits={"cpu": "500m"}), limit)
    assert found["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "500m"},
        "requests": {"cpu": "500m"},
    }


CONTAINER = {"type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": "1"}}


@pytest.mark.parametrize(
    ("wanted", "limit", "text"),
    [
        (
            pod(limits={"cpu": "2"}),
            CONTAINER,
            "maximum cpu usage per Container is 1, but limit is 2",
        ),
        (
            pod(requests={"cpu": "50m"}, limits={"cpu": "1"}),
            CONTAINER,
            "minimum cpu usage per Container is 100m, but request is 50m",
        ),
        (
            pod(limits={"cpu": "100m"}, init={"limits": {"cpu": "3"}}),
            CONTAINER,
            "maximum cpu usage per Container is 1, but limit is 3",
        ),
        (
            pod(limits={"memory": "2Gi"}),
            {"type": "Pod", "max": {"memory": "1Gi"}},
            "maximum memory usage per Pod is 1Gi, but limit is 2Gi",
        ),
        (
            pod(),
            {"type": "Pod", "max": {"memory": "1Gi"}},
            "maximum memory usage per Pod is 1Gi.  No limit is specified",
        ),
        (
            pod(),
            {"type": "Pod", "min": {"memory": "1Gi"}},
            "minimum memory usage per Pod is 1Gi.  No request is specified",
        ),
        (
            pod(requests={"cpu": "1"}, limits={"cpu": "3"}),
            {"type": "Pod", "maxLimitRequestRatio": {"cpu": "2"}},
            "cpu max limit to request ratio per Pod is 2, but provided ratio is 3.000000",
        ),
        (
            pod(requests={"cpu": "1"}),
            {"type": "Pod", "maxLimitRequestRatio": {"cpu": "2"}},
            "no limit is specified or limit is 0",
        ),
    ],
)
def test_beyond_the_bounds_a_pod_is_refused(made, wanted, limit, text):
    with pytest.raises(errors.Forbidden, match='pods "p" is forbidden: ') as refused:
        made(wanted, limit)
    assert text in str(refused.value)


def test_at_the_bounds_a_pod_is_accepted(made):
    limits = [CONTAINER, {"type": "Pod", "max": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "10"}}]
    assert made(pod(requests={"cpu": "100m"}, limits={"cpu": "1"}), *limits)["spec"]


def test_everything_that_is_wrong_is_said_at_once(made):
    limit = {"type": "Container", "max": {"cpu": "1", "memory": "1Gi"}}
    with pytest.raises(errors.Forbidden) as refused:
        made(pod(limits={"cpu": "2", "memory": "2Gi"}), limit)
    assert "[maximum cpu usage" in str(refused.value)
    assert "maximum memory usage" in str(refused.value)


def test_a_range_counts_from_the_moment_it_is_acknowledged_and_until_it_is_gone(allot_server, core):
    async def story():
        for number in range(15):
            name = f"limits-{number}"
            limit = {"type": "Container", "max": {"cpu": "1"}}
            await core("limitranges").create(limit_range(limit, name=name))
            with pytest.raises(errors.Forbidden):
                await core("pods").create(pod(f"p-{number}", limits={"cpu": "2"}))
            await core("limitranges").delete(name, "default")

        async def fits():
            try:
                return await core("pods").create(pod("last", limits={"cpu": "2"}))
            except errors.Forbidden:
                return None

        while not await fits():
            pass

    allot_server.run(story())


def test_pods_that_are_there_stay_and_can_be_changed(allot_server, core):
    async def story():
        await core("pods").create(pod(limits={"cpu": "2"}))
        limit = {"type": "Container", "max": {"cpu": "1"}}
        await core("limitranges").create(limit_range(limit))
        await core("pods").patch("p", {"metadata": {"labels": {"a": "b"}}}, "default")

    allot_server.run(story())


def test_claims_for_volumes_are_held_to_their_bounds(allot_server, core):
    limit = {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "10Gi"}}

    def claim(size):
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
        return {"metadata": {"generateName": "data-", "namespace": "default"}, "spec": spec}

    async def story():
        await core("limitranges").create(limit_range(limit))
        await core("persistentvolumeclaims").create(claim("5Gi"))
        for size, word in (("11Gi", "maximum storage usage"), ("1Mi", "minimum storage usage")):
            with pytest.raises(errors.Forbidden, match=word):
                await core("persistentvolumeclaims").create(claim(size))

    allot_server.run(story())


def test_a_range_that_says_nothing_limits_nothing(allot_server, core):
    """It is stored without a spec: to look into it was an error of the server."""

    async def story():
        await core("limitranges").create({"metadata": {"name": "empty", "namespace": "default"}})
        await core("pods").create(pod("p", limits={"cpu": "2"}))
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        claim = {"metadata": {"name": "data", "namespace": "default"}, "spec": spec}
        assert (await core("persistentvolumeclaims").create(claim)).name == "data"

    allot_server.run(story())
