"""What an image reference says about how to pull it."""

ALWAYS = "Always"
IF_NOT_PRESENT = "IfNotPresent"


def pull_policy(image: str) -> str:
    """`Always` for what may move (`latest`, or no tag at all), `IfNotPresent` for the rest."""
    name, at, _digest = image.partition("@")
    if at:
        return IF_NOT_PRESENT
    _, colon, tag = name.rpartition("/")[2].partition(":")
    return ALWAYS if not colon or tag == "latest" else IF_NOT_PRESENT
