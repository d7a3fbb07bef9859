"""Small allocation problems with every feature mixed in.

`problem(rng)` makes one from anything that behaves like `random.Random`: the
property tests hand in Hypothesis' own, so that failures shrink, and the long
recorded run hands in seeded ones, so that it can be resumed. `features_used` says
which features a problem really exercises, so that both can print what they covered.

Problems are kept small on purpose: the oracle tries everything. The mixture is
tuned so that about a third fits, and more than a third does not, because a
property that nearly always sees the same answer notices nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from string import ascii_letters as LETTERS
from typing import Any, TypeVar

T = TypeVar("T")
Json = Any

FEATURES = (
    "AdminAccess",
    "PrioritizedList",
    "PartitionableDevices",
    "DeviceTaints",
    "DeviceBindingAndStatus",
    "ConsumableCapacity",
    "FractionalCapacityRange",
    "ListTypeAttributes",
    "OptionalNodeOperations",
    "DerivedAttributes",
    "CompatibilityGroups",
)
DRIVERS = ("driver-a", "driver-b")
WILD_UNITS = ("n", "m", "k", "Mi", "Gi", "Ti", "Ei")
NODE_FEATURE = "DRAOptionalNodeOperations"


def problem(rng: Random) -> Json:
    return Maker(rng).problem()


class Maker:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.features = set(FEATURES)
        if self.chance(0.5):
            self.features = {feature for feature in FEATURES if self.chance(0.75)}
        self.hard = self.chance(0.2)
        self.wild = self.chance(0.15)  # amounts of very different size beside each other

    # Dice

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def pick(self, options: Sequence[T]) -> T:
        return options[self.rng.randrange(len(options))]

    def between(self, low: int, high: int) -> int:
        return self.rng.randint(low, high)

    def some(self, options: Sequence[T], probability: float) -> list[T]:
        return [option for option in options if self.chance(probability)]

    def obstacle(self, probability: float) -> bool:
        """What makes a problem harder to satisfy is rarer in most problems: everything at once never fits."""
        return self.chance(probability if self.hard else probability * 0.35)

    def on(self, feature: str, probability: float) -> bool:
        """Mostly only what is switched on; now and then something that is not."""
        return self.chance(probability if feature in self.features else probability * 0.02)

    def amount(self, number: int | str, unit: str = "") -> str:
        """So many of a unit, and in some problems now and then of another one."""
        strange = self.wild and self.chance(0.4)
        return f"{number}{self.pick(WILD_UNITS) if strange else unit}"

    # The problem

    def problem(self) -> Json:
        slices = [s for number in range(self.pick((1, 2, 2, 3))) for s in self.pool(number)]
        if self.chance(0.03):
            slices += self.crowd()
        self.rng.shuffle(slices)
        for number, s in enumerate(slices):
            s["metadata"] = {"name": f"slice-{self.between(0, 9)}{number}"}
        devices = [(s, d) for s in slices for d in s["spec"].get("devices") or ()]
        result = {
            "name": "generated",
            "features": sorted(self.features),
            "node": self.node(),
            "slices": slices,
            "classes": self.classes(),
            "claims": [self.claim(number) for number in range(self.pick((1, 1, 1, 1, 1, 1, 2, 2, 3)))],
        }
        return {**result, **self.in_use(devices)}

    def node(self) -> Json:
        node: Json = {"metadata": {"name": "node-1", "labels": {"region": "west", "rank": "3"}}, "spec": {}}
        if self.chance(0.7):
            node["status"] = {"declaredFeatures": [NODE_FEATURE]}
        return node

    def classes(self) -> list[Json]:
        classes = [
            {"metadata": {"name": "class-a"}, "spec": {"selectors": [cel('device.driver == "driver-a"')]}},
            {"metadata": {"name": "class-b"}, "spec": {"selectors": [cel('device.driver == "driver-b"')]}},
            {"metadata": {"name": "class-any"}, "spec": {}},
        ]
        for each in classes:
            if self.chance(0.15):
                each["spec"]["config"] = [
                    opaque(each["metadata"]["name"], n) for n in range(self.between(1, 2))
                ]
        return classes

    # What is published

    def pool(self, number: int) -> Iterator[Json]:
        driver = self.pick(("driver-a", "driver-a", "driver-a", "driver-b"))
        name = f"pool-{self.between(0, 1)}{number}"
        generation = self.between(1, 2)
        partitioned = self.on("PartitionableDevices", 0.4)
        solid = number == 0 and not self.hard  # something to choose from
        where = {"nodeName": "node-1"} if solid else self.placement()
        sets = self.counter_sets() if partitioned else []
        contents: list[Json] = []
        if sets:
            contents.append({"sharedCounters": sets, **(self.placement() if self.chance(0.2) else where)})
        shareable = self.on("ConsumableCapacity", 0.4)
        device_number = 0
        for _ in range(self.pick((1, 1, 1, 2))):
            devices = []
            for _ in range(self.pick((0, 1, 2, 3, 3, 4, 4)) + solid):
                devices.append(self.device(device_number, sets, shareable))
                device_number += 1
            here = where if solid or self.chance(0.85) else self.placement()
            if "perDeviceNodeSelection" in here:
                for device in devices:
                    device.update(self.device_placement())
            extra = {"skipNodeOperations": ["*"]} if self.on("OptionalNodeOperations", 0.08) else {}
            contents.append({"devices": devices, **here, **extra})
        yield from self.published(driver, name, generation, contents)

    def published(self, driver: str, name: str, generation: int, contents: list[Json]) -> Iterator[Json]:
        """The slices of one pool, sometimes beside another generation, or with a piece missing."""
        count = len(contents)
        if self.chance(0.05):
            contents = contents[:-1] if self.chance(0.5) and count > 1 else [*contents, contents[-1]]
        for content in contents:
            pool = {"name": name, "generation": generation, "resourceSliceCount": count}
            yield {"spec": {"driver": driver, "pool": pool, **content}}
        if self.chance(0.1):
            other = {
                "name": name,
                "generation": generation + self.pick((-1, -1, -1, 1)),
                "resourceSliceCount": 1,
            }
            leftover = {"devices": [{"name": "leftover"}], **self.placement()}
            yield {"spec": {"driver": driver, "pool": other, **leftover}}

    def placement(self) -> Json:
        if self.on("PartitionableDevices", 0.12):
            return {"perDeviceNodeSelection": True}
        return self.pick(
            (
                *({"nodeName": "node-1"} for _ in range(9)),
                {"nodeName": "node-2"},
                {"allNodes": True},
                {"nodeSelector": region("west")},
                {"nodeSelector": region("east")},
                {"nodeSelector": elsewhere(self.rng)},
            )
        )

    def device_placement(self) -> Json:
        two_terms = {
            "nodeSelectorTerms": region("east")["nodeSelectorTerms"] + region("west")["nodeSelectorTerms"]
        }
        return self.pick(
            (
                {"nodeName": "node-1"},
                {"nodeName": "node-1"},
                {"allNodes": True},
                {"nodeSelector": region("west")},
                {"nodeSelector": region("east")},
                {"nodeName": "node-2"},
                *([{"nodeSelector": two_terms}] if self.chance(0.1) else []),
            )
        )

    def counter_sets(self) -> list[Json]:
        sets = [
            {
                "name": f"set-{number}",
                "counters": {
                    "slots": {"value": self.amount(self.between(2, 6))},
                    **({"mem": {"value": self.amount(self.between(2, 6), "Gi")}} if self.chance(0.5) else {}),
                },
            }
            for number in range(self.pick((1, 1, 2)))
        ]
        return [*sets, sets[0]] if self.chance(0.02) else sets

    def device(self, number: int, sets: list[Json], shareable: bool) -> Json:
        device: Json = {"name": f"device-{number}"}
        if self.chance(0.015):
            device["name"] = "device-0"
        if not self.obstacle(0.2):
            device["attributes"] = self.attributes()
        if shareable and self.chance(0.8):
            device["allowMultipleAllocations"] = True
        if not self.obstacle(0.3):
            device["capacity"] = self.capacity(bool(device.get("allowMultipleAllocations")))
        if sets and self.chance(0.85):
            device["consumesCounters"] = self.consumed_counters(sets)
        if self.on("DeviceTaints", 0.5) and self.obstacle(0.35):
            device["taints"] = [self.taint() for _ in range(self.between(1, 2))]
        if self.on("DeviceBindingAndStatus", 0.08):
            device["bindingConditions"] = ["ready"]
            device["bindingFailureConditions"] = ["broken"]
            if self.chance(0.5):
                device["bindsToNode"] = True
        return device

    def attributes(self) -> Json:
        attributes: Json = {}
        if not self.obstacle(0.15):
            attributes["model"] = {"string": self.pick("xxxy")}
        if not self.obstacle(0.15):
            attributes["numa"] = {"int": self.pick((0, 0, 0, 1, 2, 3))}
        if self.chance(0.4):
            attributes["fast"] = {"bool": self.chance(0.6)}
        if self.chance(0.4):
            attributes["firmware"] = {"version": self.pick(("1.0.0", "1.0.0", "2.1.0"))}
        if self.chance(0.4):
            attributes[self.pick(("example.com/zone", "driver-a/zone"))] = {"string": self.pick("pq")}
        if self.on("ListTypeAttributes", 0.5):
            roots = sorted(set(self.some(("r1", "r2", "r3"), 0.5))) or ["r1"]
            attributes["roots"] = {"strings": roots} if self.chance(0.8) else {"string": roots[0]}
        if self.chance(0.004):
            attributes[self.pick(("numa", "model"))] = {}
        return attributes

    def capacity(self, shareable: bool) -> Json:
        memory = "memory" if self.chance(0.95) else "driver-a/memory"
        capacity: Json = {memory: {"value": self.amount(self.pick(("2", "3", "4", "4", "6")))}}
        if self.chance(0.2):
            capacity["lanes"] = {"value": self.amount(self.between(1, 4))}
        if self.chance(0.002):
            capacity["memory"] = {"value": "-1"}
        if shareable:
            for offer in capacity.values():
                if self.chance(0.2 if self.wild else 0.6):
                    offer["requestPolicy"] = self.request_policy(int(offer["value"].rstrip(LETTERS)))
        return capacity

    def request_policy(self, value: int) -> Json:
        match self.between(0, 3):
            case 0:
                return {"default": "1"}
            case 1:
                choices = sorted({1, self.between(1, max(1, value)), self.between(1, max(1, value))})
                return {"default": str(choices[0]), "validValues": [str(c) for c in choices]}
            case 2 if self.chance(0.5):
                return {
                    "default": "500m",
                    "validRange": {"min": "500m", "step": "500m", "max": str(max(1, value))},
                }
        bounds = {"min": "1"}
        if self.chance(0.6):
            bounds["step"] = "1"
        if self.chance(0.6):
            bounds["max"] = str(self.between(1, max(1, value)))
        return {"default": "1", "validRange": bounds}

    def consumed_counters(self, sets: list[Json]) -> list[Json]:
        consumed = []
        for counter_set in self.some(sets, 0.7) or sets[:1]:
            counters = {
                name: {"value": self.amount(self.between(1, 2), "Gi" if name == "mem" else "")}
                for name in counter_set["counters"]
                if name == "slots" or self.chance(0.6)
            }
            if self.chance(0.01):
                counters["missing"] = {"value": "1"}
            entry: Json = {"counterSet": counter_set["name"], "counters": counters}
            if self.on("CompatibilityGroups", 0.3):
                entry["compatibilityGroups"] = self.pick((["g1"], ["g1"], ["g2"], ["g1", "g2"]))
            if all(entry["counterSet"] != other["counterSet"] for other in consumed):
                consumed.append(entry)
        return consumed

    def taint(self) -> Json:
        effect = self.pick(("NoSchedule", "NoSchedule", "NoExecute", "None"))
        return {"key": self.pick(("broken", "slow")), "value": self.pick(("yes", "maybe")), "effect": effect}

    def crowd(self) -> list[Json]:
        """More devices than one claim may have."""
        pool = {"name": "crowd", "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": f"c{n}"} for n in range(self.between(30, 34))]
        return [{"spec": {"driver": "driver-b", "pool": pool, "nodeName": "node-1", "devices": devices}}]

    # What is asked

    def claim(self, number: int) -> Json:
        requests = [self.request(n) for n in range(self.pick((1, 1, 1, 1, 2, 2, 3)))]
        devices: Json = {"requests": requests}
        constraints = [
            self.constraint(requests)
            for _ in range(self.pick((0, 0, 0, 0, 1, 1, 2) if self.hard else (0, 0, 0, 1)))
        ]
        if constraints:
            devices["constraints"] = constraints
        if self.chance(0.2):
            devices["config"] = [self.config(requests) for _ in range(self.between(1, 2))]
        return {"metadata": {"name": f"claim-{number}"}, "spec": {"devices": devices}}

    def request(self, number: int) -> Json:
        name = f"req-{number}"
        if self.on("PrioritizedList", 0.25):
            subs = [{"name": f"sub-{n}", **self.ask(False)} for n in range(self.between(1, 3))]
            return {"name": name, "firstAvailable": subs}
        return {"name": name, "exactly": self.ask(True)}

    def ask(self, exactly: bool) -> Json:
        ask: Json = {
            "deviceClassName": self.pick(
                ("class-a", "class-a", "class-any", "class-any", "class-any", "class-any", "class-b")
            )
        }
        if self.chance(0.002):
            ask["deviceClassName"] = "class-unknown"
        if self.chance(0.07):
            ask["allocationMode"] = "All"
        else:
            ask["allocationMode"] = "ExactCount"
            ask["count"] = self.pick((1, 1, 1, 1, 1, 1, 2, 2, 3))
            if self.chance(0.02):
                ask["count"] = self.between(15, 33)
        selectors = [
            cel(self.expression())
            for _ in range(self.pick((0, 0, 0, 1, 1, 2) if self.hard else (0, 0, 0, 1)))
        ]
        if selectors:
            ask["selectors"] = selectors
        if exactly and self.chance(0.02):
            ask["adminAccess"] = False
        if exactly and self.on("AdminAccess", 0.15):
            ask["adminAccess"] = True
        if self.on("DeviceTaints", 0.25):
            ask["tolerations"] = [self.toleration() for _ in range(self.between(1, 2))]
        if self.on("ConsumableCapacity", 0.15):
            ask["capacity"] = {"requests": self.capacity_requests()}
        if self.on("DerivedAttributes", 0.1):
            ask["derivedAttributes"] = [{"name": "derived.example.com/kind", "expression": self.derived()}]
        return ask

    def expression(self) -> str:
        attributes, capacity = 'device.attributes["driver-a"]', 'device.capacity["driver-a"]'
        common: list[str] = [
            f'{attributes}.?model.orValue("") == "x"',
            f'{attributes}.?model.orValue("") == "y"',
            f"{attributes}.?numa.orValue(5) < {self.between(1, 2)}",
            f'"fast" in {attributes} && {attributes}.fast',
            f'"memory" in {capacity} && {capacity}.memory.compareTo(quantity("{self.between(2, 4)}")) >= 0',
            f'"firmware" in {attributes} && {attributes}.firmware.isGreaterThan(semver("1.0.0"))',
            'device.driver.startsWith("driver")',
        ]
        if "ConsumableCapacity" in self.features:
            common += ["device.allowMultipleAllocations", "!device.allowMultipleAllocations"]
        if "ListTypeAttributes" in self.features:
            common.append(
                f'"roots" in {attributes} && type({attributes}.roots) == list && "r1" in {attributes}.roots'
            )
        if self.chance(0.06):  # fatal where the attribute is missing, or always
            return self.pick(
                (
                    f'{attributes}.model == "x"',
                    f"{attributes}.numa == 0",
                    "noSuchVariable",
                    f"{attributes}.numa",
                )
            )
        return self.pick(common)

    def toleration(self) -> Json:
        toleration: Json = {"operator": self.pick(("Exists", "Equal"))}
        if self.chance(0.8) or toleration["operator"] == "Equal":
            toleration["key"] = self.pick(("broken", "slow"))
        if toleration["operator"] == "Equal":
            toleration["value"] = self.pick(("yes", "maybe"))
        if self.chance(0.5):
            toleration["effect"] = self.pick(("NoSchedule", "NoExecute"))
        return toleration

    def capacity_requests(self) -> Json:
        memory = "memory" if self.chance(0.95) else "driver-a/memory"
        requests: Json = {memory: self.pick(("1", "1", "1", "2", "3", "500m", "1500m"))}
        if self.wild:
            requests[memory] = self.amount(self.between(1, 3))
        if self.chance(0.15):
            requests["lanes"] = self.amount(self.between(1, 3))
        if self.chance(0.02):
            requests[memory] = self.pick(("18446744073709551616", "-1"))
        return requests

    def derived(self) -> str:
        attributes = 'device.attributes["driver-a"]'
        if self.chance(0.05):
            return f"{attributes}.model"
        return self.pick(('"same"', f'{attributes}.?model.orValue("none")', f"{attributes}.?numa.orValue(7)"))

    def constraint(self, requests: list[Json]) -> Json:
        names = ["driver-a/model", "driver-a/model", "driver-a/numa", "driver-a/numa", "driver-a/numa"]
        if self.hard:
            names += ["driver-a/zone", "example.com/zone", "driver-a/firmware", "driver-a/fast"]
        if "ListTypeAttributes" in self.features:
            names += ["driver-a/roots", "driver-a/roots"]
        derived = [
            ask.get("derivedAttributes")
            for request in requests
            for ask in (request.get("firstAvailable") or [request.get("exactly")])
        ]
        if any(derived):
            names += ["derived.example.com/kind"] * 12
        distinct = "ConsumableCapacity" in self.features and self.chance(0.35)
        if distinct and not self.hard:
            names = [name for name in names if name != "driver-a/model"]
        constraint: Json = {"distinctAttribute" if distinct else "matchAttribute": self.pick(names)}
        if self.chance(0.3):
            constraint["requests"] = self.references(requests)
        return constraint

    def references(self, requests: list[Json]) -> list[str]:
        known = [r["name"] for r in requests]
        known += [f"{r['name']}/{s['name']}" for r in requests for s in r.get("firstAvailable") or ()]
        return self.some(known, 0.5) or known[:1]

    def config(self, requests: list[Json]) -> Json:
        config = opaque("claim", self.between(0, 9))
        return {"requests": self.references(requests), **config} if self.chance(0.6) else config

    # What is in use already

    def in_use(self, devices: list[tuple[Json, Json]]) -> Json:
        dedicated: list[str] = []
        shares: list[str] = []
        consumed: Json = {}
        often = self.pick((0.0, 0.1, 0.1, 0.3))
        for s, device in devices:
            if not self.chance(often) or not self.agreeable(s, device, devices, {*dedicated, *consumed}):
                continue
            id = identity(s, device)
            if device.get("allowMultipleAllocations") and self.chance(0.9):
                shares.append(f"{id}/{len(shares):08d}-0000-4000-8000-000000000000")
                consumed[id] = {
                    name: self.amount(self.between(1, 2)) if self.wild else self.pick(("1", "1", "2", "500m"))
                    for name in device.get("capacity") or {}
                    if self.chance(0.9)
                }
            else:
                dedicated.append(id)
        return {
            "allocatedDevices": dedicated,
            "allocatedSharedDevices": shares,
            "allocatedCapacity": consumed,
        }

    def agreeable(self, s: Json, device: Json, devices: list[tuple[Json, Json]], taken: set[str]) -> bool:
        """What is in use came from an allocator too: its groups do not contradict each other."""
        mine = groups(device)
        for other_slice, other in devices:
            if (
                identity(other_slice, other) in taken
                and other_slice["spec"]["pool"]["name"] == s["spec"]["pool"]["name"]
            ):
                for counter_set, theirs in groups(other).items():
                    if counter_set in mine and mine[counter_set] != theirs:
                        return False
        return True


def cel(expression: str) -> Json:
    return {"cel": {"expression": expression}}


def opaque(name: str, number: int) -> Json:
    return {"opaque": {"driver": "driver-a", "parameters": {name: number}}}


def region(name: str) -> Json:
    """A node selector that holds on the node for "west" and does not for "east"."""
    west = name == "west"
    here = {"key": "region", "operator": "In" if west else "NotIn", "values": ["west", "south"]}
    return {"nodeSelectorTerms": [{"matchExpressions": [here]}]}


def elsewhere(rng: Random) -> Json:
    """Node selectors of all forms, some of which hold on the node."""
    expressions = [
        {"key": "rank", "operator": "Gt", "values": [str(rng.randint(1, 4))]},
        {"key": "rank", "operator": "Lt", "values": [str(rng.randint(2, 5))]},
        {"key": "rank", "operator": "Exists"},
        {"key": "planet", "operator": "DoesNotExist"},
        {"key": "planet", "operator": "NotIn", "values": ["mars"]},
        {"key": "planet", "operator": "Exists"},
    ]
    field = {"key": "metadata.name", "operator": rng.choice(("In", "NotIn")), "values": ["node-1"]}
    term: Json = {"matchExpressions": rng.sample(expressions, rng.randint(1, 2))}
    if rng.random() < 0.3:
        term["matchFields"] = [field]
    return {"nodeSelectorTerms": [term]}


def identity(s: Json, device: Json) -> str:
    return "/".join((s["spec"]["driver"], s["spec"]["pool"]["name"], device["name"]))


def groups(device: Json) -> dict[str, list[str]]:
    return {c["counterSet"]: c.get("compatibilityGroups") or [] for c in device.get("consumesCounters") or ()}


# What a problem exercises


def features_used(problem: Json) -> set[str]:
    on = set(problem["features"])
    devices = [d for s in problem["slices"] for d in s["spec"].get("devices") or ()]
    requests = [r for c in problem["claims"] for r in c["spec"]["devices"]["requests"]]
    asks = [a for r in requests for a in (r.get("firstAvailable") or [r["exactly"]])]
    constraints = [k for c in problem["claims"] for k in c["spec"]["devices"].get("constraints") or ()]
    capacities = [c for d in devices for c in (d.get("capacity") or {}).values()]
    specs = [s["spec"] for s in problem["slices"]]
    drawn = [
        counter
        for d in devices
        for consumed in d.get("consumesCounters") or ()
        for counter in consumed["counters"].values()
    ]

    def has(items: Sequence[Json], test: Callable[[Json], Any]) -> bool:
        return any(test(item) for item in items)

    used = {
        "several claims": len(problem["claims"]) > 1,
        "several requests": len(requests) > len(problem["claims"]),
        "count above one": has(asks, lambda a: a.get("count", 0) > 1),
        "all devices": has(asks, lambda a: a["allocationMode"] == "All"),
        "selectors": has(asks, lambda a: a.get("selectors")),
        "firstAvailable": "PrioritizedList" in on and has(requests, lambda r: r.get("firstAvailable")),
        "admin access": "AdminAccess" in on and has(asks, lambda a: a.get("adminAccess")),
        "matchAttribute": has(constraints, lambda c: c.get("matchAttribute")),
        "distinctAttribute": has(constraints, lambda c: c.get("distinctAttribute")),
        "constraint on some requests": has(constraints, lambda c: c.get("requests")),
        "list attributes": "ListTypeAttributes" in on
        and has(constraints, lambda c: "roots" in (c.get("matchAttribute") or c["distinctAttribute"])),
        "shared counters": "PartitionableDevices" in on and has(devices, lambda d: d.get("consumesCounters")),
        "compatibility groups": "CompatibilityGroups" in on
        and has(devices, lambda d: any(groups(d).values())),
        "shareable devices": "ConsumableCapacity" in on
        and has(devices, lambda d: d.get("allowMultipleAllocations")),
        "capacity requests": "ConsumableCapacity" in on and has(asks, lambda a: a.get("capacity")),
        "request policies": "ConsumableCapacity" in on and has(capacities, lambda c: c.get("requestPolicy")),
        "fractional ranges": "FractionalCapacityRange" in on
        and has(capacities, lambda c: "500m" in str(c.get("requestPolicy"))),
        "taints": "DeviceTaints" in on and has(devices, lambda d: d.get("taints")),
        "tolerations": "DeviceTaints" in on and has(asks, lambda a: a.get("tolerations")),
        "binding conditions": "DeviceBindingAndStatus" in on
        and has(devices, lambda d: d.get("bindingConditions")),
        "derived attributes": "DerivedAttributes" in on and has(asks, lambda a: a.get("derivedAttributes")),
        "optional node operations": "OptionalNodeOperations" in on
        and has(specs, lambda s: s.get("skipNodeOperations")),
        "node selectors": has(specs, lambda s: s.get("nodeSelector")),
        "all nodes": has(specs, lambda s: s.get("allNodes")),
        "other nodes": has(specs, lambda s: s.get("nodeName") == "node-2"),
        "per-device nodes": has(specs, lambda s: s.get("perDeviceNodeSelection")),
        "pool generations": len({(s["driver"], s["pool"]["name"], s["pool"]["generation"]) for s in specs})
        > len({(s["driver"], s["pool"]["name"]) for s in specs}),
        "configuration": has(problem["claims"], lambda c: c["spec"]["devices"].get("config"))
        or has(problem["classes"], lambda c: c["spec"].get("config")),
        "devices in use": bool(problem["allocatedDevices"]),
        "capacity in use": bool(problem["allocatedCapacity"]),
        "amounts of very different size": has(
            [*capacities, *drawn], lambda amount: str(amount["value"]).endswith(("n", "Ti", "Ei"))
        ),
        "limits": has(asks, lambda a: a.get("count", 0) > 14) or len(devices) > 32,
        "a feature off": len(on) < len(FEATURES),
    }
    return {name for name, yes in used.items() if yes}
