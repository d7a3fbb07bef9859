"""Problems too large for the oracle whose answer is known all the same: a plan was made first.

Devices are drawn from random pools, and for each of them a request is written that it
satisfies, then constraints that hold among them. The checker accepts the plan, so the
problem fits, whatever a search that counts and remembers may come to believe.
"""

from random import Random
from typing import Any

from . import checker, facts
from .assembly import Pick, assembled
from .facts import Candidate, Json
from .problems import Maker, cel

REQUESTS_MAX = 14


def planted(rng: Random) -> Json | None:
    """A problem that fits; None if nothing could be planted."""
    maker = Maker(rng)
    maker.features -= {"DerivedAttributes"}
    maker.hard = False
    problem = maker.problem()
    for number in range(3, 3 + rng.randint(1, 4)):
        problem["slices"] += [
            {**s, "metadata": {"name": f"more-{number}-{at}"}} for at, s in enumerate(maker.pool(number))
        ]
    problem["claims"] = []
    candidates = [c for pool in facts.pools_of(problem) if pool.usable for c in pool.candidates]
    rng.shuffle(candidates)
    plan = Plan(problem, maker, rng)
    for candidate in candidates * 2:
        plan.add(candidate)
    plan.constrain()
    return plan.problem if plan.picks else None


class Plan:
    """Claims that grow together with the devices that satisfy them."""

    def __init__(self, problem: Json, maker: Maker, rng: Random) -> None:
        self.problem = problem
        self.maker = maker
        self.rng = rng
        self.features = facts.features_of(problem)
        self.picks: list[Pick] = []
        self.wanted = rng.randint(2, REQUESTS_MAX)
        self.claims = rng.randint(1, 3)

    def add(self, candidate: Candidate) -> None:
        """One more request for this device, unless that breaks something."""
        if len(self.picks) >= self.wanted:
            return
        ask = {"deviceClassName": "class-any", "allocationMode": "ExactCount", "count": 1}
        ask["selectors"] = [cel(e) for e in self.true_of(candidate)]
        if "DeviceTaints" in self.features:
            ask["tolerations"] = [{"operator": "Exists"}]
        capacity = candidate.device.get("capacity") or {}
        if "ConsumableCapacity" in self.features and "memory" in capacity and self.rng.random() < 0.6:
            ask["capacity"] = {"requests": {"memory": self.rng.choice(("1", "1", "2", "500m"))}}
        claim = len(self.problem["claims"]) - 1
        if claim < 0 or (claim + 1 < self.claims and self.rng.random() < 0.25):
            claim += 1
            body: Json = {"devices": {"requests": []}}
            self.problem["claims"].append({"metadata": {"name": f"claim-{claim}"}, "spec": body})
        requests = self.problem["claims"][claim]["spec"]["devices"]["requests"]
        name = f"req-{len(requests)}"
        requests.append({"name": name, "exactly": ask})
        try:
            taken = facts.consumption(candidate, ask, self.features) if self.shares(candidate) else {}
        except facts.Fatal:
            taken = None
        pick = Pick(claim, facts.Ask(name, "", ask), candidate, taken or {})
        if taken is None or not self.holds([*self.picks, pick]):
            requests.pop()
            if not requests:
                self.problem["claims"].pop()
        else:
            self.picks.append(pick)

    def shares(self, candidate: Candidate) -> bool:
        return facts.shareable(candidate, self.features)

    def true_of(self, candidate: Candidate) -> list[str]:
        """Selectors that hold for the device, and are never fatal for another one."""
        attributes = 'device.attributes["driver-a"]'
        published = candidate.device.get("attributes") or {}
        found: list[str] = [f'device.driver == "{candidate.driver}"']
        if candidate.driver == "driver-a":
            if "string" in published.get("model", {}):
                found.append(f'{attributes}.?model.orValue("") == "{published["model"]["string"]}"')
            if "int" in published.get("numa", {}):
                found.append(f"{attributes}.?numa.orValue(9) <= {published['numa']['int']}")
        return [one for one in found if self.rng.random() < 0.4]

    def constrain(self) -> None:
        """Constraints that the plan happens to satisfy."""
        for number, claim in enumerate(self.problem["claims"]):
            mine = [pick for pick in self.picks if pick.claim == number]
            constraints: list[Json] = []
            for _ in range(self.rng.randint(0, 3)):
                name = self.rng.choice(("driver-a/model", "driver-a/numa", "driver-a/roots"))
                kind = "matchAttribute"
                if "ConsumableCapacity" in self.features and self.rng.random() < 0.4:
                    kind = "distinctAttribute"
                chosen: list[str] = []
                for pick in self.rng.sample(mine, len(mine)):
                    trial: Json = {kind: name, "requests": [*chosen, pick.ask.name]}
                    claim["spec"]["devices"]["constraints"] = [*constraints, trial]
                    if self.holds(self.picks):
                        chosen.append(pick.ask.name)
                if len(chosen) > 1:
                    constraints.append({kind: name, "requests": chosen})
            claim["spec"]["devices"]["constraints"] = constraints

    def holds(self, picks: list[Pick]) -> bool:
        return not checker.complaints(self.problem, self.results(picks))

    def results(self, picks: list[Pick]) -> list[Any]:
        classes = facts.classes_of(self.problem)
        results = []
        for number, claim in enumerate(self.problem["claims"]):
            mine = [pick for pick in picks if pick.claim == number]
            try:
                result = assembled(claim, mine, classes, "node-1", self.features)
            except facts.Fatal:
                return []
            for at, device in enumerate(result["devices"].get("results") or ()):
                if "shareID" in device:
                    device["shareID"] = f"{number:04d}{at:04d}-0000-4000-8000-000000000000"
            results.append(result)
        return results
