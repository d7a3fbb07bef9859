"""The generated messages are those of proto/etcd."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_generated_messages_are_up_to_date(tmp_path: Path, monkeypatch):
    """Run tools/protos.py after changing a proto file."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    protos = __import__("protos")
    for proto, package in protos.GENERATED.items():
        protos.generate(proto, tmp_path)
        for made in tmp_path.iterdir():
            assert made.read_text() == (ROOT / package / made.name).read_text(), (
                f"{package}/{made.name} is stale"
            )
            made.unlink()
    sys.modules.pop("protos", None)
