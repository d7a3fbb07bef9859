"""Pods and their devices, end to end: what a person sees."""

from .cluster import Cluster, tell


def test_a_pod_with_a_template_gets_a_claim_a_device_and_a_node():
    async def story(here: Cluster) -> None:
        await here.node("a")
        await here.devices("a", 2)
        await here.device_class()
        await here.template()
        await here.pod("web", template="one")

        assert await here.bound("web") == ["a"]
        (claim,) = await here.all("resourceclaims")
        assert len((await here.held())[claim.name]) == 1
        assert claim.metadata.finalizers == ["resource.kubernetes.io/delete-protection"]
        assert [one["name"] for one in claim.fields["status"]["reservedFor"]] == ["web"]

    tell(story)
