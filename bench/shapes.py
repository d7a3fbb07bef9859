"""The problems that the allocation benchmark times, as API objects.

Each function makes one shape: slices, classes and claims in the form of the
conformance cases. The hard ones are those on which an exhaustive first-fit search
does not come back: more requests than devices, a wrong first choice, attribute
lists with much in common.
"""

from collections.abc import Iterator
from random import Random
from typing import Any

Json = Any

DRIVER = "gpu.example.com"
NODE = "node-1"


def problem(slices: list[Json], claims: list[Json], features: tuple[str, ...] = ()) -> Json:
    return {
        "name": "",
        "features": list(features),
        "node": {"metadata": {"name": NODE, "labels": {}}},
        "slices": slices,
        "classes": [device_class()],
        "claims": claims,
    }


def device_class() -> Json:
    selectors = [selector(f'device.driver == "{DRIVER}"')]
    return {"metadata": {"name": "gpu"}, "spec": {"selectors": selectors}}


def selector(expression: str) -> Json:
    return {"cel": {"expression": expression}}


def slice_of(devices: list[Json], node: str = NODE, slices: int = 1, **spec: Json) -> Json:
    pool = {"name": node, "generation": 1, "resourceSliceCount": slices}
    fields = {"driver": DRIVER, "pool": pool, "nodeName": node, **spec}
    if devices:
        fields["devices"] = devices
    return {"metadata": {"name": f"{node}-{'devices' if devices else 'counters'}"}, "spec": fields}


def claim(*requests: Json, name: str = "claim", **devices: Json) -> Json:
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"devices": {"requests": list(requests), **devices}},
    }


def request(name: str, count: int = 1, *expressions: str) -> Json:
    exactly: Json = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    if expressions:
        exactly["selectors"] = [selector(expression) for expression in expressions]
    return {"name": name, "exactly": exactly}


def gpu(number: int, root: str = "pci0000:00") -> Json:
    """13 attributes and 2 capacities, as a data-centre GPU publishes them."""
    attributes: Json = {
        "model": {"string": "Example GPU Max 1550"},
        "family": {"string": "Max Series"},
        "productCode": {"string": "0x0bd5"},
        "vendor": {"string": "0x8086"},
        "firmware": {"version": "2.4.1"},
        "driverVersion": {"version": "1.23.27912"},
        "sriov": {"bool": True},
        "health": {"string": "Healthy"},
        "millicores": {"int": 1000},
        "tiles": {"int": 2},
        "resource.kubernetes.io/pcieRoot": {"string": root},
        "resource.kubernetes.io/numaNode": {"int": 0},
        "interconnect": {"string": "xe-link"},
    }
    capacity = {"memory": {"value": "128Gi"}, "cores": {"value": "1024"}}
    return {"name": f"gpu-{number}", "attributes": attributes, "capacity": capacity}


# Easy ones


def one_of_ten() -> Json:
    return problem([slice_of([gpu(n) for n in range(10)])], [claim(request("gpu"))])


def cel_selector() -> Json:
    expression = (
        f'device.attributes["{DRIVER}"].firmware.isGreaterThan(semver("2.0.0")) && '
        f'device.capacity["{DRIVER}"].memory.compareTo(quantity("64Gi")) >= 0'
    )
    return problem([slice_of([gpu(n) for n in range(10)])], [claim(request("gpu", 1, expression))])


def match_over_two_roots() -> Json:
    devices = [gpu(n, f"pci0000:0{n % 2}") for n in range(10)]
    requests = [request(f"gpu-{n}") for n in range(5)]
    match = [{"matchAttribute": "resource.kubernetes.io/pcieRoot"}]
    return problem([slice_of(devices)], [claim(*requests, constraints=match)])


# Hard ones


def twenty_one_of_twenty() -> Json:
    return problem([slice_of([gpu(n) for n in range(20)])], [claim(request("gpu", 21))])


def twenty_one_claims_of_twenty() -> Json:
    claims = [claim(request("gpu"), name=f"claim-{n}") for n in range(21)]
    return problem([slice_of([gpu(n) for n in range(20)])], claims)


def thirty_three_over_thirty_two() -> Json:
    """Every request refuses another device, so no two requests are alike, and one is too many."""
    devices = [{"name": f"gpu-{n}", "attributes": {"index": {"int": n}}} for n in range(32)]
    requests = [request(f"r{n}", 1, f'device.attributes["{DRIVER}"].index != {n}') for n in range(33)]
    claims = [claim(*requests[:17], name="a"), claim(*requests[17:], name="b")]
    return problem([slice_of(devices)], claims)


def max_minus_one() -> Json:
    """Seven of eight partitions fit, but not with the first one, which takes as much as two others."""
    return problem(_partitions(), [claim(request("part", 7))], ("PartitionableDevices",))


def max_minus_one_claims() -> Json:
    claims = [claim(request("part"), name=f"claim-{n}") for n in range(7)]
    return problem(_partitions(), claims, ("PartitionableDevices",))


