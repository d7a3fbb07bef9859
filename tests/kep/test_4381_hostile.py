"""KEP-4381 with nodes, vendors and users who mean no good, or went wrong: they harm themselves."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.allocation import Ledger
from allot.api import Object, Request, errors, numeric, stored_form
from allot.apiserver import identities
from allot.apiserver.deciding.pools import capacities
from allot.apiserver.reading.history import Change
from allot.client import InProcessTransport
from allot.numeric import Found, Registry, Undecided, fit
from allot.numeric.models import COUNTER, PARTITION
from allot.numeric.models.partition import PROFILES_MAX, SLOTS_MAX
from allot.scheduler.capacity_of_nodes import CapacityOfNodes
from api.numeric.objects import DRIVER, GROUP
from numeric.objects import counter, want
from numeric.objects import instance as made
from scheduler.cluster import tell
from scheduler.numeric import PARAMETERS, VENDOR, Numeric, definition, instance

MODELS = Registry([COUNTER])


def story(told):
    def test():
        async def whole(place):
            await told(await Numeric(place).furnish())

        tell(whole)

    test.__doc__ = told.__doc__
    return test


# -- more than anybody looks through --------------------------------------------------------------


FEW = 10


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, FEW + 1), min_size=1, max_size=6))
def test_scheduler_and_server_leave_out_the_same_of_too_many_instances(sizes):
    """CAPACITY5: whole objects, in the order of their names, as long as there is room; no node makes anybody
    look through more."""
    known, guard = CapacityOfNodes(MODELS), capacities(MODELS)
    for number, size in enumerate(sizes):
        name = f"o{number}"
        listed = [instance(f"{name}-{at}", 1) for at in range(size)]
        fields = {"metadata": {"name": name}, "nodeName": "a", "driverName": DRIVER, "instances": listed}
        stored = Object(stored_form(fields), number + 1)
        known.put(stored.view(numeric.NodeResourceCapacity))
        guard.observe(Change("ADDED", f"/{name}", stored, None, number + 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numeric.limits, "NODE_INSTANCES_MAX", FEW)
        offered = [one.instance.id for one in known.offers("a", Ledger()).get(DRIVER, ())]
        assert set(guard.stock((DRIVER, numeric.limits.pool_of("a"))).devices) == set(offered)
    left, counted = FEW, {id.partition("-")[0] for id in offered}
    for number, size in enumerate(sizes):
        assert (f"o{number}" in counted) == (0 < size <= left)
        left -= size if size <= left else 0
    assert len(offered) == FEW - left


def test_several_claims_and_many_instances_are_given_up_on_in_time():
    """SEC-06 of what nodes publish: what is looked through is bounded, not only what is tried."""
    looked = 0

    class Counting(type(COUNTER)):
        def choices(self, want, offers):
            nonlocal looked
            looked += len(offers)
            return super().choices(want, offers)

    model = Counting()
    shelf = [one._replace(instance=one.instance._replace(model=model)) for one in _awkward()]
    wants = [want(model, required=3, metadata={"differs": number}) for number in range(8)]
    assert isinstance(fit(wants, {"d.example.com": shelf}), Undecided)
    assert looked < 500_000


def _awkward():
    """Room for seven claims, in any order, beside a thousand instances that serve none."""
    useless = [counter(1, f"small{number}") for number in range(1000)]
    return [*useless, *(counter(5, f"large{number}") for number in range(7))]


def test_the_most_awkward_partitions_are_looked_through_quickly():
    """Each place is rated without looking at all others: a tenth of a second for an instance became thirty
    for a node."""
    profiles = {f"p{number}": {"slots": 1 + number} for number in range(PROFILES_MAX)}
    capacity = made(PARTITION, {"slots": SLOTS_MAX, "profiles": profiles})
    asked = [0]

    class Counted(dict):
        def __getitem__(self, name):
            asked[0] += 1
            return super().__getitem__(name)

    offer = counter(1)._replace(instance=capacity, free=Counted(capacity.amounts))
    found = fit([want(PARTITION, profile="p0")], {"d.example.com": [offer]})
    assert isinstance(found, Found)
    assert asked[0] <= 2 * SLOTS_MAX


# -- what nobody expects --------------------------------------------------------------------------

STRANGE = [
    -1,
    -(2**63),
    2**63,
    10**40,
    1.5,
    1e308,
    "8",
    "NaN",
    True,
    None,
    [],
    {},
    {"count": 8},
]


@story
async def test_strange_capacity_is_refused_or_left_out_and_its_neighbours_serve(here):
    """Of whatever number or not: nobody gets a 500, and the scheduler goes on."""
    strange = [instance(f"s{at}", count) for at, count in enumerate(STRANGE)]
    strange += [
        {**instance("s-labels", 8), "data": {"count": 8, "metadata": {"labels": {"a": 7}}}},
        {**instance("s-metadata", 8), "data": {"count": 8, "metadata": "x"}},
        {**instance("s-nothing", 8), "data": {}},
        {**instance("s/../line\nbreak \u202e", 8), "data": {"count": "\u0000"}},
        {**instance("s-other", 8), "kind": "Parameters"},
    ]
    await here.put_capacity("a-strange", "a", [*strange, instance("fine", 7)])
    await here.asks("p", 7)
    assert await here.here.bound("p") == ["a"]
    assert await here.taken("p") == ("a", "fine", 7)
    await here.asks("q", 8)
    await here.waits("q", "needs 8")


@story
async def test_what_is_no_json_of_ours_is_refused_as_a_bad_request(here):
    """No number, one without end, one with 6,000 digits, and 5,000 levels."""
    transport = InProcessTransport(here.here.server.api.handle, identities.ADMIN)
    for count in (b"NaN", b"1e999", b"9" * 6000, b'{"a":' * 5000 + b"1" + b"}" * 5000):
        listed = b'[{"id":"i","kind":"Capacity","apiVersion":"g/v1","data":{"count":' + count + b"}}]"
        body = b'{"metadata":{"name":"x"},"nodeName":"a","driverName":"d.example.com","instances":'
        path = "/apis/resource.k8s.io/v1alpha1/noderesourcecapacities"
        headers = {"content-type": "application/json"}
        answer = await transport.send(Request("POST", path, {}, headers, body + listed + b"}"))
        assert answer.status in (400, 422), (count[:9], answer.status)


@story
async def test_templates_that_give_strange_things_tell_their_pods_and_nobody_else(here):
    """Lists, texts and enormous numbers where a count is wanted, and as much text as there may be."""
    head = f"kind: Parameters\napiVersion: {GROUP}/v1beta1\n"
    given = {
        "list": "required: {{[1, 2]}}",
        "text": "required: {{'9' + string(object.spec.numberOfFrobnicators)}}",
        "negative": "required: {{-object.spec.numberOfFrobnicators}}",
        "large": "required: {{18446744073709551615u}}",
        "nothing": "required: {{null}}",
        "fraction": "required: {{1.5}}",
        "selector": "required: 1\nselector: {{object.spec.env}}",
        "long": "required: 1\nmetadata: {x: \"{{object.spec.env['text'] + object.spec.env['text']}}\"}",
        "type": "required: 1\nkind: {{object.kind}}",
    }
    for name, body in given.items():
        text = (head if name != "type" else head.replace("kind: Parameters\n", "")) + body
        listed = [{"apiVersion": f"{VENDOR}/v1alpha1", "kind": "ClaimParameters", "celTemplate": text}]
        await here.resource_class(name, numericParameters=listed)
        await here.wanting(name, 3, env={"text": "x" * 40_000})
        await here.claim(name, made=False, resource_class=name)
        await here.pod(name, name)
    for name in given:
        message = await here.waits(name, f'resourceclass "{name}"')
        assert "internal error" not in message
    await here.asks("plain", 4)
    assert await here.here.bound("plain") == ["a"]


@story
async def test_a_vendors_kind_that_changes_under_its_claims_is_read_anew(here):
    """Namespaced, then gone, then one for the whole cluster: pods are told, and go on when it can be read."""
    await here.asks("p", 9)
    await here.waits("p", "needs 9")
    definitions = here.here.client.resource(
        "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
    )
    await definitions.delete(f"claimparameters.{VENDOR}")

    async def is_gone():
        return not [one for one in (await definitions.list()).objects if VENDOR in one.name]

    await here.here.until(is_gone, "the definition gone")
    await here.waits("p", "ClaimParameters")
    anew = definition()
    anew["spec"]["scope"] = "Cluster"
    await definitions.create(anew)
    everywhere = here.here.client.resource(VENDOR, "v1alpha1", "claimparameters", namespaced=False)
    wanted = {
        "apiVersion": f"{VENDOR}/v1alpha1",
        "kind": "ClaimParameters",
        "metadata": {"name": "p"},
        "spec": {"numberOfFrobnicators": 4},
    }

    async def is_made():
        try:
            await everywhere.create(wanted)
        except errors.NotFound:
            return False
        return True

    await here.here.until(is_made, "the kind served again")
    assert await here.here.bound("p") == ["a"]
    assert (await here.taken("p"))[2] == 4
    assert (await here.handle("p"))["claimParameters"]["metadata"].get("namespace") is None


@story
async def test_whoever_names_what_is_not_theirs_is_told_and_gets_nothing(here):
    """A secret as the parameters of a claim, a kind that nobody knows, an object that is not there."""
    references = {
        "secret": {"apiGroup": "", "kind": "Secret", "name": "s"},
        "odd": {"apiGroup": "x.example.com", "kind": "Nothing", "name": "x"},
        "long": {**PARAMETERS, "name": "n" * 253},
    }
    for name, reference in references.items():
        await here.claim(name, made=False, parametersRef=reference)
        await here.pod(name, name)
    for name in references:
        await here.waits(name, "resourceclaim")
    await here.asks("plain", 4)
    assert await here.here.bound("plain") == ["a"]
