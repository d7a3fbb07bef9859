"""The example that scales a fleet from zero and back, and whose what-if answer comes true."""

import scale_from_zero


def test_the_example_does_what_it_says(capsys):
    """AUTO-08: scale from zero for a claim; and IF1."""
    assert scale_from_zero.main() == 0
    said = capsys.readouterr().out
    assert "a group has grown from nothing" in said and said.endswith("as was said\n")
    assert "evicted  default/train" in said
