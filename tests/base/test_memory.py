"""Memory that was used once and is not needed any more, in a process of its own."""

import subprocess
import sys

import pytest

from allot.base import memory

MEASURED = """
import asyncio, ctypes, sys
from allot.base import return_large_blocks, return_small_blocks

def resident_mb():
    status = open("/proc/self/status").read()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024

{what}
"""

LARGE = """
if {returns}:
    assert return_large_blocks()
before = resident_mb()
for _ in range(4):
    bytearray(8 << 20)  # freed at once: from now on, by itself, glibc keeps such blocks in the heap
burst = [(bytearray(700_000), ctypes.create_string_buffer(3000)) for _ in range(300)]
pins = [small for _, small in burst]  # stay, and the heap cannot shrink below them
del burst
print(resident_mb() - before)
"""

SMALL = """
async def story():
    count = 0
    task = asyncio.create_task(return_small_blocks(lambda: count, every_s=0.01))
    before = resident_mb()
    count = 1000
    blocks = [ctypes.create_string_buffer(30_000) for _ in range(4000)]
    pins = blocks[::40] + [ctypes.create_string_buffer(3000)]
    await asyncio.sleep(0.1)
    del blocks
    if {returns}:
        count = 100
    await asyncio.sleep(0.5)
    task.cancel()
    print(resident_mb() - before)

asyncio.run(story())
"""


def left_mb(what: str, *, returns: bool) -> float:
    program = MEASURED.format(what=what.format(returns=returns))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="glibc is asked")
@pytest.mark.parametrize("what", [LARGE, SMALL], ids=["large", "small"])
def test_what_a_burst_took_goes_back(what):
    """Beside what is left when nobody asks for it."""
    kept, returned = left_mb(what, returns=False), left_mb(what, returns=True)
    assert returned < kept / 2, f"{returned:.0f} MB are left, and {kept:.0f} without asking"


def test_what_is_read_from_a_connection_is_not_a_large_block():
    """TLS is read into a block of 256 KiB each time, however little comes."""
    assert memory.LARGE_BYTES > 256 * 1024 + 4096
