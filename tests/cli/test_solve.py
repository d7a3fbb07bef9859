"""`allot solve`: one JSON line a file, whatever the file is."""

import json
import os
import subprocess
import sys

import pytest

from allot.cli import main

FITS = {
    "name": "one",
    "features": [],
    "node": {"metadata": {"name": "n"}},
    "slices": [
        {
            "metadata": {"name": "s"},
            "spec": {
                "driver": "d",
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                "nodeName": "n",
                "devices": [{"name": "small"}, {"name": "large"}],
            },
        }
    ],
    "classes": [{"metadata": {"name": "any"}, "spec": {}}],
    "claims": [
        {
            "metadata": {"name": "c"},
            "spec": {
                "devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "any", "count": 1}}]}
            },
        }
    ],
    "results": ["never read"],
    "error": "never read",
}


def three(count: int):
    problem = json.loads(json.dumps(FITS))
    problem["claims"][0]["spec"]["devices"]["requests"][0]["exactly"]["count"] = count
    return problem


@pytest.fixture
def solve(tmp_path, capsys):
    def run(*problems, options=()):
        files = []
        for number, problem in enumerate(problems):
            path = tmp_path / f"{number}.json"
            path.write_bytes(problem if isinstance(problem, bytes) else json.dumps(problem).encode())
            files.append(str(path))
        status = main(["solve", *files, *options])
        captured = capsys.readouterr()
        lines = [json.loads(line) for line in captured.out.splitlines()]
        assert [line["file"] for line in lines] == files
        return status, lines, captured.err

    return run


def test_a_line_has_the_promised_fields(solve):
    status, (line,), _ = solve(FITS)

    assert status == 0
    assert set(line) == {"file", "name", "verdict", "results", "error", "seconds"}
    assert (line["name"], line["verdict"], line["error"]) == ("one", "fits", None)
    assert line["results"] == [
        {
            "devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "small"}]},
            "nodeSelector": {
                "nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
                ]
            },
        }
    ]
    assert 0 <= line["seconds"] < 10


def test_lines_come_in_the_order_of_the_files(solve):
    unknown = json.loads(json.dumps(FITS))
    unknown["classes"] = []
    status, lines, _ = solve(FITS, three(3), unknown, {"node": {"metadata": {"name": "n"}}})

    assert status == 0
    assert [line["verdict"] for line in lines] == ["fits", "does-not-fit", "error", "fits"]
    assert "any" in lines[2]["error"]
    assert [len(line["results"]) for line in lines] == [1, 0, 0, 0]


def test_what_is_no_problem_gets_its_line_and_status_two(solve):
    """The files around it are answered all the same."""
    bad = json.loads(json.dumps(FITS))
    bad["slices"][0]["spec"]["devices"][0]["capacity"] = {"m": {"value": "much"}}
    status, lines, err = solve(FITS, bad, b"{", FITS)

    assert status == 2
    assert [line["verdict"] for line in lines] == ["fits", "error", "error", "fits"]
    assert "slices[0].spec.devices[0].capacity[m].value" in lines[1]["error"]
    assert "capacity[m].value" in err
    assert "Traceback" not in err


def test_a_missing_file_is_no_problem(capsys):
    assert main(["solve", "/no/such/file.json"]) == 2
    (line,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert line["verdict"] == "error"


def test_a_name_that_is_no_utf8_is_escaped(tmp_path, capsys):
    file = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.json")
    with open(file, "w") as opened:
        json.dump(FITS, opened)
    assert main(["solve", file]) == 0
    (line,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert line["file"].endswith("/\\xff.json")
    assert line["verdict"] == "fits"


def test_a_reader_who_leaves_early_is_no_fault(tmp_path):
    """As under `allot solve ... | head -1`."""
    file = tmp_path / "problem.json"
    file.write_text(json.dumps(FITS))
    start = "import sys; from allot.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", start, "solve", *[str(file)] * 50]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
    assert process.returncode == 0


def test_a_file_without_end_is_no_problem(capsys, monkeypatch):
    monkeypatch.setattr("allot.allocation.PROBLEM_BYTES_MAX", 1000)
    assert main(["solve", "/dev/zero"]) == 2
    (line,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert line["error"] == "more than 1000 bytes"


def test_a_policy_can_be_named(solve):
    for policy in ("first-fit", "least-waste"):
        assert solve(FITS, options=("--policy", policy))[1][0]["verdict"] == "fits"
    with pytest.raises(SystemExit):
        solve(FITS, options=("--policy", "most-waste"))


def test_an_explanation_is_given_on_request_only(solve):
    _, (plain,), _ = solve(three(3))
    _, (explained,), _ = solve(three(3), options=("--explain",))

    assert "explanation" not in plain
    assert explained["explanation"]["requests"][0]["free"] == 2
    assert "with 2 instead of 3" in explained["explanation"]["text"]


def test_our_own_fault_costs_one_file_its_answer(solve, monkeypatch):
    from allot import allocation

    real = allocation.solve

    def broken(problem, policy):
        if problem.name == "one":
            raise ZeroDivisionError("oops")
        return real(problem, policy)

    monkeypatch.setattr(allocation, "solve", broken)
    status, lines, err = solve(FITS, {**FITS, "name": "two"})

    assert status == 1
    assert [line["verdict"] for line in lines] == ["error", "fits"]
    assert "oops" in err
