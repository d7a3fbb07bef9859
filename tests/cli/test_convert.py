"""allot convert: what it prints, and what it says."""

import pytest
import yaml

from allot.cli.main import main

CLAIM = """
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClaim
metadata: {name: one}
spec: {resourceClassName: fast}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "claim.yaml"
    path.write_text(CLAIM)
    return str(path)


def test_a_class_is_mapped_by_a_flag_or_by_a_file(file, tmp_path, capsys):
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text("classes: {fast: {deviceClassName: gpu.example.com}}")
    for way in (["--class", "fast=gpu.example.com"], ["--mapping", str(mapping)]):
        assert main(["convert", file, *way]) == 0
        (found,) = yaml.safe_load_all(capsys.readouterr().out)
        assert found["apiVersion"] == "resource.k8s.io/v1"
        assert found["spec"]["devices"]["requests"][0]["exactly"] == {"deviceClassName": "gpu.example.com"}


def test_nothing_is_printed_where_something_cannot_be_converted(file, tmp_path, capsys):
    """Whoever pipes it on does not apply half of it."""
    good = tmp_path / "good.yaml"
    good.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fine}\n")
    assert main(["convert", str(good), file]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "cannot be converted: ResourceClaim one: say which DeviceClass" in told.err


@pytest.mark.parametrize(
    ("text", "words"),
    [("a: [", "cannot be read"), ("- a\n", "no object"), (None, "cannot be read")],
)
def test_what_cannot_be_read_is_named(tmp_path, capsys, text, words):
    path = tmp_path / "broken.yaml"
    if text is not None:
        path.write_text(text)
    assert main(["convert", str(path)]) == 2
    assert words in capsys.readouterr().err
