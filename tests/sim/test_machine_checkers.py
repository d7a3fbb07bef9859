"""Checkers of machines see what they are for: each is shown a story that breaks its promise.

A story is told in revisions: what the API shows, and what happens on the machine in between.
"""

import json
from dataclasses import dataclass, field

import pytest

from allot.api import Object
from allot.sim.checkers import all_checkers, judge
from allot.sim.checkers.contained import Contained
from allot.sim.checkers.left_over import LeftOver
from allot.sim.checkers.let_go import LetGo
from allot.sim.checkers.once import Once
from allot.sim.checkers.wiped import LONG_S, MET_S, Wiped
from allot.sim.recording import MACHINES, Seen

NODE, DRIVER, CLAIM, POD = "node-4", "gpu.example.com", "uid-claim", "uid-pod"
DEVICE = f"{DRIVER}/{NODE}/gpu-0"
CHECKERS = (Contained, LetGo, Once, LeftOver, Wiped)


def checkpoint(*claims, pods=(POD,)):
    data = {"ClaimInfoStateList": [{"ClaimUID": one, "PodUIDs": [*pods]} for one in claims]}
    return json.dumps({"Data": json.dumps(data), "Checksum": 0})


def state(boot="1", *claims):
    return json.dumps({"data": json.dumps([{"uid": one, "boot": boot} for one in claims])})


@dataclass
class Story:
    events: list[Seen] = field(default_factory=list)
    at_s: float = 0.0

    def api(self, resource, name, type="MODIFIED", **fields):
        metadata = {"name": name, "uid": f"uid-{name}", **fields.pop("meta", {})}
        if resource not in ("nodes", "preparedclaims", "resourceslices"):
            metadata["namespace"] = "default"
        self._add(resource, type, {"metadata": metadata, **fields})

    def note(self, what, **of):
        self._add(MACHINES, what, {"metadata": {"name": NODE}, **of})

    def _add(self, resource, type, fields):
        self.events.append(
            Seen(len(self.events), resource, type, Object(json.dumps(fields).encode()), self.at_s)
        )

    # -- the usual course of things ---------------------------------------------------------------

    def begin(self):
        self.note("ON", boot="1")
        self.note("AGENT")
        self.api("nodes", NODE)
        self.claim()
        self.pod()

    def claim(self, users=(POD,), device="gpu-0", type="MODIFIED"):
        result = {"request": "gpu", "driver": DRIVER, "pool": NODE, "device": device}
        status = {"reservedFor": [{"uid": one} for one in users]}
        if device:
            status["allocation"] = {"devices": {"results": [result]}}
        self.api("resourceclaims", "claim", type, status=status)

    def pod(self, phase="Pending", type="MODIFIED", running=False, **meta):
        main = {"name": "main", "resources": {"claims": [{"name": "gpu"}]}}
        entry = {"name": "gpu", "resourceClaimName": "claim"}
        spec = {"nodeName": NODE, "containers": [main, {"name": "helper"}], "resourceClaims": [entry]}
        states = [{"name": "main", "state": {"running": {}}}] if running else []
        self.api(
            "pods", "pod", type, spec=spec, meta=meta, status={"phase": phase, "containerStatuses": states}
        )

    def listed(self, *claims):
        self.api("preparedclaims", NODE, status={"claims": [{"uid": one} for one in claims]})

    def prepare(self, claim=CLAIM, written=True, **more):
        files = {"checkpoint": checkpoint(claim) if written else "", "state": state("", claim)}
        of = {"driver": DRIVER, "claim": claim, "named": claim, "devices": [DEVICE], "shared": False}
        self.note("PREPARE", **{**of, **files, **more})

    def answer(self, boot="1", names=("a",)):
        files = {"checkpoint": checkpoint(CLAIM), "state": state(boot, CLAIM)}
        self.note("ANSWERED", driver=DRIVER, claim=CLAIM, names=[*names], **files)

    def start(self, container="main", devices=(DEVICE,)):
        self.note("STARTED", pod=POD, container=container, number=0, devices=[*devices])

    def end(self):
        self.note("ENDED", pod=POD, container="main", number=0, code=0)

    def unprepare(self):
        for what in ("UNPREPARE", "UNPREPARED"):
            self.note(what, driver=DRIVER, claim=CLAIM, named="claim")

    def left(self, **more):
        empty = {
            "is_on": True,
            "pods": [],
            "checkpoint": "",
            "states": {},
            "cdi": [],
            "records": [],
            "running": [],
        }
        self.note("LEFT", **{**empty, **more})

    def wrong(self):
        return [one.partition(": ")[2] for one in judge(self.events, [kind() for kind in CHECKERS])]


def running():
    """Up to a pod that runs as it should."""
    story = Story()
    story.begin()
    story.listed(CLAIM)
    story.prepare()
    story.answer()
    story.start()
    return story


