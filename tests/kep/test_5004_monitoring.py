"""KEP-5004, "Monitoring Requirements": what the scheduler shows. What controllers show is told with them."""

from allot.api import errors
from kep.cluster import Place, to_a_cluster
from kep.objects import device_class, node, pod, slice_

CREATES = "dynamic_resource_allocation_resourceclaim_creates_total"


def creations(status: str) -> str:
    return f'{CREATES}{{status="{status}",admin_access="false",owner_api_group="",owner_api_kind="Pod"}}'


@to_a_cluster()
async def test_special_claims_that_were_made_and_that_could_not_be_are_counted(here: Place):
    """5004-MON-02."""
    await here.put(device_class(), node(), slice_())
    no = errors.Forbidden("refused by the story")
    here.intervene(lambda one: one.method == "POST" and "/resourceclaims" in one.path, 2, no)
    await here.put(pod())
    await here.settled()
    shown = here.metrics.text().splitlines()
    assert f"{creations('success')} 1" in shown
    assert f"{creations('failure')} 2" in shown


@to_a_cluster()
async def test_pods_that_wait_and_the_time_of_each_plugin_are_shown(here: Place):
    """5004-MON-03."""
    await here.put(device_class(), node(), pod())
    await here.why_not()
    shown = here.metrics.text()
    assert 'scheduler_pending_pods{queue="unschedulable"} 1' in shown
    await here.put(slice_())
    await here.settled()
    shown = here.metrics.text()
    assert 'scheduler_pending_pods{queue="unschedulable"} 0' in shown
    counts = {
        line.partition("{")[2].partition("}")[0]: float(line.rpartition(" ")[2])
        for line in shown.splitlines()
        if line.startswith("scheduler_plugin_execution_duration_seconds_count")
    }
    taken = 'plugin="{}",extension_point="{}",status="{}"'
    assert counts[taken.format("DynamicResources", "PreFilter", "Success")] >= 1
    assert counts[taken.format("DynamicResources", "Filter", "Unschedulable")] >= 1
    assert counts[taken.format("ResourceClaims", "PostFilter", "Success")] >= 1
