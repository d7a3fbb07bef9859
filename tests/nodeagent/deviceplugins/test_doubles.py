"""One device, offered by a plugin and by a driver: found where it can be known, and nowhere else."""

import pytest

from allot.api import Object, encode
from allot.nodeagent.deviceplugins.doubles import Double, doubles

PLUGIN = {"example.com/gpu": ("GPU-1", "GPU-2")}


def published(driver: str, name: str, **attributes: str) -> Object:
    listed = {"name": name, "attributes": {key: {"string": value} for key, value in attributes.items()}}
    pool = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "pool": pool, "devices": [listed]}
    return Object(encode({"metadata": {"name": "s"}, "spec": spec}))


@pytest.mark.parametrize(
    "attribute", ["uuid", "serial", "example.com/UUID", "resource.kubernetes.io/pciBusID"]
)
def test_a_device_is_known_by_what_tells_it_from_all_others(attribute):
    found = doubles(PLUGIN, [published("dra.other.com", "d0", **{attribute: "gpu-2"})])
    assert found == (Double("example.com/gpu", "GPU-2", "dra.other.com", "pool", "d0"),)
    assert str(found[0]) == (
        "device GPU-2 of the device plugin for example.com/gpu is device d0 in pool pool of DRA driver "
        "dra.other.com"
    )


def test_an_attribute_that_many_devices_share_says_nothing():
    assert doubles(PLUGIN, [published("dra.other.com", "d0", model="GPU-1")]) == ()


def test_a_device_is_known_by_its_name_within_one_domain():
    offered = {"example.com/gpu": ("gpu-0",)}
    assert doubles(offered, [published("gpu.example.com", "gpu-0")])
    assert doubles(offered, [published("example.com", "gpu-0")])
    assert doubles(offered, [published("gpu.other.com", "gpu-0")]) == ()
    assert doubles(offered, [published("notexample.com", "gpu-0")]) == ()


def test_other_devices_are_others():
    assert doubles(PLUGIN, [published("gpu.example.com", "gpu-9", uuid="GPU-9")]) == ()
    assert doubles({}, [published("gpu.example.com", "gpu-1", uuid="GPU-1")]) == ()
