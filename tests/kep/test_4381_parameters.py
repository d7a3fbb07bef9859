"""KEP-4381: who reads parameter objects, of which kinds and versions, and for how long."""

import asyncio
from collections import Counter
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from allot.api import errors
from allot.apiserver import identities
from allot.cel import Template
from allot.client import InProcessTransport
from allot.scheduler import Settings
from allot.scheduler.parameter_watches import RETRY_S as LOOKS_EVERY_S
from api.numeric.objects import GROUP
from scheduler.classic_driver import Driver
from scheduler.cluster import NS, pod, tell
from scheduler.numeric import PARAMETERS, TEMPLATE, VENDOR, Numeric, definition

KIND = {"apiVersion": f"{VENDOR}/v1alpha1", "kind": "ClaimParameters"}


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr("allot.scheduler.parameter_watches.RETRY_S", 0.1)


class Line:
    """Carries a scheduler's requests and notes which objects it reads, in which way, and which it watches."""

    def __init__(self, place, holds=""):
        self._transport = InProcessTransport(place.server.api.handle, identities.SCHEDULER)
        self._holds = holds
        self.may_go = asyncio.Event()
        self.asked = Counter()
        self.watched = Counter()
        self._streams = {}

    async def send(self, request):
        plural = request.path.rpartition("/")[2]
        if self._holds and VENDOR in request.path and self._holds in request.path:
            await self.may_go.wait()
        is_watch = request.asks_for("watch")
        if request.method == "GET" and VENDOR in request.path:
            self.asked["watch" if is_watch else f"get {plural}"] += 1
        response = await self._transport.send(request)
        if response.stream is None or not is_watch:
            return response
        self.watched[plural] += 1
        self._streams[plural] = response.stream
        return replace(response, stream=self._noted(plural, response.stream))

    async def _noted(self, plural, stream):
        try:
            async for chunk in stream:
                yield chunk
        finally:
            self.watched[plural] -= 1

    async def cut(self, plural):
        """Its watch ends, as all do now and then."""
        await self._streams[plural].aclose()

    async def close(self):
        await self._transport.close()


def story(told):
    def test():
        async def whole(place):
            await told(await Numeric(place).furnish())

        tell(whole)

    test.__doc__ = told.__doc__
    return test


@asynccontextmanager
async def heard(place, holds=""):
    """A scheduler whose requests are noted."""
    line = Line(place, holds)
    await place.start_controllers()
    await place.start_scheduler(transport=line)
    yield line
    line.may_go.set()


async def crd(place, body):
    made = place.client.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False)
    await made.create(body)


def versions(kind, *names):
    """A kind with several versions; the first is stored and preferred or not by the rules of names."""
    body = definition(kind)
    (only,) = body["spec"]["versions"]
    body["spec"]["versions"] = [{**only, "name": name, "storage": name == names[0]} for name in names]
    return body


def by_version(**counts):
    """A template that asks for as many as the version of its object says."""
    chain = "0"
    for version, count in counts.items():
        chain = f"object.apiVersion == '{VENDOR}/{version}' ? {count} : ({chain})"
    return f"kind: Parameters\napiVersion: {GROUP}/v1alpha1\nRequired: {{{{{chain}}}}}\n"


def test_a_template_sees_the_version_that_its_class_names():
    """4381-CLS-04, 4381-CLS-05, 4381-VND-07: whichever is stored or preferred; a claim names none. Two
    classes with one template and one object differ in the version alone."""

    async def told(place):
        here = Numeric(place)
        await place.node("a")
        await here.publish("a", 9)
        await crd(place, versions("Sized", "v1", "v1beta1", "v1alpha1"))
        await here.allow()
        text = by_version(v1=1, v1beta1=2, v1alpha1=3)
        objects = place.client.resource(VENDOR, "v1", "sized")

        async def made():
            try:
                body = {"apiVersion": f"{VENDOR}/v1", "kind": "Sized", "metadata": {"name": "s"}, "spec": {}}
                return await objects.create(body, NS)
            except errors.NotFound:
                return None

        await place.until(made, "the kind served")
        for version, count in (("v1alpha1", 3), ("v1", 1), ("v1beta1", 2)):
            entry = {"apiVersion": f"{VENDOR}/{version}", "kind": "Sized", "celTemplate": text}
            await here.resource_class(version, numericParameters=[entry])
            reference = {"apiGroup": VENDOR, "kind": "Sized", "name": "s"}
            await here.claim(version, resource_class=version, made=False, parametersRef=reference)
            await here.pod(version, version)
            await place.bound(version)
            assert (await here.taken(version))[2] == count
            assert (await here.handle(version))["claimParameters"]["apiVersion"] == f"{VENDOR}/{version}"

    tell(told)


