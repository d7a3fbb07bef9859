"""Checkers of machines see what they are for: each is shown a story that breaks its promise.

A story is told in revisions: what the API shows, and what happens on the machine in between.
"""

import json
import re
from dataclasses import dataclass, field

import pytest

from allot.api import Object
from allot.sim.checkers import all_checkers, judge
from allot.sim.checkers.contained import Contained
from allot.sim.checkers.left_over import LeftOver
from allot.sim.checkers.lent_once import LentOnce
from allot.sim.checkers.let_go import LetGo
from allot.sim.checkers.offered import Offered
from allot.sim.checkers.once import Once
from allot.sim.checkers.wiped import LONG_S, MET_S, Wiped
from allot.sim.recording import MACHINES, Seen

NODE, DRIVER, CLAIM, POD = "node-4", "gpu.example.com", "uid-claim", "uid-pod"
DEVICE = f"{DRIVER}/{NODE}/gpu-0"
CHECKERS = (Contained, LetGo, Once, LeftOver, Wiped, Offered, LentOnce)


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
        if resource not in ("nodes", "preparedclaims", "resourceslices", "noderesourcecapacities"):
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


COUNTING = "count.example.com"


def shown(story, name="o", type="MODIFIED", **counts):
    """Capacity as an agent publishes it."""
    instances = [{"id": id, "data": {"count": count}} for id, count in counts.items()]
    of = {"nodeName": NODE, "driverName": COUNTING, "instances": instances}
    story.api("noderesourcecapacities", name, type, **of)


def counted(story, **counts):
    """Up to a driver whose capacity is shown as it is."""
    story.begin()
    story.note("OFFERS", driver=COUNTING, counts=counts)
    shown(story, **counts)


def reserve(story, claim, **takes):
    about = {"driver": COUNTING, "claim": claim, "named": claim, "devices": [claim], "shared": False}
    story.note("PREPARE", **about, takes=takes, checkpoint="", state="")
    story.note("ANSWERED", driver=COUNTING, claim=claim, names=[], checkpoint="", state="")


def publish1(story):
    counted(story, c0=4)
    shown(story, c0=5)


def publish2_stale(story):
    counted(story, c0=4)
    story.note("OFFERS", driver=COUNTING, counts={"c0": 3})
    story.left()


def publish2_twice(story):
    counted(story, c0=4)
    shown(story, "other", c0=4)
    story.left()


def publish2_nothing(story):
    counted(story)
    shown(story, type="DELETED")
    story.left()


def publish2_gone(story):
    counted(story, c0=4)
    story.api("nodes", NODE, "DELETED")


def publish3(story):
    counted(story, c0=4)
    story.at_s = MET_S + 1
    story.note("AWAY", driver=COUNTING)
    story.at_s += LONG_S + 1
    story.note("BACK", driver=COUNTING)


def offer1_gone(story):
    counted(story, c1=4)
    reserve(story, "a", c0=0)


def offer1_shrunk(story):
    counted(story, c0=4)
    story.note("OFFERS", driver=COUNTING, counts={"c0": 1})
    story.at_s = 10.0
    reserve(story, "a", c0=2)


def offer1_together(story):
    counted(story, c0=4)
    story.at_s = 10.0
    reserve(story, "a", c0=3)
    reserve(story, "b", c0=3)


OF_CAPACITY = [value for name, value in list(globals().items()) if re.match("(publish|offer)[0-9]", name)]


def test_capacity_that_is_shown_and_given_as_it_is_there_breaks_nothing():
    """A claim that looked a moment ago, capacity that shrank meanwhile, and one that comes after."""
    story = Story()
    counted(story, c0=4)
    story.at_s = 10.0
    reserve(story, "a", c0=3)
    story.note("OFFERS", driver=COUNTING, counts={"c0": 1})
    reserve(story, "b", c0=1)
    shown(story, c0=1)
    story.note("UNPREPARED", driver=COUNTING, claim="a")
    story.note("UNPREPARE", driver=COUNTING, claim="a")
    story.at_s = 20.0
    story.note("OFFERS", driver=COUNTING, counts={"c0": 3})
    shown(story, c0=3)
    reserve(story, "c", c0=2)
    story.left()
    found = [one for one in story.wrong() if "PUBLISH" in one or "OFFER" in one]
    assert found == []


BROKEN = [
    value
    for name, value in list(globals().items())
    if name[:2] in ("n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8")
]


@pytest.mark.parametrize("tell", [*BROKEN, *OF_CAPACITY, wipe1], ids=lambda tell: tell.__name__)
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
