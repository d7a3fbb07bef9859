"""A line chart as SVG, in as few words as it takes."""

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil

Points = Sequence[tuple[float, float]]

WIDTH, HEIGHT = 760, 380
LEFT, RIGHT, TOP, BOTTOM = 60, 20, 70, 50
COLOURS = ("#b04a3a", "#3a6fb0", "#3a8f5c", "#8a5fb0")


def lines(title: str, x_label: str, y_label: str, curves: Mapping[str, Points]) -> str:
    """One curve a name, axes from zero, a legend under the title."""
    x_max = ceil(max(x for points in curves.values() for x, _ in points)) or 1
    y_max = ceil(max(y for points in curves.values() for _, y in points) * 10) / 10 or 1.0

    def at(x: float, y: float) -> str:
        across = LEFT + x / x_max * (WIDTH - LEFT - RIGHT)
        down = HEIGHT - BOTTOM - y / y_max * (HEIGHT - TOP - BOTTOM)
        return f"{across:.1f},{down:.1f}"

    parts = [_text(LEFT, 24, title, size=16)]
    for step in range(6):
        y = y_max * step / 5
        start, end = at(0, y).split(","), at(x_max, y).split(",")
        parts.append(f'<path d="M{start[0]} {start[1]}L{end[0]} {end[1]}" stroke="#ddd" fill="none"/>')
        parts.append(_text(LEFT - 8, float(start[1]) + 4, f"{y:.2f}", anchor="end"))
    for step in range(0, x_max + 1, max(1, x_max // 8)):
        x, down = at(step, 0).split(",")
        parts.append(_text(float(x), float(down) + 18, str(step), anchor="middle"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x_label, anchor="middle"))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(_text(16, middle, y_label, anchor="middle", extra=f' transform="rotate(-90 16 {middle})"'))
    across = LEFT
    for colour, (name, points) in zip(COLOURS, curves.items(), strict=False):
        path = " ".join(at(x, y) for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        parts.append(f'<rect x="{across}" y="40" width="14" height="4" fill="{colour}"/>')
        parts.append(_text(across + 20, 46, name))
        across += 40 + 7 * len(name)
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%" fill="#fff"/>\n'
        f"{body}\n</svg>\n"
    )


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12, extra: str = "") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{extra}'
    return f"<text {place}>{escape(text)}</text>"
