"""KEP-4381: what `allot explain` says of numeric claims, read from the API by whoever asks."""

from allot.api import User
from allot.base import SystemClock
from allot.informers import Key
from allot.scheduler import Why, names_of, read, why_pod
from scheduler.cluster import NS, Cluster
from scheduler.numeric import Numeric
from scheduler.test_why import why, why_of_claim

from .test_4381_scheduling import once


@once
async def test_a_pod_that_waits_is_told_how_much_it_needs_and_what_the_best_node_has(here: Numeric):
    await here.publish("a", 4, color="red")
    await here.publish("b", 2, color="red")
    selecting = (
        "kind: Parameters\napiVersion: counter.dra.config.k8s.io/v1beta1\n"
        "required: {{object.spec.numberOfFrobnicators}}\nselector: {matchLabels: {color: red}}\n"
    )
    entry = {
        "apiVersion": "dra.e2e.example.com/v1alpha1",
        "kind": "ClaimParameters",
        "celTemplate": selecting,
    }
    await here.resource_class("red", numericParameters=[entry])
    await here.claim("first", 3, resource_class="red")
    await here.pod("first", "first")
    assert await here.here.bound("first") == ["a"]
    await here.claim("second", 3, resource_class="red")
    await here.pod("second", "second")
    await here.waits("second", "needs 3")
    told = await why(here.here, "second")
    assert told.verdict == "none of 2 nodes takes it"
    assert "the best node, b: needs 3 free of a counter with labels color=red; c0 has 2" in told.text()
    assert "claim second: nothing taken yet; class red has numeric parameters" in told.claims
    (line,) = (await why(here.here, "first")).claims
    taken = "3 of counter.dra.config.k8s.io/count from c0 of driver frob.example.com on node a"
    assert line == f"claim first: {taken}"


@once
async def test_whoever_may_not_read_parameters_is_told_so_and_not_a_guess(here: Numeric):
    await here.asks("p", 9)
    await here.waits("p", "needs 9")
    server = here.here.server
    group = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": ["", "resource.k8s.io"], "resources": ["*"], "verbs": ["list"]}]
    roles = here.here.client.resource(group, "v1", "clusterroles", namespaced=False)
    await roles.create({"metadata": {"name": "onlooker"}, "rules": rules})
    bindings = here.here.client.resource(group, "v1", "clusterrolebindings", namespaced=False)
    who = {"kind": "User", "apiGroup": group, "name": "onlooker"}
    of = {"kind": "ClusterRole", "apiGroup": group, "name": "onlooker"}
    await bindings.create({"metadata": {"name": "onlooker"}, "subjects": [who], "roleRef": of})
    onlooker = server.client(User("onlooker", groups=("system:authenticated",)))

    async def asked() -> Why | None:
        reading = await read(onlooker, here.here.gates)
        pod = reading.pods.get(Key(NS, "p"))
        if pod is None:
            return None  # the server has not heard of the right yet
        return why_pod(pod, reading, SystemClock().now(), names_of(reading.snapshot, NS))

    told = await here.here.until(asked, "the onlooker may read pods")
    assert not told.is_certain
    assert "may not list claimparameters" in told.verdict
    assert any("needs 9" in note for note in told.notes)  # the scheduler's own word


@once
async def test_a_pod_that_waits_on_its_node_and_the_instance_that_is_gone_are_told_together(here: Numeric):
    """4381-FAIL-08: also where there is less of it than is taken."""
    await here.asks("p", 3)
    assert await here.here.bound("p") == ["a"]
    assert (await why(here.here, "p")).notes == ()
    await here.publish("a", 1)
    told = await why(here.here, "p")
    assert told.verdict == "on node a"
    taken = "3 of counter.dra.config.k8s.io/count from c0 of driver frob.example.com on node a"
    assert told.notes == (f"claim p has {taken}, which has 1 by now",)
    await here.publish("a")
    lost = f"claim p has {taken}, which its driver no longer publishes"
    assert (await why(here.here, "p")).notes == (lost,)
    assert (await why_of_claim(here.here, "p")).notes == (lost,)


@once
async def test_an_immediate_claim_stays_with_a_node_that_is_gone_and_says_so(here: Numeric):
    """4381-IMM-09: until it is deleted."""
    place: Cluster = here.here
    await here.claim("c", 4, allocationMode="Immediate")
    await here.pod("p", "c")
    assert await place.bound("p") == ["a"]
    await here.finish("p")

    async def unused() -> bool:
        return "reservedFor" not in await here.status("c")

    await place.until(unused, "nobody uses it")
    await place.resource("nodes").delete("a")
    await place.quiet()
    assert await here.taken("c") == ("a", "c0", 4)
    told = await why_of_claim(place, "c")
    assert told.notes == (
        "claim c is for node a alone, which is not there; it is given back when the claim is deleted",
    )
    await here.pod("again", "c")
    await here.waits("again")
    assert await here.taken("c") == ("a", "c0", 4)