def good():
    story = running()
    story.pod("Running", running=True)
    story.end()
    story.unprepare()
    story.listed()
    story.pod("Succeeded")
    story.claim((), "")
    story.left(pods=[POD], records=[[POD, "main", 0]])
    return story


def test_nothing_is_wrong_with_what_goes_its_course():
    assert good().wrong() == []


def broken_by(tell):
    story = Story()
    tell(story)
    return story.wrong()


def n1_unlisted(story):
    story.begin()
    story.prepare()
    story.answer()
    story.start()


def n1_not_ready(story):
    story.begin()
    story.listed(CLAIM)
    story.start()


def n1_not_its_own(story):
    story.begin()
    story.claim(("uid-other",))
    story.listed(CLAIM)
    story.prepare()
    story.answer()
    story.start()


def n2_deallocated(story):
    story.events = running().events
    story.claim((), "")


def n2_two_claims(story):
    story.events = running().events
    story.listed(CLAIM, "uid-other")
    story.prepare("uid-other")


def n3_again(story):
    story.events = running().events
    story.prepare()


def n3_not_written(story):
    story.begin()
    story.listed(CLAIM)
    story.prepare(state=state("1"))


def n3_torn(story):
    story.begin()
    story.listed(CLAIM)
    story.prepare(state=state("1", CLAIM)[:9])


def n3_answered_too_early(story):
    story.begin()
    story.listed(CLAIM)
    story.prepare()
    story.answer(boot="")


def n3_other_answer(story):
    story.events = running().events
    story.answer(names=("b",))


def n4_more(story):
    story.events = running().events
    story.start("helper")


def n4_less(story):
    story.begin()
    story.listed(CLAIM)
    story.prepare()
    story.answer()
    story.start(devices=())


def n5_says_so_and_is_not(story):
    story.events = running().events
    story.pod("Running", running=True)
    story.end()
    story.left()


def n5_runs_and_nobody_says_so(story):
    story.events = running().events
    story.left(running=[[POD, "main", 0]])


def n5_waits(story):
    story.begin()
    story.left()


def n5_is_never_started_again(story):
    story.events = running().events
    story.pod("Running", running=True)
    story.note("OFF")
    story.note("ON", boot="2")
    story.pod("Running")
    story.left()


def n6_unlisted(story):
    story.events = running().events
    story.end()
    story.listed()


def n6_not_written(story):
    story.begin()
    story.listed(CLAIM)
    story.prepare(written=False)


def n7_while_it_runs(story):
    story.events = running().events
    story.unprepare()


def n7_end_told_first(story):
    story.events = running().events
    story.end()
    story.pod("Succeeded")


def n7_ended_and_runs(story):
    story.events = running().events
    story.pod("Failed")


def n8_container(story):
    story.events = running().events
    story.pod(type="DELETED")
    story.left(running=[[POD, "main", 0]])


def n8_file(story):
    story.events = good().events
    story.pod(type="DELETED")
    story.left(pods=[POD])


def n8_checkpoint(story):
    story.events = good().events
    story.left(checkpoint=checkpoint(CLAIM))


def n8_state(story):
    story.events = good().events
    story.left(states={DRIVER: state("1", CLAIM)})


def n8_device(story):
    story.events = running().events
    story.pod("Running", running=True)
    story.left(running=[[POD, "main", 0]], states={DRIVER: state("1")})


def n8_cdi(story):
    story.events = good().events
    story.left(cdi=[f"gpu.example.com-claim_{CLAIM}.json"])


def wipe1(story):
    story.begin()
    story.at_s = MET_S + 1
    story.api("resourceslices", "slice", spec={"driver": DRIVER, "nodeName": NODE})
    story.note("AWAY", driver=DRIVER)
    story.at_s += LONG_S + 1
    story.note("BACK", driver=DRIVER)
    story.api("pods", "pod", "DELETED")


BROKEN = [
    value
    for name, value in list(globals().items())
    if name[:2] in ("n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8")
]


@pytest.mark.parametrize("tell", [*BROKEN, wipe1], ids=lambda tell: tell.__name__)
def test_a_broken_promise_is_named(tell):
    promise = tell.__name__.partition("_")[0].upper()
    found = broken_by(tell)
    assert [one for one in found if promise in one], found


def test_every_promise_of_nodes_is_broken_by_some_story():
    assert {tell.__name__[:2] for tell in BROKEN} == {f"n{number}" for number in range(1, 9)}


def test_machines_are_judged_where_there_are_some():
    kinds = {type(one) for one in all_checkers(machines=True)} - {type(one) for one in all_checkers()}
    assert kinds == set(CHECKERS)


def test_a_pod_that_is_about_to_go_may_have_lost_its_reservation():
    story = Story()
    story.begin()
    story.listed(CLAIM)
    story.prepare()
    story.answer()
    story.pod(type="DELETED")
    story.claim(("uid-other",))
    story.start()
    assert story.wrong() == []
