"""Claims from files: judged as the server would."""

import io
from pathlib import Path
from typing import Any

import pytest
import yaml

from allot.api import Gates
from allot.base import SystemClock
from allot.cli.claimfile import Draft, FoundClaim, NotAClaim, first_claim, read_claim, spec_of


def claim(*requests: Any, version: str = "resource.k8s.io/v1", name: str = "c", **devices: Any) -> Any:
    spec = {"devices": {"requests": list(requests), **devices}}
    return {"apiVersion": version, "kind": "ResourceClaim", "metadata": {"name": name}, "spec": spec}


def exactly(**request: Any) -> Any:
    return {"name": "gpu", "exactly": {"deviceClassName": "gpu", **request}}


def draft(tmp_path: Path, *documents: Any) -> Draft:
    path = tmp_path / "claim.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    return first_claim(path)


def read(tmp_path: Path, *documents: Any, **namespace: Any) -> FoundClaim:
    inside = {"metadata": {"labels": namespace.pop("labels", {})}} if namespace.pop("known", True) else None
    return read_claim(draft(tmp_path, *documents), Gates(), inside, SystemClock())


def problems(tmp_path: Path, *documents: Any) -> tuple[str, ...]:
    with pytest.raises(NotAClaim) as refused:
        read(tmp_path, *documents)
    return tuple(one.removeprefix(f"{tmp_path}/claim.yaml: ") for one in refused.value.problems)


@pytest.mark.parametrize("said", [{}, {"count": 0}])
def test_what_is_left_out_gets_its_default(tmp_path, said):
    """The server takes a count of 0 for none, and stores 1."""
    (request,) = read(tmp_path, claim(exactly(**said))).spec.devices.requests
    assert request.exactly is not None
    assert (request.exactly.allocation_mode, request.exactly.count) == ("ExactCount", 1)


@pytest.mark.parametrize(
    "spec", [None, {}, {"devices": None}, {"devices": {}}, {"devices": {"requests": None}}]
)
@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
def test_a_claim_that_asks_for_nothing_is_one(tmp_path, kind, spec):
    """The server stores its requests as null, which used to end in a traceback."""
    inner = {"spec": spec} if kind == "ResourceClaimTemplate" else spec
    found = read(tmp_path, {**claim(), "kind": kind, "spec": inner})
    assert (found.spec.devices.requests, found.notes) == ((), ())


def test_a_template_that_is_stored_with_nulls_is_read_as_without():
    stored = {"kind": "ResourceClaimTemplate", "spec": {"spec": {"devices": {"requests": None}}}}
    assert spec_of(stored).devices.requests == ()


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        (claim(exactly(count=0, allocationMode="None")), "spec.devices.requests[0].exactly.allocationMode"),
        (claim(exactly(count=-1)), "spec.devices.requests[0].exactly.count"),
        (
            claim({"name": "gpu", "deviceClassName": "g", "count": -1}, version="resource.k8s.io/v1beta1"),
            "spec.devices.requests[0].exactly.count",
        ),
        (
            claim(exactly(), constraints=[{"matchAttribute": "model"}]),
            "spec.devices.constraints[0].matchAttribute",
        ),
        (
            claim(exactly(selectors=[{"cel": {"expression": "1 +"}}])),
            "spec.devices.requests[0].exactly.selectors[0].cel.expression",
        ),
        (claim({"name": "gpu"}), "spec.devices.requests[0]"),
        (claim(exactly(adminAccess=True)), "spec.devices.requests[0].adminAccess"),
    ],
)
def test_what_the_server_would_refuse_is_refused_by_field(tmp_path, wrong, path):
    """It used to be answered: a claim for -1 devices fitted any number of times."""
    (problem,) = problems(tmp_path, wrong)
    assert problem.startswith(f"{path}: ")