def _partitions() -> list[Json]:
    counters = [{"name": "gpu", "counters": {"memory": {"value": "7Gi"}}}]
    devices = [
        {
            "name": f"part-{n}",
            "consumesCounters": [
                {"counterSet": "gpu", "counters": {"memory": {"value": "2Gi" if n == 0 else "1Gi"}}}
            ],
        }
        for n in range(8)
    ]
    return [
        _named("counters", slice_of([], slices=2, sharedCounters=counters)),
        _named("devices", slice_of(devices, slices=2)),
    ]


def _named(name: str, published: Json) -> Json:
    return {**published, "metadata": {"name": f"{published['spec']['pool']['name']}-{name}"}}


def lists_with_much_in_common() -> Json:
    """Two groups of 32 share one value each; the 46 others tempt the search across the groups."""
    rng = Random(47)
    values = [f"link-{n:03d}" for n in range(120)]
    devices = [
        {
            "name": f"nic-{n}",
            "attributes": {"links": {"strings": [f"group-{n % 2}", *rng.sample(values, 46)]}},
        }
        for n in range(64)
    ]
    requests = [request(f"nic-{n}") for n in range(32)]
    match = [{"matchAttribute": f"{DRIVER}/links"}]
    return problem([slice_of(devices)], [claim(*requests, constraints=match)], ("ListTypeAttributes",))


MIG = {
    # profile: (memory slices it spans, compute slices, where it may start)
    "1g.10gb": (1, 1, (0, 1, 2, 3, 4, 5, 6)),
    "1g.10gb.me": (1, 1, (0, 1, 2, 3, 4, 5, 6)),
    "1g.20gb": (2, 1, (0, 2, 4, 6)),
    "2g.20gb": (2, 2, (0, 2, 4)),
    "3g.40gb": (4, 3, (0, 4)),
    "4g.40gb": (4, 4, (0,)),
    "7g.80gb": (8, 7, (0,)),
}
"""The seven profiles of an 80 GB card with eight memory and seven compute slices, with all placements."""


def mig_slices(cards: int, node: str = NODE) -> list[Json]:
    sets, devices = [], []
    for card in range(cards):
        memory = {f"memory-{n}": {"value": "1"} for n in range(8)}
        sets.append(
            {
                "name": f"card-{card}",
                "counters": {**memory, "compute": {"value": "7"}, "media": {"value": "1"}},
            }
        )
        devices += list(mig_devices(card))
    parts = [
        _named(f"devices-{at // 64}", slice_of(devices[at : at + 64], node))
        for at in range(0, len(devices), 64)
    ]
    counters = [
        _named(f"counters-{at // 8}", slice_of([], node, sharedCounters=sets[at : at + 8]))
        for at in range(0, len(sets), 8)
    ]
    for published in parts + counters:
        published["spec"]["pool"]["resourceSliceCount"] = len(parts) + len(counters)
    return counters + parts


def mig_devices(card: int) -> Iterator[Json]:
    for profile, (span, compute, starts) in MIG.items():
        for start in starts:
            counters = {f"memory-{n}": {"value": "1"} for n in range(start, start + span)}
            counters["compute"] = {"value": str(compute)}
            if profile.endswith("me"):
                counters["media"] = {"value": "1"}
            yield {
                "name": f"card-{card}-{profile.replace('.', '-')}-{start}",
                "attributes": {"profile": {"string": profile}},
                "capacity": {"memory": {"value": f"{span * 10}Gi"}},
                "consumesCounters": [{"counterSet": f"card-{card}", "counters": counters}],
            }


def mig_request(name: str, profile: str) -> Json:
    return request(name, 1, f'device.attributes["{DRIVER}"].profile == "{profile}"')


def mig_fits() -> Json:
    """Fills the card: the small ones are asked for first and may not sit where the large ones must."""
    wanted = ("1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb")
    requests = [mig_request(f"r{n}", profile) for n, profile in enumerate(wanted)]
    return problem(mig_slices(1), [claim(*requests)], ("PartitionableDevices",))


def mig_full() -> Json:
    """One slice too many, which no counter shows by itself."""
    wanted = ("1g.20gb", "1g.20gb", "1g.20gb", "2g.20gb", "1g.10gb")
    requests = [mig_request(f"r{n}", profile) for n, profile in enumerate(wanted)]
    return problem(mig_slices(1), [claim(*requests)], ("PartitionableDevices",))


EASY = {
    "one device of 10 alike": one_of_ten,
    "CEL selector": cel_selector,
    "5 requests, matchAttribute over 2 PCI roots": match_over_two_roots,
}
HARD = {
    "21 of 20 identical devices": twenty_one_of_twenty,
    "21 claims for 20 identical devices": twenty_one_claims_of_twenty,
    "33 requests over 32 devices, different selectors": thirty_three_over_thirty_two,
    "max minus one: 7 of 8 partitions, one request": max_minus_one,
    "max minus one: 7 of 8 partitions, 7 claims": max_minus_one_claims,
    "64 devices, 47 list values, 32 requests": lists_with_much_in_common,
    "MIG, 7 profiles, all placements: fits": mig_fits,
    "MIG, 7 profiles, all placements: one too many": mig_full,
}
