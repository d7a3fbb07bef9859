"""Which devices stand for a pod's extended resources, and whose they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.allocation import Refused
from allot.api import podresources
from allot.scheduler.extended import Choice, Delegation, ExtendedResources, device_requests, read_asked
from scheduler.extended.objects import EXTENDED, GPU, IMPLICIT, container, device_class, pod, sidecar

NIC = "example.com/nic"
CLASSES = {EXTENDED: "gpu-class", NIC: "nic-class", IMPLICIT: GPU}


def delegation(*names):
    return Delegation(tuple((name, CLASSES[name]) for name in sorted(names)))


def claimed(one, *names):
    return device_requests(read_asked(one.spec), delegation(*names))


def requests(one, *names):
    """name -> class and count, in the order of the claim."""
    return {
        request.name: (request.exactly.device_class_name, request.exactly.count)
        for request in claimed(one, *names).requests
    }


def mappings(one, *names):
    return {
        (one.container_name, one.resource_name, one.request_name) for one in claimed(one, *names).mappings
    }


# -- requests -----------------------------------------------------------------------------------

TWO_IN_ONE = pod(container(gpu=1, nic=2))
ONE_EACH = pod(container("a", gpu=1), container("b", nic=2))
INIT = pod(container("a", gpu=1), init=[container("i", nic=2)])
TWO_INIT = pod(container("a", gpu=1), init=[container("i", nic=1), container("j", nic=2)])
WITH_SIDECAR = pod(
    container("a", gpu=1), init=[container("i", nic=1), sidecar("s", nic=1), container("j", nic=2)]
)


@pytest.mark.parametrize(
    ("one", "names", "expected"),
    [
        (TWO_IN_ONE, (), {}),
        (TWO_IN_ONE, (EXTENDED,), {"container-0-request-0": ("gpu-class", 1)}),
        (TWO_IN_ONE, (NIC,), {"container-0-request-1": ("nic-class", 2)}),
        (
            TWO_IN_ONE,
            (EXTENDED, NIC),
            {"container-0-request-0": ("gpu-class", 1), "container-0-request-1": ("nic-class", 2)},
        ),
        (
            ONE_EACH,
            (EXTENDED, NIC),
            {"container-0-request-0": ("gpu-class", 1), "container-1-request-0": ("nic-class", 2)},
        ),
        (
            INIT,
            (EXTENDED, NIC),
            {"container-0-request-0": ("nic-class", 2), "container-1-request-0": ("gpu-class", 1)},
        ),
        (
            TWO_INIT,
            (EXTENDED, NIC),
            {"container-1-request-0": ("nic-class", 2), "container-2-request-0": ("gpu-class", 1)},
        ),
        (
            WITH_SIDECAR,
            (EXTENDED, NIC),
            {
                "container-1-request-0": ("nic-class", 1),
                "container-2-request-0": ("nic-class", 2),
                "container-3-request-0": ("gpu-class", 1),
            },
        ),
    ],
    ids=[
        "nothing is delegated",
        "one of two resources",
        "the other of two resources",
        "two resources",
        "two containers",
        "an init container with a resource of its own",
        "two init containers share the larger request",
        "an init container uses the devices of a later sidecar",
    ],
)
def test_one_request_for_each_container_and_resource(one, names, expected):
    """5004-CLAIM-07."""
    assert requests(one, *names) == expected


def test_requests_are_sorted_by_name():
    """5004-CLAIM-08."""
    many = pod(*(container(f"c{at}", gpu=1) for at in range(11)))
    names = list(requests(many, EXTENDED))
    assert names == sorted(names)
    assert names[:3] == ["container-0-request-0", "container-1-request-0", "container-10-request-0"]


def test_the_second_number_counts_everything_that_the_container_requests():
    """5004-CLAIM-07: cpu, example.com/gpu, example.com/nic, memory: the names in their order."""
    one = pod(container(cpu="1", memory="1Gi", gpu=1, nic=1))
    assert list(requests(one, EXTENDED, NIC)) == ["container-0-request-1", "container-0-request-2"]


def test_requests_are_for_an_exact_count():
    (request,) = claimed(pod(container(gpu=3)), EXTENDED).requests
    assert (request.exactly.allocation_mode, request.exactly.count) == ("ExactCount", 3)


def test_asking_for_zero_asks_for_nothing():
    asked = read_asked(pod(container(gpu=0, nic=1)).spec)
    assert asked.names == (NIC,)
    assert not read_asked(pod(container(gpu=0)).spec).names


def test_a_zero_still_counts_in_the_numbering():
    """5004-ASK-03."""
    assert list(requests(pod(container(gpu=0, nic=1)), NIC)) == ["container-0-request-1"]


def test_explicit_and_implicit_name_of_one_class_are_two_requests():
    """5004-IMPL-04."""
    both = pod(container(gpu=1, implicit=2))
    assert requests(both, EXTENDED, IMPLICIT) == {
        "container-0-request-0": (GPU, 2),
        "container-0-request-1": ("gpu-class", 1),
    }


# -- mappings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "names", "expected"),
    [
        (
            TWO_IN_ONE,
            (EXTENDED, NIC),
            {("main", EXTENDED, "container-0-request-0"), ("main", NIC, "container-0-request-1")},
        ),
        (
            pod(container(), init=[container("i", nic=1, implicit=2)]),
            (NIC, IMPLICIT),
            {("i", IMPLICIT, "container-0-request-0"), ("i", NIC, "container-0-request-1")},
        ),
        (
            ONE_EACH,
            (EXTENDED, NIC),
            {("a", EXTENDED, "container-0-request-0"), ("b", NIC, "container-1-request-0")},
        ),
        (
            INIT,
            (EXTENDED, NIC),
            {("i", NIC, "container-0-request-0"), ("a", EXTENDED, "container-1-request-0")},
        ),
        (
            TWO_INIT,
            (EXTENDED, NIC),
            {
                ("i", NIC, "container-1-request-0"),
                ("j", NIC, "container-1-request-0"),
                ("a", EXTENDED, "container-2-request-0"),
            },
        ),
        (
            pod(container("a", gpu=1), init=[container("i", nic=1), container("j", implicit=2)]),
            (EXTENDED, NIC, IMPLICIT),
            {
                ("i", NIC, "container-0-request-0"),
                ("j", IMPLICIT, "container-1-request-0"),
                ("a", EXTENDED, "container-2-request-0"),
            },
        ),
        (
            WITH_SIDECAR,
            (EXTENDED, NIC),
            {
                ("i", NIC, "container-1-request-0"),
                ("s", NIC, "container-1-request-0"),
                ("j", NIC, "container-2-request-0"),
                ("a", EXTENDED, "container-3-request-0"),
            },
        ),
    ],
    ids=[
        "one container, two resources",
        "one init container, explicit and implicit",
        "two containers",
        "an init container and another",
        "two init containers share",
        "init containers with different names of one class do not share",
        "an init container shares with a sidecar, another does not",
    ],
)
def test_every_container_is_told_its_requests(one, names, expected):
    assert mappings(one, *names) == expected


def test_an_init_container_uses_what_comes_later_and_asks_for_the_rest():
    """5004-CLAIM-09: It needs 5; the sidecar and the container after it will have 1 and 2: two more, for it
    alone."""
    one = pod(container("a", gpu=2), init=[container("i", gpu=5), sidecar("s", gpu=1)])
    assert requests(one, EXTENDED) == {
        "container-0-request-0": ("gpu-class", 2),
        "container-1-request-0": ("gpu-class", 1),
        "container-2-request-0": ("gpu-class", 2),
    }
    assert {request for name, _, request in mappings(one, EXTENDED) if name == "i"} == {
        "container-0-request-0",
        "container-1-request-0",
        "container-2-request-0",
    }


def test_an_init_container_leaves_an_earlier_sidecar_its_devices():
    """5004-CLAIM-10."""
    one = pod(container("a"), init=[sidecar("s", gpu=2), container("i", gpu=2)])
    assert requests(one, EXTENDED) == {
        "container-0-request-0": ("gpu-class", 2),
        "container-1-request-0": ("gpu-class", 2),
    }
    assert mappings(one, EXTENDED) == {
        ("s", EXTENDED, "container-0-request-0"),
        ("i", EXTENDED, "container-1-request-0"),
    }


def test_init_containers_share_one_request_named_after_the_first_that_needs_the_most():
    """5004-CLAIM-09: each uses what the container after them has; what is missing is asked for once."""
    one = pod(
        container("a", gpu=1), init=[container("i", gpu=2), container("j", gpu=4), container("k", gpu=4)]
    )
    assert requests(one, EXTENDED) == {
        "container-1-request-0": ("gpu-class", 3),
        "container-3-request-0": ("gpu-class", 1),
    }
    both = {"container-1-request-0", "container-3-request-0"}
    for name in ("i", "j", "k"):
        assert {request for who, _, request in mappings(one, EXTENDED) if who == name} == both


def test_explicit_and_implicit_name_of_one_class_share_no_devices():
    """5004-CLAIM-11: an init container that uses the one does not use what the container has of the other."""
    one = pod(container("a", gpu=1), init=[container("i", implicit=1)])
    found = device_requests(read_asked(one.spec), Delegation(((IMPLICIT, GPU), (EXTENDED, GPU))))
    assert {request.name: request.exactly.count for request in found.requests} == {
        "container-0-request-0": 1,
        "container-1-request-0": 1,
    }
    assert {(each.container_name, each.request_name) for each in found.mappings} == {
        ("i", "container-0-request-0"),
        ("a", "container-1-request-0"),
    }


def test_mappings_go_by_resource_and_then_those_that_stay_before_those_that_end():
    """5004-POD-03."""
    one = pod(
        container("a", nic=1, gpu=1),
        container("b", gpu=1),
        init=[container("i", gpu=1, nic=2), sidecar("s", gpu=1)],
    )
    classes = ExtendedResources()
    for name, extended in (("nic-class", NIC), ("gpu-class", EXTENDED)):
        classes.put(device_class(name, extended))
    asked = read_asked(one.spec)
    found = device_requests(asked, Choice(asked, classes).on({})).mappings
    assert [(each.resource_name, each.container_name) for each in found] == [
        (EXTENDED, "s"),
        (EXTENDED, "a"),
        (EXTENDED, "b"),
        (EXTENDED, "i"),
        (NIC, "a"),
        (NIC, "i"),
        (NIC, "i"),
    ]


def test_the_answer_does_not_depend_on_the_order_of_names():
    one = pod({"name": "c", "resources": {"requests": {NIC: "1", EXTENDED: "1"}}})
    assert [mapping.resource_name for mapping in claimed(one, EXTENDED, NIC).mappings] == [EXTENDED, NIC]


def test_pods_of_one_template_share_the_answer():
    one, other = pod(container(gpu=1), name="a", uid="1"), pod(container(gpu=1), name="b", uid="2")
    assert claimed(one, EXTENDED) is claimed(other, EXTENDED)


# -- what cannot be ------------------------------------------------------------------------------


def test_part_of_a_device_is_refused_with_the_reason():
    """Implicit names are not checked by the API server. Upstream tries such a pod for ever."""
    assert claimed(pod(container(implicit="500m")), IMPLICIT) == Refused(
        f"node(s) cannot serve 500m of {IMPLICIT} to container main by devices: they are given out whole",
        node_only=True,
    )


def test_a_whole_number_may_be_written_in_parts():
    assert requests(pod(container(implicit="2000m")), IMPLICIT)["container-0-request-0"] == (GPU, 2)


@pytest.mark.parametrize("count", [33, 127, 128, 129, 100_000])
def test_more_devices_than_a_claim_holds_are_refused_with_the_reason(count):
    assert claimed(pod(container(gpu=count)), EXTENDED) == Refused(
        f"node(s) cannot serve {count} of {EXTENDED} by devices: one claim holds 32 at most", node_only=True
    )


def test_the_limit_counts_all_resources_of_the_pod():
    """5004-SCHED-11."""
    assert not isinstance(claimed(pod(container(gpu=16, nic=16)), EXTENDED, NIC), Refused)
    answer = claimed(pod(container(gpu=16, nic=17)), EXTENDED, NIC)
    assert answer.error.startswith(f"node(s) cannot serve 16 of {EXTENDED}, 17 of {NIC} by devices:")


def test_more_requests_than_a_claim_may_have_are_refused():
    """33 containers with one device each: the same limit, since no request is for less than one."""
    many = pod(*(container(f"c{at}", gpu=1) for at in range(33)))
    assert isinstance(claimed(many, EXTENDED), Refused)


def test_what_init_containers_reuse_counts_once():
    one = pod(container(gpu=32), init=[container("i", gpu=32), container("j", gpu=30)])
    assert requests(one, EXTENDED) == {"container-2-request-0": ("gpu-class", 32)}


def test_what_a_device_plugin_serves_is_not_limited():
    """On a node where only the other resource is delegated."""
    assert requests(pod(container(gpu=200, nic=1)), NIC) == {"container-0-request-1": ("nic-class", 1)}


# -- promises -----------------------------------------------------------------------------------

AMOUNTS = st.fixed_dictionaries({}, optional={"gpu": st.integers(0, 4), "nic": st.integers(0, 4)})


@st.composite
def pods(draw):
    init = [
        container(f"i{at}", draw(st.booleans()), **draw(AMOUNTS)) for at in range(draw(st.integers(0, 4)))
    ]
    main = [container(f"c{at}", **draw(AMOUNTS)) for at in range(draw(st.integers(1, 3)))]
    return pod(*main, init=init)


NAMED = st.sampled_from([(EXTENDED,), (NIC,), (EXTENDED, NIC)])


def delegated(one, names):
    """Only names that the pod asks for are ever delegated."""
    return [name for name in names if name in read_asked(one.spec).names]


@given(pods(), NAMED)
def test_every_container_gets_what_it_asks_for(one, names):
    """EXTREQ1"""
    answer = claimed(one, *delegated(one, names))
    counts = {request.name: request.exactly.count for request in answer.requests}
    for each in (*one.spec.init_containers, *one.spec.containers):
        for name in delegated(one, names):
            mine = {
                mapping.request_name
                for mapping in answer.mappings
                if (mapping.container_name, mapping.resource_name) == (each.name, name)
            }
            wanted = int(each.resources.requests.get(name, "0"))
            assert sum(counts[request] for request in mine) >= wanted
            assert bool(mine) == bool(wanted)


@given(pods(), NAMED)
def test_containers_that_run_side_by_side_share_nothing(one, names):
    """EXTREQ2: those that stay never share; an init container shares with none that already runs."""
    answer = claimed(one, *delegated(one, names))
    order = {each.name: at for at, each in enumerate((*one.spec.init_containers, *one.spec.containers))}
    brief = {each.name for each in one.spec.init_containers if not each.is_sidecar}
    by_request = {}
    for mapping in answer.mappings:
        by_request.setdefault(mapping.request_name, set()).add(mapping.container_name)
    for users in by_request.values():
        staying = users - brief
        assert len(staying) <= 1
        for stays in staying:
            assert all(order[user] < order[stays] for user in users & brief)


@given(pods(), NAMED)
def test_no_more_devices_than_the_pod_needs_at_its_peak(one, names):
    """5004-CLAIM-12: EXTREQ3: the same sum that quota charges."""
    answer = claimed(one, *delegated(one, names))
    total = sum(request.exactly.count for request in answer.requests)
    needs = podresources.requests(one.spec)
    assert total == sum(needs[name].as_int() for name in delegated(one, names))


@given(pods(), NAMED)
def test_every_request_is_somebodys_and_every_mapping_has_its_request(one, names):
    answer = claimed(one, *delegated(one, names))
    assert {one.name for one in answer.requests} == {one.request_name for one in answer.mappings}
    assert all(request.exactly.count > 0 for request in answer.requests)
    assert len(set(answer.mappings)) == len(answer.mappings)
