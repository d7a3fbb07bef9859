"""Where a component finds its server."""

import argparse

import pytest

from allot.cli import component
from allot.client import kubeconfig


@pytest.fixture
def chosen(monkeypatch, tmp_path):
    """Which way is taken, for some arguments."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setattr(kubeconfig, "in_cluster", lambda: "the pod's account")
    monkeypatch.setattr(kubeconfig, "load", lambda path, context: f"kubeconfig {path}".strip())

    def choose(*arguments):
        parser = argparse.ArgumentParser()
        component.arguments(parser)
        return component._access(parser.parse_args(arguments))

    return choose


def test_in_a_pod_without_a_kubeconfig_it_acts_as_the_pods_account(chosen):
    assert chosen() == "the pod's account"


def test_whoever_names_a_kubeconfig_means_it(chosen, monkeypatch, tmp_path):
    assert chosen("--kubeconfig", "/a") == "kubeconfig /a"
    assert chosen("--context", "other") == "kubeconfig"
    monkeypatch.setenv("KUBECONFIG", "/not/there")
    assert chosen() == "kubeconfig"
    monkeypatch.delenv("KUBECONFIG")
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text("")
    assert chosen() == "kubeconfig"


def test_outside_of_a_cluster_there_is_no_account(chosen, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    assert chosen() == "kubeconfig"
