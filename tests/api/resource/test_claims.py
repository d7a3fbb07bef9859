"""What claims and templates may ask for."""

import pytest

from allot.api import Gates, resource
from api.context import FakeContext
from api.resource.objects import alternative, claim, either, opaque, request, template, with_change
from api.resource.writes import ALL_GATES, create, shown, update

CLAIM = resource.RESOURCE_CLAIM
TEMPLATE = resource.RESOURCE_CLAIM_TEMPLATE
EVERYTHING = FakeContext(gates=Gates(ALL_GATES))

R = "spec.devices.requests[0]"
S = f"{R}.firstAvailable[0]"
LONG = "x" * 10_241


def tolerating(**toleration):
    return request(tolerations=[toleration])


REQUEST_ROWS = [
    (request(), []),
    (either(), []),
    ({"name": "r"}, [f"{R} required"]),
    ({"name": "r", "firstAvailable": []}, [f"{R} required"]),
    ({**request(), "firstAvailable": [alternative()]}, [f"{R} invalid"]),
    (request("R_"), [f"{R}.name invalid"]),
    (request(""), [f"{R}.name invalid"]),
    (request(deviceClassName=""), [f"{R}.exactly.deviceClassName required"]),
    (request(deviceClassName="G_"), [f"{R}.exactly.deviceClassName invalid"]),
    (either("r", alternative(deviceClassName="")), [f"{S}.deviceClassName required"]),
    (either("r", alternative("S_")), [f"{S}.name invalid"]),
    (either("r", alternative(), alternative()), [f"{R}.firstAvailable[1] duplicate"]),
    (either("r", *(alternative(f"s{i}") for i in range(9))), [f"{R}.firstAvailable too_many"]),
    (request(count=-1), [f"{R}.exactly.count invalid"]),
    (request(count=1_000_000), []),  # no upper bound in the API
    (request(allocationMode="All"), []),
    (request(allocationMode="All", count=2), [f"{R}.exactly.count invalid"]),
    (request(allocationMode="Some"), [f"{R}.exactly.allocationMode unsupported"]),
    (either("r", alternative(allocationMode="All", count=1)), [f"{S}.count invalid"]),
    (request(selectors=[{}]), [f"{R}.exactly.selectors[0].cel required"]),
    (
        request(selectors=[{"cel": {"expression": "wrong"}}]),
        [f"{R}.exactly.selectors[0].cel.expression invalid"],
    ),
    (
        request(selectors=[{"cel": {"expression": "dear"}}]),
        [f"{R}.exactly.selectors[0].cel.expression forbidden"],
    ),
    (
        request(selectors=[{"cel": {"expression": LONG}}]),
        [f"{R}.exactly.selectors[0].cel.expression too_long"],
    ),
    (request(selectors=[{"cel": {"expression": "true"}}] * 33), [f"{R}.exactly.selectors too_many"]),
    (
        either("r", alternative(selectors=[{"cel": {"expression": "wrong"}}])),
        [f"{S}.selectors[0].cel.expression invalid"],
    ),
    (tolerating(operator="Exists", value="v"), [f"{R}.exactly.tolerations[0].value invalid"]),
    (tolerating(operator="Exists"), []),
    (tolerating(key="k", value="v"), []),
    (tolerating(key="k", value="v", operator=""), []),
    (tolerating(key="k", value="-"), [f"{R}.exactly.tolerations[0].value invalid"]),
    (tolerating(key="/k", operator="Exists"), [f"{R}.exactly.tolerations[0].key invalid"]),
    (tolerating(operator="X"), [f"{R}.exactly.tolerations[0].operator unsupported"]),
    (tolerating(operator="Exists", effect="X"), [f"{R}.exactly.tolerations[0].effect unsupported"]),
    (tolerating(operator="Exists", effect="None"), []),
    (request(tolerations=[{"operator": "Exists"}] * 17), []),  # 2.2: documented, never enforced
    (request(capacity={"requests": {"no-name": "-5"}}), []),  # 2.2: not validated at all
]


@pytest.mark.parametrize(("asked", "causes"), REQUEST_ROWS)
def test_a_request(asked, causes):
    assert create(CLAIM, claim(asked)).causes == causes


C = "spec.devices.constraints[0]"
G = "spec.devices.config[0]"
A = "d.example.com/a"

