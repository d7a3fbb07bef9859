"""What claims ask for, read once."""

import pytest

from allot.allocation import Demand, Features
from allot.api import Gates

from .builders import DRIVER, claim, demanded, prefers, wants

SMALL = 'device.capacity["gpu.example.com"].memory.compareTo(quantity("8Gi")) < 0'


def test_pods_from_one_template_make_one_demand():
    """The names of claims do not matter to where they fit."""
    first, second = (demanded(claim(wants("gpu", 2, SMALL), name=name)) for name in ("pod-a", "pod-b"))

    assert first.signature == second.signature
    assert hash(first.signature) == hash(second.signature)


@pytest.mark.parametrize(
    "other",
    [
        claim(wants("gpu", 1, SMALL)),
        claim(wants("gpu", 2)),
        claim(wants("gpu", 0, SMALL)),
        claim(wants("gpu", 2, SMALL, adminAccess=True)),
        claim(wants("gpu", 2, SMALL, tolerations=[{"operator": "Exists"}])),
        claim(wants("gpu", 2, SMALL, capacity={"requests": {"memory": "1Gi"}})),
        claim(wants("gpu", 2, SMALL), constraints=[{"matchAttribute": f"{DRIVER}/root"}]),
        claim(wants("gpu", 2, SMALL), wants("nic")),
        claim(prefers("gpu", wants("a", 2, SMALL), wants("b"))),
    ],
)
def test_whatever_may_change_where_a_claim_fits_changes_its_signature(other):
    assert demanded(other).signature != demanded(claim(wants("gpu", 2, SMALL))).signature


def test_requests_that_want_the_same_share_what_is_known_about_it():
    demand = demanded(claim(wants("x", 1, SMALL), wants("y", 3, SMALL), wants("z")))
    x, y, z = demand.alternatives()

    assert x.want is y.want
    assert x.want is not z.want


def test_a_constraint_applies_to_a_request_a_subrequest_or_everything():
    everything = {"matchAttribute": f"{DRIVER}/root"}
    demand = demanded(
        claim(
            prefers("x", wants("a"), wants("b")),
            wants("y"),
            constraints=[
                everything,
                {**everything, "requests": ["x"]},
                {**everything, "requests": ["x/b", "y"]},
            ],
        )
    )

    assert [one.constraints for one in demand.alternatives()] == [(0, 1), (0, 1, 2), (0, 2)]


def test_a_count_that_is_not_said_is_one():
    request = {"name": "gpu", "exactly": {"deviceClassName": "any"}}
    (alternative,) = demanded(claim(request)).alternatives()

    assert alternative.count == 1


def test_features_have_the_names_of_the_gates():
    assert Features.of(["AdminAccess", "DeviceTaints"]) == Features(admin_access=True, device_taints=True)
    with pytest.raises(ValueError, match="unknown feature 'Magic'"):
        Features.of(["Magic"])


def test_the_gates_of_a_server_become_features():
    features = Features.from_gates(Gates({"DRAConsumableCapacity": False}))

    assert features.device_taints
    assert not features.consumable_capacity
    assert not features.list_type_attributes
    assert isinstance(demanded(claim(), features=features), Demand)
