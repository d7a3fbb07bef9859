"""What the server learns of a pod is the same whether it has the pod decoded or reads it from its bytes."""

import pytest

from allot.api import Object, kinds, stored_form
from allot.apiserver.observing import rights_observer
from allot.apiserver.reading.history import Change
from allot.apiserver.security import Authorizer
from allot.apiserver.security.identities import node
from allot.apiserver.storing.recent import Recent

from .security.test_nodes import WANTS, may, pod

PODS = next(kind for kind in kinds.ALL if (kind.group, kind.plural) == ("", "pods"))
KEY = "/objects/core/pods/dev/web"
NEEDED = [("secrets", name) for name in ("pull", "env-secret", "init-secret", "mounted", "projected", "csi")]
NEEDED += [("configmaps", "env-map"), ("persistentvolumeclaims", "disk"), ("persistentvolumeclaims", "web-e")]


VOLUMES = [*WANTS["spec"]["volumes"], {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]
POD = {**WANTS, "spec": {**WANTS["spec"], "volumes": VOLUMES}}


def heard(fields, *, is_decoded):
    """What is known after a change of the pod."""
    authorizer, recent = Authorizer(), Recent()
    stored = stored_form(fields)
    if is_decoded:
        recent.written(KEY, stored, 7, fields)
    rights_observer(PODS, authorizer, recent)(Change("ADDED", KEY, Object(stored, 7), None, 7))
    return authorizer


def with_record(fields):
    owned = {"f:spec": {"f:nodeName": {}}}
    record = [{"manager": "m", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": owned}]
    return {**fields, "metadata": {**fields["metadata"], "managedFields": record}}


@pytest.mark.parametrize("is_decoded", [True, False])
@pytest.mark.parametrize(("resource", "name"), NEEDED)
def test_a_node_reaches_what_its_pods_name(resource, name, is_decoded):
    known = heard(with_record(POD), is_decoded=is_decoded)
    assert may(known, node("n1"), "get", resource, name=name)
    assert not may(known, node("n2"), "get", resource, name=name)


@pytest.mark.parametrize("is_decoded", [True, False])
@pytest.mark.parametrize("name", ["by-name", "generated", "extended"])
def test_a_node_reaches_the_claims_of_its_pods(name, is_decoded):
    known = heard(with_record(POD), is_decoded=is_decoded)
    assert may(known, node("n1"), "get", "resourceclaims", name=name, group="resource.k8s.io")


@pytest.mark.parametrize("is_decoded", [True, False])
def test_a_mirror_pod_is_known_as_one(is_decoded):
    annotations = {"kubernetes.io/config.mirror": "x"}
    mirror = pod(metadata={"annotations": annotations}, spec={"serviceAccountName": "bot"})
    known = heard(with_record(mirror), is_decoded=is_decoded)
    assert may(known, node("n1"), "get", "pods", name="web")
    assert not may(known, node("n1"), "create", "serviceaccounts", name="bot", subresource="token")
