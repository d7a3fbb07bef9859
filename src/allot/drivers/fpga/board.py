"""The functions of a node's cards, set up together: a file a function stands in for its registers.

REGISTER1  After `set_up` all functions of the pipeline are there; if it raises, none is.
REGISTER2  Both may be repeated with the effect of once.
"""

import shutil
from pathlib import Path
from typing import Final

import msgspec

from allot.base import write_file

from .pipeline import Pipeline

BITSTREAM_MAX: Final = 64
"""Letters in the name of a bitstream; the card has no room for more."""


class CannotSetUp(Exception):
    """A function cannot be set up. The message says which, and why; nothing is left of the others."""


class Board:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def set_up(self, card: str, pipeline: Pipeline) -> None:
        at = self._folder / card
        at.mkdir(parents=True, exist_ok=True)
        try:
            for at_number in range(pipeline.network_interfaces):
                _write(at / f"nic-{at_number}", "up")
            if pipeline.signal_processor is not None:
                _write(at / "signal-processor", pipeline.signal_processor.program)
            if len(pipeline.bitstream) > BITSTREAM_MAX:
                raise CannotSetUp(f"{card}: the name of the bitstream has more than {BITSTREAM_MAX} letters")
            _write(at / "fpga", pipeline.bitstream)
        except (CannotSetUp, OSError) as failed:
            self.clear(card)  # REGISTER1
            raise CannotSetUp(str(failed)) from None

    def clear(self, card: str) -> None:
        shutil.rmtree(self._folder / card, ignore_errors=True)

    def functions(self, card: str) -> dict[str, str]:
        """What is set up now."""
        at = self._folder / card
        if not at.exists():
            return {}
        return {file.name: msgspec.json.decode(file.read_bytes()) for file in sorted(at.iterdir())}


def _write(path: Path, setting: str) -> None:
    write_file(path, msgspec.json.encode(setting))
