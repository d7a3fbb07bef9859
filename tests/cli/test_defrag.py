"""`allot defrag` about a dump: text, JSON, exit status, and what it refuses."""

import json
from pathlib import Path

import pytest
import yaml

from allot.cli import main
from allot.planning import Dump, save
from planning.clusters import gathered
from planning.defrag.worlds import CLASSES, GPU, node, pod, running, template, whole

ONE, TWO = template("one", GPU), template("two", GPU, 2)
SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"


@pytest.fixture
def dump(tmp_path) -> Path:
    """Two nodes with two GPUs, one free on each; the pod on the second may move."""
    p = running("p", "b", ["gpu-0"], ONE)
    q = running("q", "a", ["gpu-0"], ONE, annotations={SAFE: "false"})
    nodes = [node("a"), whole("a", 2), node("b"), whole("b", 2)]
    path = tmp_path / "dump"
    save(Dump(gathered([*CLASSES, *nodes, ONE, TWO, *p, *q])), path)
    return path


def asked(capsys, *arguments: str) -> tuple[int, str, str]:
    status = main(["defrag", *arguments])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_it_says_how_fragmented_devices_are(dump, capsys):
    status, text, _ = asked(capsys, "--dump", str(dump))
    assert status == 0
    assert f"{GPU}, gpu: 2 pools, 2 of 4 free" in text and "fragmented: 50%" in text
    status, text, _ = asked(capsys, "--dump", str(dump), "--json")
    (make,) = json.loads(text)["makes"]
    assert status == 0 and make["fragmentation"] == 0.5
    assert (make["fits"]["name"], make["allows"]["name"]) == ("gpu", "2xgpu")


def test_a_plan_for_a_profile(dump, capsys):
    """The pod that is not to be evicted stays, as its annotation in the dump says (DUMP1)."""
    status, text, _ = asked(capsys, "--dump", str(dump), "--profile", f"2x{GPU}", "--json")
    answer = json.loads(text)
    assert status == 0 and answer["fits"] and answer["fewest"]
    assert [(one["pod"], one["from"], one["to"]) for one in answer["moves"]] == [("default/p", "b", "a")]


@pytest.mark.parametrize("kind", ["pod", "template", "deployment"])
def test_a_plan_for_a_file(dump, capsys, tmp_path, kind):
    wanted = pod("big", "two")
    spec = {"selector": {"matchLabels": {"app": "big"}}, "template": {"metadata": {}, "spec": wanted["spec"]}}
    files = {
        "pod": wanted,
        "template": {**TWO, "metadata": {"name": "other"}},
        "deployment": {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "big"},
            "spec": {"replicas": 1, **spec},
        },
    }
    path = tmp_path / "wanted.yaml"
    path.write_text(yaml.safe_dump(files[kind]))
    status, text, _ = asked(capsys, "--dump", str(dump), "--for", str(path))
    assert status == 0 and "1. evict default/p from b: another goes to a" in text and "fits: default/" in text


def test_where_no_moves_help_the_status_says_so(dump, capsys):
    status, text, _ = asked(capsys, "--dump", str(dump), "--profile", f"3x{GPU}")
    assert status == 3 and "does not fit" in text and "no plan of up to 4 moves makes room" in text
    status, text, _ = asked(capsys, "--dump", str(dump), "--profile", f"2x{GPU}", "--moves", "0")
    assert status == 3 and "no move makes room" in text
    status, text, _ = asked(capsys, "--dump", str(dump), "--profile", f"2x{GPU}", "--priority", "-1")
    assert status == 3 and "stays    default/p: it is more important" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--profile", "huge"], "no device class and no profile is called 'huge'"),
        (["--pod", "nobody"], "there is no pod default/nobody"),
        (["--for", "/nowhere.yaml"], "/nowhere.yaml cannot be read"),
        (["--apply"], "--apply needs --for, --pod or --profile"),
        (["--apply", "--profile", "x"], "a dump cannot be changed"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(dump, capsys, arguments, words):
    status, text, said = asked(capsys, "--dump", str(dump), *arguments)
    assert status == 2 and not text and words in said and said.count("\n") == 1


def test_nobody_is_evicted_where_nobody_can_be_asked(capsys):
    """Before anything is read: the kubeconfig is not even looked for."""
    status, _, said = asked(capsys, "--profile", "x", "--apply", "--kubeconfig", "/nowhere")
    assert status == 2 and "there is nobody to ask" in said