def test_a_version_that_is_not_served_is_named():
    """4381-PAR-12, 4381-ERR-05: the kind is, in another version."""

    async def told(place):
        here = await Numeric(place).furnish()
        entry = {"apiVersion": f"{VENDOR}/v7", "kind": "ClaimParameters", "celTemplate": TEMPLATE}
        await here.resource_class("later", numericParameters=[entry])
        await here.claim("p", resource_class="later")
        await here.pod("p", "p")
        await here.waits("p", f"ClaimParameters.{VENDOR} is not served in version v7")
        assert "scheduler_numeric_parameter_types_resolved 1\n" in place.metrics.text()

    tell(told)


@story
async def test_the_kind_and_the_group_decide_which_entry_applies(here):
    """4381-CLS-04, 4381-CLS-03: not the kind alone, nor the group alone."""
    other = {"apiVersion": "other.example.com/v1alpha1", "kind": "ClaimParameters"}
    await here.resource_class("other", numericParameters=[{**other, "celTemplate": TEMPLATE}])
    await here.claim("p", 1, resource_class="other")
    await here.pod("p", "p")
    await here.waits("p", f"takes no parameters of kind ClaimParameters.{VENDOR}")
    same_group = {**KIND, "kind": "Others", "celTemplate": TEMPLATE}
    await here.resource_class("others", numericParameters=[same_group])
    await here.claim("q", 1, resource_class="others")
    await here.pod("q", "q")
    await here.waits("q", f"takes no parameters of kind ClaimParameters.{VENDOR}")


def _core(kind, text):
    return [{"apiVersion": "", "kind": kind, "celTemplate": text}]


@story
async def test_parameters_may_be_of_any_kind(here):
    """4381-VND-06, 4381-CLS-06: of core kinds, which need no group and no version, also of one that the
    scheduler follows for itself, and of one that has no namespace."""
    head = f"kind: Parameters\napiVersion: {GROUP}/v1alpha1\n"
    await here.allow_core()
    await here.resource_class(
        "map", numericParameters=_core("ConfigMap", head + "Required: {{int(object.data.n)}}")
    )
    configs = here.here.client.resource("", "v1", "configmaps")
    await configs.create({"metadata": {"name": "two"}, "data": {"n": "2"}}, NS)
    await here.claim(
        "m", resource_class="map", made=False, parametersRef={"kind": "ConfigMap", "name": "two"}
    )
    await here.pod("m", "m")
    await here.here.bound("m")
    assert (await here.taken("m"))[2] == 2
    await here.resource_class(
        "pod", numericParameters=_core("Pod", head + "Required: {{size(object.spec.containers)}}")
    )
    await here.claim("p", resource_class="pod", made=False, parametersRef={"kind": "Pod", "name": "m"})
    await here.pod("p", "p")
    await here.here.bound("p")
    assert (await here.taken("p"))[2] == 1
    await here.resource_class(
        "node", numericParameters=_core("Node", head + "Required: {{size(object.metadata.name)}}")
    )
    await here.claim("n", resource_class="node", made=False, parametersRef={"kind": "Node", "name": "b"})
    await here.pod("n", "n")
    await here.here.bound("n")
    assert (await here.taken("n"))[2] == 1


