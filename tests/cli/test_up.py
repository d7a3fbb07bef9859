"""allot up: what is refused before anything starts."""

import argparse

import pytest

from allot.cli import up
from allot.cli.main import main


@pytest.mark.parametrize("period", ["0s", "1ms", "-1s", "often"])
def test_leases_cannot_be_renewed_without_a_pause(period, capsys):
    """A cluster that does nothing else would not even hear that it shall stop."""
    with pytest.raises(SystemExit):
        main(["up", f"--lease-every={period}"])
    assert "--lease-every" in capsys.readouterr().err


def test_files_that_are_in_the_way_are_named_in_plain_words(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["up", "--data-dir", str(tmp_path / "file" / "data")]) == 1
    assert capsys.readouterr().err == f"allot up: {tmp_path}/file/data: Not a directory\n"


@pytest.mark.parametrize("given, listens", [([], True), (["--no-socket"], False)])
def test_flags_of_the_api_server_reach_it(given, listens):
    parser = argparse.ArgumentParser()
    up.arguments(parser)
    assert up._wanted(parser.parse_args(given)).serving.socket is listens