DEVICES_ROWS = [
    ({"constraints": [{"matchAttribute": A}]}, []),
    ({"constraints": [{"distinctAttribute": A}]}, []),
    ({"constraints": [{"matchAttribute": A, "distinctAttribute": A}]}, []),  # passes upstream
    ({"constraints": [{}]}, [f"{C} required"]),
    ({"constraints": [{"matchAttribute": "c"}]}, [f"{C}.matchAttribute invalid"]),
    ({"constraints": [{"distinctAttribute": "c"}]}, [f"{C}.distinctAttribute invalid"]),
    ({"constraints": [{"matchAttribute": A, "requests": ["r"]}]}, []),
    ({"constraints": [{"matchAttribute": A, "requests": ["zz"]}]}, [f"{C}.requests[0] invalid"]),
    ({"constraints": [{"matchAttribute": A, "requests": ["r/s"]}]}, [f"{C}.requests[0] invalid"]),
    ({"constraints": [{"matchAttribute": A, "requests": ["r/s/t"]}]}, [f"{C}.requests[0] invalid"]),
    ({"constraints": [{"matchAttribute": A, "requests": ["R_"]}]}, [f"{C}.requests[0] invalid"] * 2),
    ({"constraints": [{"matchAttribute": A, "requests": ["r", "r"]}]}, [f"{C}.requests[1] duplicate"]),
    ({"constraints": [{"matchAttribute": A, "requests": ["r"] * 33}]}, [f"{C}.requests too_many"]),
    ({"constraints": [{"matchAttribute": A}] * 33}, ["spec.devices.constraints too_many"]),
    ({"config": [opaque(a=1)]}, []),
    ({"config": [{}]}, [f"{G}.opaque required"]),
    ({"config": [{"opaque": {"driver": "", "parameters": {}}}]}, [f"{G}.opaque.driver required"]),
    ({"config": [{"opaque": {"driver": "d.e", "parameters": 5}}]}, [f"{G}.opaque.parameters invalid"]),
    ({"config": [{"opaque": {"driver": "d.e", "parameters": None}}]}, [f"{G}.opaque.parameters required"]),
    ({"config": [{"opaque": {"driver": "d.e"}}]}, [f"{G}.opaque.parameters required"]),
    ({"config": [opaque(a=LONG)]}, [f"{G}.opaque.parameters too_long"]),
    ({"config": [{**opaque(), "requests": ["zz"]}]}, [f"{G}.requests[0] invalid"]),
    ({"config": [opaque()] * 33}, ["spec.devices.config too_many"]),
]  # fmt: skip


@pytest.mark.parametrize(("devices", "causes"), DEVICES_ROWS)
def test_constraints_and_configuration(devices, causes):
    assert create(CLAIM, claim(request(), **devices)).causes == causes


def test_a_constraint_may_name_an_alternative():
    body = claim(either("r", alternative("s")), constraints=[{"matchAttribute": A, "requests": ["r/s"]}])
    assert create(CLAIM, body).causes == []


def test_requests_are_few_and_have_names_of_their_own():
    """2.6: the whole defaulted item is shown."""
    many = create(CLAIM, claim(*(request(f"r{i}") for i in range(33))))
    assert many.texts == ["spec.devices.requests: Too many: 33: must have at most 32 items"]
    twice = create(CLAIM, claim(request("r"), request("r")))
    assert twice.causes == ["spec.devices.requests[1] duplicate"]
    assert '"allocationMode":"ExactCount"' in twice.texts[0]


@pytest.mark.parametrize(
    "body", [{}, {"spec": {}}, {"spec": {"devices": {}}}, {"spec": {"devices": {"requests": []}}}]
)
def test_a_claim_may_ask_for_nothing(body):
    """2.4, and 2.6: the output always has requests and a status."""
    written = create(CLAIM, {"metadata": {"name": "c"}, **body})
    assert written.causes == []
    assert not written.hub["spec"]["devices"]["requests"]
    assert written.hub["status"] == {}


def test_null_requests_are_shown_and_may_be_written_back():
    stored = create(CLAIM, {"metadata": {"name": "c"}}).hub
    assert stored["spec"] == {"devices": {"requests": None}}
    assert update(CLAIM, stored, stored).hub == stored


# Defaults


def test_defaults_fill_in_mode_count_and_operator():
    """2.6."""
    body = claim(
        request("a", tolerations=[{"key": "k"}]),
        request("b", allocationMode="All"),
        either("c", alternative()),
    )
    a, b, c = create(CLAIM, body).hub["spec"]["devices"]["requests"]
    assert (a["exactly"]["allocationMode"], a["exactly"]["count"]) == ("ExactCount", 1)
    assert a["exactly"]["tolerations"] == [{"key": "k", "operator": "Equal"}]
    assert "count" not in b["exactly"]
    assert (c["firstAvailable"][0]["allocationMode"], c["firstAvailable"][0]["count"]) == ("ExactCount", 1)


