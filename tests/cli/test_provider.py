"""allot provider: what is refused before anything starts."""

from allot.cli.main import main


def test_without_certificates_it_gets_as_far_as_its_groups(tmp_path, capsys):
    """An empty default was refused as if somebody had given it, so that nobody could serve without TLS."""
    missing = tmp_path / "groups.yaml"
    assert main(["provider", "--groups", str(missing), "--listen", "127.0.0.1:0"]) == 2
    assert capsys.readouterr().err == f"allot provider: {missing}: No such file or directory\n"
