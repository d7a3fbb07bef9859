"""Who leads and what runs, under the names that dashboards for kube-controller-manager read."""

from allot.controllers import resourceclaims, serviceaccounts
from controllers.world import World, tell


def test_a_copy_that_leads_says_so_and_takes_it_back():
    async def story(here: World) -> None:
        running = 'running_managed_controllers{name="resourceclaim-controller",manager='
        running += '"kube-controller-manager"}'

        async def shown(text: str) -> bool:
            return text in here.metrics.text()

        await here.until(lambda: shown('leader_election_master_status{name=""} 1'))
        assert f"{running} 1" in here.metrics.text()
        await here.stop()
        assert 'leader_election_master_status{name=""} 0' in here.metrics.text()
        assert f"{running} 0" in here.metrics.text()

    tell(story, resourceclaims.CONTROLLER, serviceaccounts.CONTROLLER)
