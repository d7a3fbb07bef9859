"""The package as users install it: a wheel in an environment of its own, without this checkout."""

import importlib.metadata
import json
import os
import site
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import allot
from components import binary
from e2e.process import Kubectl
from tidy.documents import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
    ]
    subprocess.run([*command, "--wheel-dir", str(folder), str(ROOT)], check=True, timeout=120)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The programs of a fresh environment that has the wheel.

    What it depends on is borrowed from this environment, since tests fetch nothing: a path in a .pth file is
    only searched, so the checkout that is installed here for editing does not come along.
    """
    home = tmp_path_factory.mktemp("fresh")
    venv.create(home, with_pip=False, symlinks=True)
    (own,) = home.glob("lib/python*/site-packages")
    here = [path for path in site.getsitepackages() if Path(path).is_dir()]
    (own / "borrowed.pth").write_text("\n".join(here))
    command = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "install", "--quiet"]
    subprocess.run([*command, "--no-index", "--no-deps", str(wheel)], check=True, timeout=120)
    yield home / "bin"


def run(*command: str | Path) -> str:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=clean, cwd="/")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_has_the_package_and_nothing_else(wheel: Path):
    assert wheel.name == f"allot_dra-{allot.__version__}-py3-none-any.whl"
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert tops == {"allot", f"allot_dra-{allot.__version__}.dist-info"}


def test_what_is_installed_is_the_wheel_under_its_own_name(installed: Path):
    said = run(
        installed / "python", "-c", "import allot, importlib.metadata as m, json;"
        "print(json.dumps([allot.__file__, m.version('allot-dra'), m.requires('allot-dra')]))",
    )  # fmt: skip
    file, version, requires = json.loads(said)
    assert Path(file).is_relative_to(installed.parent)
    assert version == allot.__version__ == run(installed / "allot", "--version").split()[1]
    missing = [one for one in requires if not importlib.metadata.distribution(one.split(">=")[0].strip())]
    assert not missing


def test_a_cluster_comes_up_from_the_wheel(installed: Path, tmp_path: Path):
    command = [installed / "allot", "up", "--nodes", "1", "--data-dir", tmp_path / "data", "--port", "0"]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with (tmp_path / "log").open("w") as log:
        up = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=clean, cwd="/")
    try:
        assert up.stdout is not None
        assert up.stdout.readline() == "ready\n", (tmp_path / "log").read_text()
        kubectl = Kubectl(binary("kubectl"), tmp_path / "data" / "kubeconfig")
        assert "Ready" in kubectl("get", "nodes")
    finally:
        up.terminate()
        assert up.wait(20) == 0
        if up.stdout is not None:
            up.stdout.close()
