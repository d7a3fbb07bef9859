"""So many, or a share such as `25%`."""


def count_of(written: int | str, of: int, *, up: bool = True) -> int:
    """How many of `of` that is; what is left of a share is rounded up, or down."""
    if isinstance(written, int):
        return written
    percent = int(written.removesuffix("%"))
    return -(-percent * of // 100) if up else percent * of // 100