def test_every_field_that_is_wrong_is_told(tmp_path):
    first, second = problems(tmp_path, claim(exactly(count=-1), {**exactly(count=-2), "name": "nic"}))
    assert "requests[0]" in first and "requests[1]" in second


@pytest.mark.parametrize(
    "inside", [{"labels": {"resource.kubernetes.io/admin-access": "true"}}, {"known": False}]
)
def test_administrators_may_ask_where_their_namespace_says_so_or_is_not_known(tmp_path, inside):
    assert read(tmp_path, claim(exactly(adminAccess=True)), **inside).spec.devices.requests


@pytest.mark.parametrize(
    ("named", "asked", "meant"),
    [("a", "", "a"), ("a", "a", "a"), (None, "b", "b"), ("", "b", "b"), (None, "", "")],
)
@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
def test_a_claim_is_in_the_namespace_it_names_or_that_was_asked_for(tmp_path, kind, named, asked, meant):
    document = {**claim(), "kind": kind, "metadata": {"name": "c", "namespace": named}}
    assert draft(tmp_path, document).namespace(asked) == meant


@pytest.mark.parametrize(
    ("named", "says"),
    [
        ("a", "its namespace a is not b, as --namespace says"),
        ("../x", "metadata.namespace '../x' cannot be the name of a namespace"),
    ],
)
def test_a_namespace_that_is_another_or_none_at_all_is_refused(tmp_path, named, says):
    with pytest.raises(NotAClaim) as refused:
        draft(tmp_path, {**claim(), "metadata": {"namespace": named}}).namespace("b")
    assert refused.value.problems == (f"{tmp_path}/claim.yaml: {says}",)


@pytest.mark.parametrize("metadata", [{"namespace": 5}, ["namespace"]])
def test_metadata_of_another_shape_names_no_namespace_and_is_refused_as_that(tmp_path, metadata):
    document = {**claim(), "metadata": metadata}
    assert draft(tmp_path, document).namespace("b") == "b"
    (problem,) = problems(tmp_path, document)
    assert "is no ResourceClaim" in problem


@pytest.mark.parametrize("version", ["v1", "example.com/v1", "resource.k8s.io/v1alpha2", None])
def test_a_claim_of_another_group_or_version_is_none(tmp_path, version):
    (problem,) = problems(tmp_path, claim(exactly(), version=version))
    assert f"apiVersion {version!r} is none of resource.k8s.io/v1, " in problem


def test_of_several_claims_it_is_said_which_one_is_meant(tmp_path):
    other = {"apiVersion": "v1", "kind": "Pod"}
    found = read(tmp_path, other, claim(exactly(count=2), name="a"), claim(exactly(), name="b"))
    assert found.notes == (f"{tmp_path}/claim.yaml has 2 claims; this is about the first, a",)
    assert read(tmp_path, other, claim(exactly())).notes == ()


def test_a_field_that_nobody_knows_is_told(tmp_path):
    (note,) = read(tmp_path, claim(exactly(coun=2))).notes
    assert note.endswith('unknown field "spec.devices.requests[0].exactly.coun"')


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"a: \xe9"])
def test_what_is_not_text_is_said_to_be_none(tmp_path, content, monkeypatch):
    path = tmp_path / "claim.yaml"
    path.write_bytes(content)
    with pytest.raises(NotAClaim) as refused:
        first_claim(path)
    assert refused.value.problems == (f"{path} is not text",)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), "utf-8"))
    with pytest.raises(NotAClaim) as refused:
        first_claim(Path("-"))
    assert refused.value.problems == ("- is not text",)


@pytest.mark.parametrize("text", ["a: [", "&a [*a]", "kind: ResourceClaim\nspec: &a [*a]"])
def test_what_cannot_be_read_is_one_line(tmp_path, text):
    path = tmp_path / "claim.yaml"
    path.write_text(text)
    with pytest.raises(NotAClaim) as refused:
        first_claim(path)
    (problem,) = refused.value.problems
    assert str(path) in problem and "\n" not in problem