def test_parameters_are_those_of_the_claims_namespace():
    """4381-PAR-03: there is one of that name in another."""

    async def told(place):
        here = await Numeric(place).furnish({"a": 9})
        await place.client.resource("", "v1", "namespaces", namespaced=False).create(
            {"metadata": {"name": "other"}}
        )
        await here.wanting("p", 3)
        spec = {"numberOfFrobnicators": 5}
        await here.parameters.create({**KIND, "metadata": {"name": "p"}, "spec": spec}, "other")
        await here.parameters.create({**KIND, "metadata": {"name": "elsewhere"}, "spec": spec}, "other")
        await here.claim("p", made=False)
        await here.pod("p", "p")
        await place.bound("p")
        assert (await here.taken("p"))[2] == 3
        await here.claim("elsewhere", made=False)
        await here.pod("elsewhere", "elsewhere")
        await here.waits("elsewhere", f"{NS}/elsewhere not found")

    tell(told)


def test_kinds_that_cannot_be_read_are_nobody_elses_concern():
    """4381-PAR-08: without rights, without a definition, or with a list that never ends, and more of them
    than are looked at at a time."""

    async def told(place):
        here = Numeric(place)
        async with heard(place, holds="hanging"):
            await place.node("a")
            await here.publish("a", 9)
            hanging = [f"Hanging{number}" for number in range(4)]
            for kind in (*hanging, "Forbidden"):
                await crd(place, definition(kind))
            await here.allow(*(kind.lower() for kind in hanging), "claimparameters")
            for kind in ("Absent", *hanging, "Forbidden"):
                entry = {**KIND, "kind": kind, "celTemplate": TEMPLATE}
                await here.resource_class(kind.lower(), numericParameters=[entry])
                reference = {**PARAMETERS, "kind": kind, "name": "x"}
                await here.claim(
                    kind.lower(), resource_class=kind.lower(), made=False, parametersRef=reference
                )
                await here.pod(kind.lower(), kind.lower())
            await here.waits("forbidden", "cannot list resource")
            await here.waits("absent", "is not served")
            await here.define()
            await here.resource_class()
            await here.asks("p", 1)
            await place.bound("p")

    tell(told, started=False)


def test_objects_are_listed_and_watched_once_however_many_pods_need_them(monkeypatch):
    """4381-PAR-11, 4381-TPL-26: and a template is expanded once for each version of an object, not for each
    pod or node."""
    expanded = []
    expand = Template.expand
    monkeypatch.setattr(
        Template, "expand", lambda self, one, most: expanded.append(one) or expand(self, one, most)
    )

    async def told(place):
        here = Numeric(place)
        async with heard(place) as line:
            await here.furnish(dict.fromkeys("abcdef", 4))
            await here.wanting("one", 1)
            names = [f"p{number}" for number in range(12)]
            for name in names:
                reference = {**PARAMETERS, "name": "one"}
                await here.claim(name, made=False, parametersRef=reference)
                await here.pod(name, name)
            await place.bound(*names)
            assert len(expanded) == 1
            known = await here.parameters.get("one", NS)
            await here.parameters.update(known.changed({"spec": {"numberOfFrobnicators": 2}}))
            for name in ("q", "r"):
                await here.claim(name, made=False, parametersRef={**PARAMETERS, "name": "one"})
                await here.pod(name, name)
            await place.bound("q", "r")
            assert 1 <= len(expanded) <= 2
            assert line.watched["claimparameters"] == 1
            assert line.asked == {"watch": 1}

    tell(told, started=False)


def test_a_watch_lasts_as_long_as_a_class_names_its_kind():
    """4381-PAR-09, 4381-PAR-10: the first class begins it, the last one ends it, also by a change."""

    async def told(place):
        here = Numeric(place)
        async with heard(place) as line:

            async def watching(wanted):
                async def is_so():
                    return line.watched["claimparameters"] == wanted

                await place.until(is_so, f"{wanted} watches")

            await here.define()
            await here.allow()
            await here.classes.create({"metadata": {"name": "opaque"}, "driverName": "d.example.com"})
            await place.quiet()
            assert line.watched["claimparameters"] == 0
            await here.resource_class("one")
            await watching(1)
            await here.resource_class("two")
            await here.classes.delete("one")
            await place.quiet()
            assert line.watched["claimparameters"] == 1
            known = await here.classes.get("two")
            other = [{**KIND, "kind": "Others", "celTemplate": TEMPLATE}]
            await here.classes.update(known.changed({"numericParameters": other}))
            await watching(0)
            await here.resource_class("three")
            await watching(1)
            await here.classes.delete("three")
            await watching(0)

    tell(told, started=False)


