"""Addresses of pods."""

from hypothesis import given
from hypothesis import strategies as st

from allot.hollow.addresses import Addresses


def test_a_pod_keeps_its_address_and_gives_it_back():
    addresses = Addresses()
    assert addresses.take("n", "10.1.2.0/24", "a") == "10.1.2.2"
    assert addresses.take("n", "10.1.2.0/24", "a") == "10.1.2.2"
    assert addresses.take("n", "10.1.2.0/24", "b") == "10.1.2.3"
    addresses.give_back("n", "a")
    assert addresses.take("n", "10.1.2.0/24", "c") == "10.1.2.2"


def test_an_address_from_before_is_not_given_to_another():
    addresses = Addresses()
    addresses.keep("n", "old", "10.1.2.2")
    assert addresses.take("n", "10.1.2.0/24", "new") == "10.1.2.3"


def test_a_node_without_a_network_has_no_addresses():
    assert Addresses().take("n", "", "a") == ""
    assert Addresses().take("n", "nonsense", "a") == ""


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 400)), max_size=400))
def test_no_two_pods_share_an_address(moves):
    addresses = Addresses()
    held: dict[int, str] = {}
    for takes, pod in moves:
        if takes:
            found = addresses.take("n", "10.0.7.0/24", str(pod))
            if found:
                held[pod] = found
        else:
            addresses.give_back("n", str(pod))
            held.pop(pod, None)
        assert len(set(held.values())) == len(held)
