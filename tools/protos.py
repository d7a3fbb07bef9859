"""Generate Python messages from proto/. The result is committed; a test notices when it is stale."""

import sys
from collections.abc import Mapping
from pathlib import Path

from grpc_tools import protoc  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[1]

GENERATED: Mapping[str, str] = {
    "proto/etcd/allot_etcd.proto": "src/allot/store/etcd",
}
"""From a proto file to the package that holds its messages."""


def generate(proto: str, into: Path) -> None:
    source = ROOT / proto
    arguments = ["protoc", f"-I{source.parent}", f"--python_out={into}", f"--pyi_out={into}", source.name]
    if protoc.main(arguments) != 0:
        raise SystemExit(f"protoc refused {proto}")


if __name__ == "__main__":
    for proto, package in GENERATED.items():
        generate(proto, ROOT / package)
        print(f"{proto} -> {package}")
    sys.exit(0)