def test_a_class_that_is_made_anew_is_served_as_before():
    """Deleted and created while its kind is looked at: the kind counts as read when it is."""

    async def told(place):
        here = await Numeric(place).furnish({"a": 9})
        await here.asks("first")
        await place.bound("first")
        for number in range(5):
            await here.classes.delete("frob")
            await here.resource_class()
            await here.asks(f"p{number}")
            await place.bound(f"p{number}")

    tell(told)


@story
async def test_a_definition_that_goes_disturbs_no_other_pod(here):
    """4381-PAR-13, 4381-ERR-05: who needs it is told, and goes on when it is back."""
    place = here.here
    await here.asks("first", 1)
    await place.bound("first")
    made = place.client.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False)
    await made.delete(f"claimparameters.{VENDOR}")
    await here.claim("p", made=False)
    await here.pod("p", "p")
    await here.waits("p", "is not served", "not installed")
    await here.define("Others")
    await here.resource_class(
        "others", numericParameters=[{**KIND, "kind": "Others", "celTemplate": TEMPLATE}]
    )
    others = place.client.resource(VENDOR, "v1alpha1", "others")
    body = {"apiVersion": f"{VENDOR}/v1alpha1", "kind": "Others", "metadata": {"name": "o"}, "spec": {}}
    await others.create(body, NS)
    reference = {**PARAMETERS, "kind": "Others", "name": "o"}
    await here.claim("o", resource_class="others", made=False, parametersRef=reference)
    await here.pod("o", "o")
    await place.bound("o")
    await here.define()
    await here.wanting("p", 1)
    await place.bound("p")


def test_a_right_that_is_taken_away_is_missed_by_name():
    """4381-PAR-06, 4381-ERR-06: what was read before is not used, since it may have changed meanwhile."""

    async def told(place):
        here = Numeric(place)
        async with heard(place) as line:
            await here.furnish({"a": 9})
            await here.wanting("later", 1)
            await here.asks("first", 1)
            await place.bound("first")
            group = "rbac.authorization.k8s.io"
            for plural in ("clusterrolebindings", "clusterroles"):
                await place.client.resource(group, "v1", plural, namespaced=False).delete("frob-")
            await line.cut("claimparameters")
            await here.asks("late", 1)
            await here.waits("late", 'User "system:kube-scheduler" cannot list resource "claimparameters"')
            await here.parameters.delete("later", NS)
            await here.allow()
            await place.bound("late")
            await here.claim("later", made=False)
            await here.pod("later", "later")
            await here.waits("later", "not found")

    tell(told, started=False)


def test_a_right_to_watch_is_missed_by_name_too():
    """4381-PAR-06, 4381-ERR-06: identity, verb and resource."""

    async def told(place):
        here = Numeric(place)
        await place.node("a")
        await here.publish("a", 4)
        await here.define()
        await here.allow(verbs=("get", "list"))
        await here.resource_class()
        await here.asks("p", 1)
        await here.waits("p", 'User "system:kube-scheduler" cannot watch resource "claimparameters"')

    tell(told)


def test_a_right_that_comes_later_is_noticed_within_half_a_minute():
    """4381-PAR-07: by the time between two looks; that it is noticed at all, others tell."""
    assert LOOKS_EVERY_S <= 30


def test_a_pod_waits_for_the_first_list():
    """4381-PAR-14: its object may be in it, so nobody says that it is not there."""

    async def told(place):
        here = Numeric(place)
        async with heard(place, holds="claimparameters") as line:
            await here.furnish()
            await here.asks("p", 1)
            await here.waits("p", "has not been read yet")
            line.may_go.set()
            await place.bound("p")

    tell(told, started=False)


