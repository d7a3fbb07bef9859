"""allot up: what is refused before anything starts."""

import argparse

import pytest

from allot import hollow
from allot.base import duration_s
from allot.cli import played, up
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


def test_the_help_says_what_holds_unless_a_flag_is_given():
    """It is written there in words, since what it is written of is dear to import."""
    stages, renewing = hollow.Stages(), hollow.Renewing()
    usual_s = (stages.start_s, stages.run_s, stages.stop_s, renewing.every_s)
    assert [duration_s(said) for _, said, _ in played.DELAYS] == list(usual_s)
    parser = argparse.ArgumentParser()
    up.arguments(parser)
    wanted = up._wanted(parser.parse_args([]))
    assert (wanted.stages, wanted.renewing) == (stages, renewing)
    wanted = up._wanted(parser.parse_args(["--run-time", "0s", "--lease-every", "10s"]))
    assert (wanted.stages, wanted.renewing) == (hollow.Stages(run_s=0.0), hollow.Renewing(10.0, 40))


@pytest.mark.parametrize("given, listens", [([], True), (["--no-socket"], False)])
def test_flags_of_the_api_server_reach_it(given, listens):
    parser = argparse.ArgumentParser()
    up.arguments(parser)
    assert up._wanted(parser.parse_args(given)).serving.socket is listens
