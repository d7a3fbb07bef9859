"""Where a device of this machine hangs: its PCIe root, which devices that are near each other share."""

import os
from pathlib import Path


def root(device: Path) -> str:
    """From its place in sysfs: /sys/devices/pci0000:c0/0000:c0:01.0/0000:c8:00.0 is at pci0000:c0. Empty: it
    hangs on none, or that is not known."""
    parts = os.path.realpath(device).split("/")
    return next((part for part in parts if part.startswith("pci") and ":" in part), "")
