"""allot credentials: who gets what for how long, and where it lies."""

import base64
import stat
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from cryptography import x509
from cryptography.x509.oid import NameOID

from allot.apiserver import security
from allot.cli import main


@pytest.fixture
def data_dir(tmp_path):
    security.open_authority(tmp_path, datetime.now(UTC))
    (tmp_path / "kubeconfig").write_text("clusters: [{cluster: {server: 'https://127.0.0.1:7000'}}]")
    return tmp_path


def made(data_dir, *arguments):
    """The kubeconfig that the command writes, and the certificate in it."""
    assert main(["credentials", *arguments, "--data-dir", str(data_dir)]) == 0
    [path] = (data_dir / "credentials").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    found = yaml.safe_load(path.read_text())
    encoded = found["users"][0]["user"]["client-certificate-data"]
    return found, x509.load_pem_x509_certificate(base64.b64decode(encoded))


def groups(certificate):
    return [a.value for a in certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]


def test_a_user_with_groups(data_dir, capsys):
    found, certificate = made(data_dir, "ann", "--group", "team", "--group", "ops", "--namespace", "dev")
    assert groups(certificate) == ["team", "ops"]
    assert found["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:7000"
    assert found["contexts"][0]["context"]["namespace"] == "dev"
    assert capsys.readouterr().out.strip() == str(data_dir / "credentials" / "ann.kubeconfig")


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("system:node:n1", ["system:nodes"]),
        ("allot-admin", ["allot:cluster-admins"]),
        ("system:kube-scheduler", []),
        (
            "system:serviceaccount:kube-system:resource-claim-controller",
            ["system:serviceaccounts", "system:serviceaccounts:kube-system"],
        ),
    ],
)
def test_components_bring_their_groups(data_dir, user, expected):
    assert groups(made(data_dir, user)[1]) == expected


@pytest.mark.parametrize(("text", "lifetime"), [("30m", timedelta(minutes=30)), ("90d", timedelta(days=90))])
def test_a_credential_lives_as_long_as_was_asked(data_dir, text, lifetime):
    _, certificate = made(data_dir, "ann", "--duration", text)
    assert abs(certificate.not_valid_after_utc - datetime.now(UTC) - lifetime) < timedelta(minutes=1)


def test_above_all_roles_is_for_an_hour_and_says_so(data_dir, capsys):
    _, certificate = made(data_dir, "fixer", "--group", "system:masters")
    assert certificate.not_valid_after_utc - datetime.now(UTC) < timedelta(minutes=61)
    assert "above all roles" in capsys.readouterr().err
    arguments = ["credentials", "fixer", "--group", "system:masters", "--data-dir", str(data_dir)]
    assert main([*arguments, "--duration", "2d"]) == 1


def test_without_keys_or_address_it_says_what_is_missing(tmp_path, data_dir, capsys):
    assert main(["credentials", "ann", "--data-dir", str(tmp_path / "none")]) == 1
    assert "has no keys" in capsys.readouterr().err
    (data_dir / "kubeconfig").unlink()
    assert main(["credentials", "ann", "--data-dir", str(data_dir)]) == 1
    assert "use --server" in capsys.readouterr().err
    out = ["--server", "https://there", "--out", "-"]
    assert main(["credentials", "ann", "--data-dir", str(data_dir), *out]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["clusters"][0]["cluster"]["server"] == "https://there"


@pytest.mark.parametrize("text", ["0h", "soon", "-1d", "999999999d"])
def test_a_duration_that_makes_no_sense_is_refused(data_dir, text):
    with pytest.raises(SystemExit):
        main(["credentials", "ann", "--data-dir", str(data_dir), "--duration", text])


def test_a_place_that_cannot_be_written_to_is_named_as_it_was(data_dir, capsys):
    """And not by the file that it would have been made of."""
    folder = data_dir / "folder"
    folder.mkdir()
    for out, why in (
        (folder, "Is a directory"),
        (data_dir / "nowhere" / "file", "No such file or directory"),
    ):
        assert main(["credentials", "ann", "--data-dir", str(data_dir), "--out", str(out)]) == 1
        assert capsys.readouterr().err == f"allot credentials: {out}: {why}\n"


def test_a_kubeconfig_that_is_not_text_does_not_say_where_the_server_is(data_dir, capsys):
    (data_dir / "kubeconfig").write_bytes(b"\xff\xfe\x00")
    assert main(["credentials", "ann", "--data-dir", str(data_dir)]) == 1
    assert "does not say where the server is: use --server" in capsys.readouterr().err


def test_the_help_shows_each_form_and_the_file_that_is_written(data_dir, capsys, monkeypatch):
    """One word for all forms was printed twice over, and the file was called something else."""
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main(["credentials", "--help"])
    said = capsys.readouterr().out
    assert "allot credentials [options] {revoke,restore} (USER | --serial S)" in said
    made(data_dir, "ann")
    written = capsys.readouterr().out.strip().replace(str(data_dir), "DATA-DIR").replace("ann", "USER")
    assert f"default: {written}; - is stdout" in said


@pytest.mark.parametrize("words", [["list"], ["revoke", "ann"], ["restore", "ann"], ["ann"]])
def test_in_a_directory_without_a_cluster_every_form_says_so(tmp_path, words, capsys):
    """Only making one did; the others named a kubeconfig that the user had not asked for."""
    assert main(["credentials", *words, "--data-dir", str(tmp_path / "elsewhere")]) == 1
    said = capsys.readouterr().err
    assert said == (
        f"allot credentials: {tmp_path}/elsewhere has no keys: "
        "start `allot apiserver` there first, or name another --data-dir\n"
    )
