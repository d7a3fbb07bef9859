"""Instances and parameters of every model of ours, in short form and at random."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from allot.api import numeric
from allot.numeric import Instance, Offer, TypeId, Want, offer_of
from allot.numeric.models import COUNTER, PARTITION, TOPOLOGY

DRIVER = "d.example.com"
MODELS = (COUNTER, PARTITION, TOPOLOGY)
NANO = 10**9


def instance(model: Any, data: Mapping[str, Any], id: str = "i0", version: str = "") -> Instance:
    types = model.types
    capacity = model.capacity(data)
    type = TypeId(f"{types.group}/{version or types.versions[0]}", types.capacity)
    return Instance(id, type, model, capacity, model.amounts(capacity))


def counter(count: int, id: str = "i0", used: int = 0, **labels: str) -> Offer:
    one = instance(COUNTER, {"count": count, "metadata": {"labels": labels}}, id)
    return offer_of(one, {"counter.dra.config.k8s.io/count": used * NANO} if used else {})


def want(model: Any, **parameters: Any) -> Want:
    return Want(DRIVER, model, model.parameters(parameters), (model.name, repr(parameters)))


def published(id: str, data: Any, version: str = "v1beta1", kind: str = "Capacity") -> Any:
    return numeric.NodeResourceInstance(
        id=id, api_version=f"counter.dra.config.k8s.io/{version}", kind=kind, data=data
    )


_labels = st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["x", "y"]), max_size=2)
_selectors = st.one_of(
    st.none(),
    st.builds(lambda labels: {"matchLabels": labels}, _labels),
    st.sampled_from(
        [
            {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
            {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]},
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x"]}]},
            {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["x"]}]},
        ]
    ),
)

CAPACITY = {
    "counter": st.fixed_dictionaries({"count": st.integers(0, 4)}),
    "partition": st.just(
        {"slots": 4, "profiles": {"one": {"slots": 1}, "two": {"slots": 2, "starts": [0, 1, 2]}}}
    ),
    "topology": st.fixed_dictionaries(
        {"zones": st.fixed_dictionaries({"z0": st.integers(0, 2), "z1": st.integers(0, 2)})}
    ),
}
PARAMETERS = {
    "counter": st.fixed_dictionaries({"required": st.integers(0, 3)}),
    "partition": st.fixed_dictionaries({"profile": st.sampled_from(["one", "two"])}),
    "topology": st.fixed_dictionaries(
        {"required": st.integers(0, 3), "alignment": st.sampled_from(["SingleZone", "None"])}
    ),
}


@st.composite
def capacities(draw: Any, model: Any) -> dict[str, Any]:
    return {**draw(CAPACITY[model.name]), "metadata": {"labels": draw(_labels)}}


@st.composite
def parameters(draw: Any, model: Any) -> dict[str, Any]:
    selector = draw(_selectors)
    return {**draw(PARAMETERS[model.name]), **({"selector": selector} if selector is not None else {})}


@st.composite
def shelves(draw: Any, model: Any, most: int = 3) -> list[Offer]:
    """Instances of a node, some of which is taken: also more than there is."""
    offers = []
    for number in range(draw(st.integers(0, most))):
        one = instance(model, draw(capacities(model)), f"i{number}")
        used = {name: draw(st.integers(0, amount + 1)) * NANO for name, amount in one.amounts.items()}
        offers.append(offer_of(one, {name: amount for name, amount in used.items() if amount}))
    return offers
