"""What went wrong, in words for whoever typed the command."""


def plain(error: Exception) -> str:
    """The error's text; of the operating system's errors the file and the reason, without a number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def first(error: Exception) -> Exception:
    """Of what failed in the background, which comes as a group, the first; else itself."""
    return first(error.exceptions[0]) if isinstance(error, ExceptionGroup) else error
