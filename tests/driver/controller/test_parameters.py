"""Parameters of classes and claims: any object by reference, read with the driver's own rights."""

import pytest

from driver.controller.world import ME, NS, Recording, tell

GPUS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gpurequirements.gpu.example.com"},
    "spec": {
        "group": "gpu.example.com",
        "scope": "Namespaced",
        "names": {"plural": "gpurequirements", "kind": "GPURequirements"},
        "versions": [
            {
                "name": version,
                "served": True,
                "storage": version == "v1",
                "schema": {
                    "openAPIV3Schema": {"type": "object", "properties": {"memory": {"type": "string"}}}
                },
            }
            for version in ("v1", "v1beta1")
        ],
    },
}
OF_CLAIM = {"apiGroup": "gpu.example.com", "kind": "GPURequirements", "name": "small"}


async def may_read(world, group, plural):
    for kind, more in (
        ("clusterroles", {"rules": [{"apiGroups": [group], "resources": [plural], "verbs": ["get"]}]}),
        (
            "clusterrolebindings",
            {
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": f"read-{plural}",
                },
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "gpu-driver"}],
            },
        ),
    ):
        rights = world.client.resource("rbac.authorization.k8s.io", "v1", kind, namespaced=False)
        await rights.create({"metadata": {"name": f"read-{plural}"}, **more})


async def config_map(world, name, namespace=NS, **data):
    await world.config_maps.create({"metadata": {"name": name, "namespace": namespace}, "data": data})


async def requirements(world, memory="2Gi"):
    await world.define(GPUS)
    found = world.client.resource("gpu.example.com", "v1", "gpurequirements")
    fields = {"apiVersion": "gpu.example.com/v1", "kind": "GPURequirements", "memory": memory}
    await found.create({**fields, "metadata": {"name": "small", "namespace": NS}})
    return found


def test_class_and_claim_parameters_are_handed_over_and_stay_distinguishable():
    """3063-PARAM-01, 3063-PARAM-02, 3063-PARAM-03, 3063-GOAL-04: a custom object and one of the core group,
    without a version in the reference."""

    async def story(world):
        driver = Recording()
        await may_read(world, "gpu.example.com", "gpurequirements")
        await may_read(world, "", "configmaps")
        await config_map(world, "class", "kube-system", level="gold")
        await requirements(world)
        await world.make_class(
            parametersRef={"kind": "ConfigMap", "name": "class", "namespace": "kube-system"}
        )
        await world.claim(mode="Immediate", parametersRef=OF_CLAIM)
        async with world.driver(driver):
            await world.until_allocated()
        (ask,) = driver.asks
        assert ask.claim_parameters.fields["memory"] == "2Gi"
        assert ask.claim_parameters.kind == "GPURequirements"
        assert ask.class_parameters.fields["data"] == {"level": "gold"}

    tell(story)


def test_a_claims_parameters_are_looked_up_in_its_own_namespace_only():
    """3063-PARAM-04."""

    async def story(world):
        driver = Recording()
        await may_read(world, "", "configmaps")
        await config_map(world, "p", "kube-system")
        await world.make_class()
        await world.claim(mode="Immediate", parametersRef={"kind": "ConfigMap", "name": "p"})
        async with world.driver(driver):
            said = await world.said("NotUsable")
            assert (
                said == f"{ME}: claim {NS}/c: spec.parametersRef: there is no ConfigMap p in namespace {NS}"
            )
            assert driver.made("allocate") == []
            await config_map(world, "p", NS)
            await world.until_allocated()

    tell(story)


@pytest.mark.parametrize("whose", ["class", "claim"])
def test_parameters_that_are_missing_are_waited_for(whose):
    """3063-PARAM-07, 3063-FLOW-01: once they are there, nobody has to touch claim or pod."""

    async def story(world):
        driver = Recording()
        await may_read(world, "", "configmaps")
        here = {"kind": "ConfigMap", "name": "p"}
        await world.make_class(**({"parametersRef": {**here, "namespace": NS}} if whose == "class" else {}))
        await world.claim(**({"parametersRef": here} if whose == "claim" else {}))
        pod = await world.pod()
        async with world.driver(driver):
            await world.scheduling(pod, "n1", "n1")
            assert "there is no ConfigMap p" in await world.said("NotUsable")
            assert await world.finalizers() == []
            await config_map(world, "p")
            await world.until_allocated()

    tell(story)


def test_parameters_that_go_or_change_after_allocation_change_nothing():
    """3063-PARAM-08, 3063-PARAM-09, 3063-PARAM-10, 3063-PARAM-13, C11: handle and users stay, and it can be
    given back without them."""

    async def story(world):
        driver = Recording()
        await may_read(world, "", "configmaps")
        await config_map(world, "p", size="2")
        await world.make_class()
        await world.claim(parametersRef={"kind": "ConfigMap", "name": "p"})
        pod = await world.pod()
        async with world.driver(driver):
            await world.scheduling(pod, "n1", "n1")
            before = await world.until_allocated()
            await world.config_maps.patch("p", {"data": {"size": "0"}}, NS)
            await world.config_maps.delete("p", NS)
            await world.quiet()
            assert await world.status() == before
            await world.claims.patch("c", {"status": {"reservedFor": None}}, NS, subresource="status")
            await world.claims.delete("c", NS)
            await world.until_gone()
        assert driver.made("deallocate") == [("c", "handle-c")]

    tell(story)


HERE = {"kind": "ConfigMap", "name": "p"}


@pytest.mark.parametrize(
    ("of_class", "of_claim", "why"),
    [
        # 3063-PARAM-05: which kinds are acceptable is the driver's decision.
        (None, {"kind": "Secret", "name": "p"}, "takes ConfigMap, Node, Nope.x.com here, and not Secret"),
        (None, {"kind": "Nope", "apiGroup": "x.com", "name": "p"}, "the server has no kind Nope.x.com"),
        # 3063-REF-04, X-05: scope and namespace must go together.
        (HERE, None, "parametersRef.namespace: ConfigMap objects are in namespaces; name one"),
        (
            {"kind": "Node", "name": "p", "namespace": "x"},
            None,
            "parametersRef.namespace: Node objects are in no namespace; leave it out",
        ),
        (None, {"kind": "Node", "name": "p"}, "in no namespace, and a claim's must be in its own"),
        # 3063-PARAM-14: what the driver may not read, a user's reference does not make it read.
        (None, HERE, "the driver may not read ConfigMap p in namespace default"),
    ],
)
def test_a_reference_that_makes_no_sense_is_told_to_the_claims_user(of_class, of_claim, why):
    async def story(world):
        driver = Recording()
        await world.make_class(**({"parametersRef": of_class} if of_class else {}))
        await world.claim(mode="Immediate", **({"parametersRef": of_claim} if of_claim else {}))
        taken = frozenset(("ConfigMap", "Node", "Nope.x.com"))
        async with world.driver(driver, class_kinds=taken, claim_kinds=taken):
            assert why in await world.said("NotUsable")
            assert await world.finalizers() == []
        assert driver.made("allocate") == []

    tell(story)
