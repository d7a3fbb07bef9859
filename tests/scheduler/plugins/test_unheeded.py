"""Pods that require of each other what this scheduler does not do."""

import pytest

from allot.scheduler.framework import Rejection
from allot.scheduler.plugins.unheeded import InterPodAffinity, PodTopologySpread

from ..objects import pod
from .asking import cluster, state_of

TERM = {"topologyKey": "zone"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
WISH = [{"weight": 1, "podAffinityTerm": TERM}]


def answer(plugin, **spec):
    return plugin.sign(state_of(pod(**spec)), cluster())


@pytest.mark.parametrize(
    ("name", "word"), [("podAffinity", "requires affinity"), ("podAntiAffinity", "requires anti-affinity")]
)
def test_what_is_required_of_other_pods_is_refused_and_what_is_wished_for_is_not(name, word):
    refused = answer(InterPodAffinity(), affinity={name: {REQUIRED: [TERM]}})
    assert isinstance(refused, Rejection)
    assert word in refused.reason
    assert answer(InterPodAffinity(), affinity={name: {PREFERRED: WISH}}) is None
    assert answer(InterPodAffinity()) is None


def test_spreading_that_is_required_is_refused_and_any_other_is_not():
    hard = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    refused = answer(PodTopologySpread(), topologySpreadConstraints=[hard])
    assert isinstance(refused, Rejection)
    assert "spread over zone" in refused.reason
    soft = {**hard, "whenUnsatisfiable": "ScheduleAnyway"}
    assert answer(PodTopologySpread(), topologySpreadConstraints=[soft]) is None