@story
async def test_a_class_whose_own_parameters_are_missing_waits_and_stores_the_preferred_version(here):
    """4381-PAR-16, 4381-PAR-17: its reference says no version."""
    place = here.here
    await crd(place, versions("Sized", "v1alpha1", "v2", "v1"))
    own = {"apiGroup": VENDOR, "kind": "Sized", "name": "fast", "namespace": NS}
    await here.resource_class("own", parametersRef=own)
    await here.claim("p", 1, resource_class="own")
    await here.pod("p", "p")
    await here.waits("p", 'parameters of resourceclass "own"', f"Sized.{VENDOR} {NS}/fast not found")
    assert await here.taken("p") is None
    objects = place.client.resource(VENDOR, "v1alpha1", "sized")
    body = {"apiVersion": f"{VENDOR}/v1alpha1", "kind": "Sized", "metadata": {"name": "fast"}, "spec": {}}
    await objects.create(body, NS)
    await place.bound("p")
    assert (await here.handle("p"))["classParameters"]["apiVersion"] == f"{VENDOR}/v2"


def test_a_class_that_becomes_numeric_or_opaque_takes_its_pending_claims_along():
    """4381-CLS-02, 4381-CLS-15: allocated ones stay what they are, and are given back as such."""

    async def told(place):
        here = await Numeric(place).furnish()
        await here.asks("held", 1)
        await place.bound("held")
        before = (await here.status("held"))["allocation"]
        known = await here.classes.get("frob")
        listed = known.fields["numericParameters"]
        await here.classes.update(known.changed({"numericParameters": None}))
        await here.asks("p", 1)

        async def talked():
            return [one.name for one in (await here.talks.list(NS)).objects] == ["p"]

        await place.until(talked, "the driver asked")
        assert await here.taken("p") is None
        await here.finish("held")
        await here.free("held")
        assert before and (await place.get("resourceclaims", "held")).metadata.finalizers in (None, [])
        known = await here.classes.get("frob")
        await here.classes.update(known.changed({"numericParameters": listed}))
        await place.bound("p")
        assert (await here.taken("p"))[2] == 1

        async def silent():
            return not (await here.talks.list(NS)).objects

        await place.until(silent, "nobody asks a driver")
        known = await here.classes.get("frob")
        await here.classes.update(known.changed({"numericParameters": []}))
        await here.asks("q", 1)
        driver = asyncio.ensure_future(Driver(place.client, {"a": 1}, "frob.example.com").run())
        try:
            await place.bound("q")
        finally:
            driver.cancel()
        assert not ((await here.status("q"))["allocation"].get("devices") or {}).get("results")

    tell(told, settings=Settings(driver_timeout_s=0.5))


@story
async def test_a_pod_whose_immediate_claim_becomes_numeric_is_let_in(here):
    """4381-CLS-02: its driver never allocated it, and nobody but the class has changed."""
    known = await here.classes.get("frob")
    listed = known.fields["numericParameters"]
    await here.classes.update(known.changed({"numericParameters": None}))
    await here.claim("p", 1, allocationMode="Immediate")
    await here.pod("p", "p")
    await here.waits("p", "p")
    await here.here.quiet()
    assert not (await here.talks.list(NS)).objects
    known = await here.classes.get("frob")
    await here.classes.update(known.changed({"numericParameters": listed}))
    await here.here.bound("p")
    assert (await here.taken("p"))[2] == 1


@story
async def test_an_allocation_that_is_too_large_is_not_even_begun(here):
    """4381-ALC-09: the pod is told its size and what is the most, and the claim is left as it was."""
    await here.wanting("p", 1, env={f"K{number}": "x" * 1000 for number in range(300)})
    await here.claim("p", made=False)
    before = await here.here.get("resourceclaims", "p")
    await here.pod("p", "p")
    text = await here.waits("p", "bytes", "262144 are the most there may be")
    assert any(300_000 < int(word) < 400_000 for word in text.split() if word.isdigit())
    assert (await here.here.get("resourceclaims", "p")).resource_version == before.resource_version
    await here.asks("q", 4)
    assert await here.here.bound("q") == ["a"]


@story
async def test_there_is_no_choice_of_the_claims(here):
    """4381-CLS-02: a claim of a numeric class is the scheduler's, however it asks, and no driver is asked."""
    await here.claim("now", 1, allocationMode="Immediate")
    await here.claim("later", 1, allocationMode="WaitForFirstConsumer")
    await here.here.create(
        "pods", pod("p", resourceClaims=[{"name": n, "resourceClaimName": n} for n in ("now", "later")])
    )
    await here.here.bound("p")
    assert await here.taken("now") and await here.taken("later")
    assert not (await here.talks.list(NS)).objects
