"""What a rule's status says, word by word; and the numbers behind it."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from allot.allocation import DeviceId
from allot.controllers.devicetainteviction.agenda import Agenda, Progress
from allot.controllers.devicetainteviction.forecast import Forecast
from allot.controllers.devicetainteviction.plan import Cause, Eviction, Source
from allot.controllers.devicetainteviction.status import Prospect, condition, wants_prospect
from allot.informers import Key

from .objects import DRIVER, claim_value, device, pod_value, result, rule_value, slice_value, taint, tolerates

NOW, EARLIER = "2026-02-02T00:00:00Z", "2026-02-01T00:00:00Z"
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


def says(progress=None, prospect=None, effect="NoExecute"):
    written = condition(rule_value(which=taint(effect=effect)), progress or Progress(), prospect, NOW)
    return written and (written["status"], written["reason"], written["message"])


def known(status, reason, message, *, effect="NoExecute", generation=3, observed=3):
    listed = {
        "type": "EvictionInProgress",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": EARLIER,
        "observedGeneration": observed,
    }
    metadata = {"name": "r", "generation": generation}
    return rule_value(which=taint(effect=effect), metadata=metadata, status={"conditions": [listed]})


def test_pods_that_have_yet_to_leave_are_counted():
    """EvictionInProgress True, PodsPendingEviction."""
    wanted = "True", "PodsPendingEviction"
    assert says(Progress(1, 1)) == (*wanted, "1 pod needs to be evicted in 1 namespace.")
    assert says(Progress(2, 2, 1)) == (
        *wanted,
        "2 pods need to be evicted in 2 different namespaces. 1 pod evicted since starting the controller.",
    )


def test_what_was_done_is_counted_since_the_controller_started():
    """Completed; NotStarted where there was nothing to do."""
    assert says(Progress(evicted=5)) == (
        "False",
        "Completed",
        "5 pods evicted since starting the controller.",
    )
    assert says(Progress())[:2] == ("False", "NotStarted")


def test_a_rule_without_effect_is_told_what_it_would_do():
    """NoEffect, in upstream's words."""
    assert says(prospect=Prospect(41, 14, 5, 1), effect="None") == (
        "False",
        "NoEffect",
        "41 published devices selected. 14 allocated devices selected. 5 pods would be evicted in 1 namespace"
        " if the effect was NoExecute. This information will not be updated again."
        " Recreate the DeviceTaintRule to trigger an update.",
    )
    assert says(prospect=Prospect(1, 1, 1, 1), effect="None")[2].startswith(
        "1 published device selected. 1 allocated device selected. 1 pod would be evicted in 1 namespace"
    )


def test_every_other_effect_evicts_nobody():
    """OtherEffect, for effects that nobody knows too."""
    wanted = ("False", "OtherEffect", "Eviction only happens for the NoExecute effect.")
    assert says(effect="NoSchedule") == says(effect="Whatever") == wanted


def test_what_is_already_said_is_not_said_again():
    rule = known("False", "Completed", "1 pod evicted since starting the controller.")
    assert condition(rule, Progress(evicted=1), None, NOW) is None
    assert condition(rule, Progress(evicted=2), None, NOW)["lastTransitionTime"] == EARLIER
    again = condition(rule, Progress(1, 1, 1), None, NOW)
    assert (again["lastTransitionTime"], again["observedGeneration"]) == (NOW, 3)


def test_the_dry_run_is_made_once_for_a_spec():
    """One-shot, repeated only after a spec change."""
    assert wants_prospect(rule_value(which=taint(effect="None")))
    assert not wants_prospect(rule_value())
    assert not wants_prospect(known("False", "NoEffect", "", effect="None"))
    assert wants_prospect(known("False", "NoEffect", "", effect="None", observed=2))
    assert wants_prospect(known("False", "Completed", "", effect="None"))
    assert condition(known("False", "NoEffect", "", effect="None"), Progress(), None, NOW) is None


def test_the_dry_run_counts_devices_and_the_pods_that_would_have_to_leave():
    """Tolerations count as they would; pods that are on no node do not leave."""
    pods = {"a": pod_value("a"), "b": pod_value("b"), "waiting": pod_value("waiting", spec={"nodeName": ""})}
    forecast = Forecast(
        rule_value(selector={"pool": "pool"}, which=taint(effect="None")), lambda k: pods.get(k.name)
    )
    forecast.see_slice(slice_value("s", device("d0"), device("d1"), device("d2")))
    forecast.see_slice(slice_value("t", device("d0"), pool="other"))
    forecast.see_claim(claim_value(result("d0"), users=("a", "waiting", "nobody")))
    forecast.see_claim(claim_value(result("d1", tolerates()), users=("b",)))
    tolerant, elsewhere = result("d2", tolerates()), result("d0", pool="other")
    forecast.see_claim(claim_value(tolerant, elsewhere, users=("b",)))
    assert forecast.prospect() == Prospect(published=3, allocated=3, pods=1, namespaces=1)


# -- the agenda ---------------------------------------------------------------------------------

DEVICE = DeviceId(DRIVER, "pool", "d0")


def cause(rule, seconds=0):
    source = Source("rule", rule) if rule else Source("slice", "s")
    return Cause(MOMENT + timedelta(seconds=seconds), "c", DEVICE, source, rule_value().spec.taint)


def test_an_eviction_counts_for_the_rules_that_wanted_it_by_then():
    agenda, pod = Agenda(), Key("ns", "p")
    agenda.put(pod, Eviction((cause("now"), cause(""), cause("later", 60))))
    assert agenda.progress("later") == Progress(1, 1, 0)
    assert {*agenda.evicted(pod, MOMENT)} == {"now", "later"}
    assert (agenda.progress("now"), agenda.progress("later")) == (Progress(0, 0, 1), Progress())
    agenda.forget("now")
    assert agenda.progress("now") == Progress()


rules = st.sampled_from(("", "x", "y"))
evictions = st.lists(rules, max_size=3).map(
    lambda named: Eviction(tuple(map(cause, named))) if named else None
)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("12"), evictions), max_size=15))
def test_what_is_pending_is_as_if_counted_anew(steps):
    """AGENDA1 and AGENDA2."""
    agenda, known = Agenda(), {}

    def naive(rule):
        return {pod for pod, one in known.items() if one and rule in one.rules()}

    for name, namespace, eviction in steps:
        pod = Key(namespace, name)
        before = {rule: naive(rule) for rule in "xy"}
        known[pod] = eviction
        told = {*agenda.put(pod, eviction)}
        for rule in "xy":
            now = naive(rule)
            assert {*agenda.pods(rule)} == now
            progress = agenda.progress(rule)
            assert (progress.pending, progress.namespaces) == (len(now), len({one.namespace for one in now}))
            assert (rule in told) == (now != before[rule])
        assert (pod in agenda) == (eviction is not None)