def test_v1beta1_defaults_only_requests_that_name_a_class():
    """2.1."""
    flat = {
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [{"name": "r", "deviceClassName": "gpu"}]}},
    }
    (one,) = create(CLAIM, flat, "v1beta1").hub["spec"]["devices"]["requests"]
    assert one["exactly"] == {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    written = create(
        CLAIM, with_change(flat, "spec.devices.requests.0", {"name": "r", "adminAccess": False}), "v1beta1"
    )
    assert written.causes == [f"{R}.exactly.deviceClassName required"]


def test_v1beta1_defaults_alternatives_and_tolerations_like_v1():
    flat = {"name": "r", "deviceClassName": "gpu", "tolerations": [{"key": "k"}]}
    one, two = create(CLAIM, claim(flat, either("e", alternative())), "v1beta1").hub["spec"]["devices"][
        "requests"
    ]
    assert one["exactly"]["tolerations"] == [{"key": "k", "operator": "Equal"}]
    assert two["firstAvailable"] == [alternative(allocationMode="ExactCount", count=1)]


# Versions in errors


def test_declared_rules_answer_in_the_version_of_the_request():
    """2.1: v1beta1 paths for what is declared, v1 paths for what is written by hand."""
    flat = {
        "name": "r",
        "deviceClassName": "gpu",
        "allocationMode": "Some",
        "tolerations": [{"operator": "X"}, {"operator": "Exists", "value": "v"}],
    }
    written = create(CLAIM, claim(flat), "v1beta1")
    assert written.causes == [
        f"{R}.exactly.tolerations[1].value invalid",
        f"{R}.allocationMode unsupported",
        f"{R}.tolerations[0].operator unsupported",
    ]
    count = create(CLAIM, claim({"name": "r", "deviceClassName": "gpu", "count": -1}), "v1beta1")
    assert count.causes == [f"{R}.exactly.count invalid"]


def test_a_v1_body_sent_to_v1beta1_asks_for_nothing():
    """2.1: unknown fields, and the error that follows from dropping them."""
    written = create(CLAIM, claim(request()), "v1beta1")
    assert written.unknown == ("spec.devices.requests[0].exactly",)
    assert written.causes == [f"{R} required"]


# Administrator access


ADMIN_PATH = "spec.devices.requests[0].adminAccess"  # 2.4: neither `exactly` nor a second `spec`


@pytest.mark.parametrize(("kind", "make"), [(CLAIM, claim), (TEMPLATE, template)])
def test_admin_access_needs_the_label_of_the_namespace(kind, make):
    body = make(request(adminAccess=True))
    assert create(kind, body).causes == [f"{ADMIN_PATH} forbidden"]
    for value, allowed in (("true", True), ("True", False), ("", False)):
        context = FakeContext(namespace_labels={"resource.kubernetes.io/admin-access": value})
        assert (create(kind, body, context=context).causes == []) is allowed
    assert create(kind, make(request(adminAccess=False))).causes == []


# Immutability


def test_a_claims_spec_is_immutable_and_judged_by_that_alone():
    stored = create(CLAIM, claim()).hub
    changed = with_change(stored, "spec.devices.requests.0.exactly.count", -5)
    assert update(CLAIM, stored, changed).texts == ["spec: Invalid value: null: field is immutable"]


def test_absent_and_empty_are_the_same_spec():
    stored = create(CLAIM, claim()).hub
    assert update(CLAIM, stored, with_change(stored, "spec.devices.constraints", [])).causes == []


def test_a_stored_claim_that_breaks_a_newer_rule_can_still_be_labelled():
    stored = create(CLAIM, claim()).hub
    stored["spec"]["devices"]["requests"][0]["name"] = "R_"
    assert update(CLAIM, stored, with_change(stored, "metadata.labels", {"a": "b"})).causes == []


def test_the_main_resource_leaves_the_status_alone():
    body = {**claim(), "status": {"allocation": {}}}
    assert create(CLAIM, body).hub["status"] == {}


# Templates


def test_a_template_is_judged_under_its_second_spec():
    assert create(TEMPLATE, template(request(deviceClassName=""))).causes == [
        "spec.spec.devices.requests[0].exactly.deviceClassName required"
    ]
    flat = {"name": "r", "deviceClassName": "gpu", "allocationMode": "X"}
    assert create(TEMPLATE, template(flat), "v1beta1").causes == [
        "spec.spec.devices.requests[0].allocationMode unsupported"
    ]


def test_a_templates_metadata_holds_labels_and_annotations_only():
    assert create(TEMPLATE, template(metadata={"labels": {"a": "b"}, "annotations": {"c": "d"}})).causes == []
    assert create(TEMPLATE, template(metadata={"name": "x"})).causes == ["spec.metadata.name forbidden"]
    assert create(TEMPLATE, template(metadata={"labels": {"a": "-"}})).causes == [
        "spec.metadata.labels invalid"
    ]


def test_labels_and_annotations_of_a_template_have_proper_keys():
    assert create(TEMPLATE, template(metadata={"annotations": {"-": "x"}})).causes == [
        "spec.metadata.annotations invalid"
    ]
    assert create(TEMPLATE, template(metadata={"annotations": {"A.io/B": "x"}})).causes == []
    assert create(TEMPLATE, template(metadata={"labels": {"-": "x"}})).causes == [
        "spec.metadata.labels invalid"
    ]


def test_a_templates_spec_is_immutable_and_judged_in_full():
    stored = create(TEMPLATE, template()).hub
    changed = with_change(stored, "spec.spec.devices.requests.0.exactly.count", -5)
    assert update(TEMPLATE, stored, changed).causes == [
        "spec.spec.devices.requests[0].exactly.count invalid",
        "spec invalid",
    ]
    assert update(TEMPLATE, stored, with_change(stored, "spec.metadata", {"labels": {"a": "b"}})).causes == [
        "spec invalid"
    ]
    assert update(TEMPLATE, stored, with_change(stored, "metadata.labels", {"a": "b"})).causes == []


def test_a_template_always_shows_its_requests():
    assert create(TEMPLATE, {"metadata": {"name": "t"}, "spec": {"spec": {}}}).hub["spec"] == {
        "spec": {"devices": {"requests": None}},
        "metadata": {},
    }


# Derived attributes


def deriving(*attributes):
    return request(derivedAttributes=list(attributes))


def derived(name=A, expression="cost 1"):
    return {"name": name, "expression": expression}


E = f"{R}.exactly.derivedAttributes[0]"

DERIVED_ROWS = [
    (deriving(derived()), [{"matchAttribute": A}], []),
    (deriving(derived()), [{"matchAttribute": A, "requests": ["r"]}], []),
    (deriving(derived()), [{"distinctAttribute": A}], []),
    (deriving(derived()), [], [f"{E}.name invalid"]),
    (deriving(derived(name="")), [], [f"{E}.name required"]),
    (deriving(derived(name="a")), [], [f"{E}.name invalid", f"{E}.name invalid"]),
    (deriving(derived(expression="")), [{"matchAttribute": A}], [f"{E}.expression required"]),
    (deriving(derived(expression="bad")), [{"matchAttribute": A}], [f"{E}.expression invalid"]),
    (deriving(derived(expression=LONG)), [{"matchAttribute": A}], [f"{E}.expression too_long"]),
    (
        deriving(derived(), derived()),
        [{"matchAttribute": A}],
        [f"{R}.exactly.derivedAttributes[1] duplicate"],
    ),
    (deriving(*[derived()] * 33), [{"matchAttribute": A}], [f"{R}.exactly.derivedAttributes too_many"]),
    (
        either("r", alternative("s", derivedAttributes=[derived()])),
        [{"matchAttribute": A, "requests": ["r"]}],
        [],
    ),
    (
        either("r", alternative("s", derivedAttributes=[derived()])),
        [{"matchAttribute": A, "requests": ["r/s"]}],
        [],
    ),
]


@pytest.mark.parametrize(("asked", "constraints", "causes"), DERIVED_ROWS)
def test_derived_attributes(asked, constraints, causes):
    written = create(CLAIM, claim(asked, constraints=constraints), context=EVERYTHING)
    assert written.causes == causes


def test_derived_attributes_of_a_claim_share_one_budget():
    """2.2."""
    names = [f"d.example.com/a{i}" for i in range(2)]
    asked = deriving(*(derived(name, "cost 600000") for name in names))
    body = claim(asked, constraints=[{"matchAttribute": name} for name in names])
    assert create(CLAIM, body, context=EVERYTHING).causes == ["spec.devices forbidden"]


def test_a_request_in_v1beta1_shows_no_class_as_an_empty_one():
    stored = create(CLAIM, claim(either())).hub
    (flat,) = shown(CLAIM, stored, "v1beta1")["spec"]["devices"]["requests"]
    assert flat["deviceClassName"] == ""
    assert "exactly" not in flat
