"""A plan in the words of the API."""

import msgspec

from allot.allocation import Ledger, Plan, allocate, read_demand
from allot.base import RandomIds

from .builders import EVERYTHING, HERE, claim, device, device_class, prefers, slice_of, stocked, wants


def written(inventory, *claims, device_classes=None):
    demand = read_demand(claims, device_classes or {"any": device_class()}, EVERYTHING)
    plan = allocate(HERE, inventory, Ledger(), demand)
    assert isinstance(plan, Plan), plan
    return [msgspec.to_builtins(one) for one in plan.results(RandomIds())]


def config(name: str, *requests: str):
    fields = {"opaque": {"driver": "gpu.example.com", "parameters": {"name": name}}}
    return {**fields, "requests": list(requests)} if requests else fields


def configs(result) -> list[tuple[str, str, list[str]]]:
    return [
        (one["source"], one["opaque"]["parameters"]["name"], list(one.get("requests", ())))
        for one in result["devices"].get("config", ())
    ]


def selector(*values: str):
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": list(values)}]}]
    return {"nodeSelectorTerms": terms}


def test_a_claim_without_requests_gets_an_empty_result():
    assert written(stocked(), claim()) == [{"devices": {}}]


def test_a_result_repeats_what_the_node_needs_to_know():
    conditions = {"bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}
    toleration = {"key": "k", "operator": "Exists", "effect": "NoSchedule"}
    (result,) = written(
        stocked(slice_of(device("a", **conditions))), claim(wants(adminAccess=True, tolerations=[toleration]))
    )

    (one,) = result["devices"]["results"]
    assert one["adminAccess"] is True
    assert list(one["bindingConditions"]) == ["ready"]
    assert list(one["bindingFailureConditions"]) == ["broken"]
    assert list(one["tolerations"]) == [toleration]


def test_every_share_gets_its_own_id_and_says_what_it_consumes():
    shared = device("shared", gib=4, allowMultipleAllocations=True)
    ask = {"capacity": {"requests": {"memory": "1Gi"}}}
    (result,) = written(stocked(slice_of(shared)), claim(wants("x", **ask), wants("y", **ask)))

    first, second = result["devices"]["results"]
    assert first["shareID"] != second["shareID"]
    assert first["consumedCapacity"] == {"memory": "1Gi"}


def test_class_configuration_comes_once_and_names_its_requests():
    classes = {
        "any": device_class(config=[config("of class")]),
        "plain": device_class("plain"),
    }
    inventory = stocked(slice_of(device("a"), device("b"), device("c")))
    asks = [wants("x"), wants("y"), wants("z", deviceClassName="plain")]
    (result,) = written(inventory, claim(*asks), device_classes=classes)

    assert configs(result) == [("FromClass", "of class", ["x", "y"])]


def test_configuration_for_all_requests_names_none():
    classes = {"any": device_class(config=[config("of class")])}
    (result,) = written(
        stocked(slice_of(device("a"))),
        claim(wants("x"), config=[config("of claim", "x")]),
        device_classes=classes,
    )

    assert configs(result) == [("FromClass", "of class", []), ("FromClaim", "of claim", [])]


def test_configuration_of_an_alternative_that_was_not_chosen_is_left_out():
    inventory = stocked(slice_of(device("a"), device("b")))
    ask = claim(
        prefers("x", wants("many", 3), wants("one")),
        wants("y"),
        config=[config("many", "x/many"), config("one", "x/one"), config("x", "x"), config("all")],
    )
    (result,) = written(inventory, ask)

    assert configs(result) == [
        ("FromClaim", "one", ["x/one"]),
        ("FromClaim", "x", ["x"]),
        ("FromClaim", "all", []),
    ]


def test_of_several_requests_with_alternatives_each_has_the_configuration_of_its_choice():
    """Of its class as well as of the claim."""
    classes = {
        "any": device_class(config=[config("of any")]),
        "rare": device_class("rare", config=[config("of rare")]),
    }
    inventory = stocked(slice_of(device("a"), device("b"), device("c")))
    ask = claim(
        prefers("x", wants("many", 9, deviceClassName="rare"), wants("two", 2)),
        prefers("y", wants("one", deviceClassName="rare"), wants("other")),
        config=[config(name, name) for name in ("x/many", "x/two", "y/one", "y/other")],
    )
    (result,) = written(inventory, ask, device_classes=classes)

    assert [one["request"] for one in result["devices"]["results"]] == ["x/two", "x/two", "y/one"]
    assert sorted(configs(result)) == [
        ("FromClaim", "x/two", ["x/two"]),
        ("FromClaim", "y/one", ["y/one"]),
        ("FromClass", "of any", ["x/two"]),
        ("FromClass", "of rare", ["y/one"]),
    ]


def test_one_device_of_the_node_ties_the_claim_to_it():
    inventory = stocked(
        slice_of(device("far"), name="a", pool="a", allNodes=True),
        slice_of(device("near"), name="b", pool="b"),
    )
    (result,) = written(inventory, claim(wants(count=2)))

    (term,) = result["nodeSelector"]["nodeSelectorTerms"]
    (field,) = term["matchFields"]
    assert (field["key"], list(field["values"])) == ("metadata.name", ["here"])


def test_devices_that_bind_to_a_node_tie_the_claim_as_well():
    (result,) = written(stocked(slice_of(device("a", bindsToNode=True), allNodes=True)), claim(wants()))

    assert "matchFields" in result["nodeSelector"]["nodeSelectorTerms"][0]


def test_what_several_devices_require_is_required_once():
    inventory = stocked(
        slice_of(device("x"), name="a", pool="a", nodeSelector=selector("a", "b")),
        slice_of(device("y"), name="b", pool="b", nodeSelector=selector("b", "a")),
        slice_of(device("z"), name="c", pool="c", nodeSelector=selector("a")),
    )
    (result,) = written(inventory, claim(wants(count=3)))

    (term,) = result["nodeSelector"]["nodeSelectorTerms"]
    assert [list(one["values"]) for one in term["matchExpressions"]] == [["a", "b"], ["a"]]


def test_devices_that_are_everywhere_leave_the_claim_free():
    (result,) = written(stocked(slice_of(device("a"), allNodes=True)), claim(wants()))

    assert "nodeSelector" not in result
