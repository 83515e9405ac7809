"""A picture of panels: charts as SVG on a page, which a browser without a window turns into a file."""

import html
import shutil
import subprocess
from pathlib import Path

BROWSER = "chromium-headless-shell"
COLUMNS, WIDTH, HEIGHT = 2, 640, 320
_PLOT_LEFT, _PLOT_TOP, _PLOT_WIDTH, _PLOT_HEIGHT = 70, 40, 550, 180
_LABELS = 4
_BROWSER_LIMIT = 120
Series = list[dict]


def chart(title: str, series: Series) -> str:
    """One chart: a line for each series, from 0 or the least value to the largest, and the labels of some."""
    points = [[(float(at), float(value)) for at, value in each["values"]] for each in series]
    moments = [at for line in points for at, _ in line] or [0.0]
    values = [value for line in points for _, value in line] or [0.0]
    begin, span = min(moments), max(moments) - min(moments) or 1.0
    low, high = min(0.0, *values), max(values)
    scale = high - low or 1.0

    def place(at: float, value: float) -> str:
        x = _PLOT_LEFT + _PLOT_WIDTH * (at - begin) / span
        return f"{x:.1f},{_PLOT_TOP + _PLOT_HEIGHT * (1 - (value - low) / scale):.1f}"

    parts = [f'<text x="10" y="22" font-weight="bold">{html.escape(title)}</text>']
    for value, y in ((high, _PLOT_TOP + 5), (low, _PLOT_TOP + _PLOT_HEIGHT + 5)):
        parts.append(f'<text x="{_PLOT_LEFT - 6}" y="{y}" text-anchor="end">{value:.3g}</text>')
    frame = f'x="{_PLOT_LEFT}" y="{_PLOT_TOP}" width="{_PLOT_WIDTH}" height="{_PLOT_HEIGHT}"'
    parts.append(f'<rect {frame} fill="none" stroke="#ccc"/>')
    for number, line in enumerate(points):
        path = " ".join(place(at, value) for at, value in line)
        pen = f'stroke="{_color(number)}" stroke-width="1.5" stroke-linecap="round"'
        parts.append(f'<polyline points="{path}" fill="none" {pen}/>')
    for number, each in enumerate(series[:_LABELS]):
        y = _PLOT_TOP + _PLOT_HEIGHT + 25 + 15 * number
        parts.append(
            f'<text x="{_PLOT_LEFT}" y="{y}" fill="{_color(number)}">{html.escape(_label(each))}</text>'
        )
    return f'<svg width="{WIDTH}" height="{HEIGHT}">{"".join(parts)}</svg>'


def _color(number: int) -> str:
    return f"hsl({number * 67 % 360},65%,40%)"


def _label(series: dict) -> str:
    labels = {name: value for name, value in series["metric"].items() if name not in ("__name__", "job")}
    return ", ".join(f"{name} {value}" for name, value in sorted(labels.items()))[:90]


def draw(charts: list[str], picture: Path, page: Path) -> None:
    """Writes the page, and by the browser the picture."""
    if shutil.which(BROWSER) is None:
        raise OSError(
            f"there is no {BROWSER} for --picture; run this line: "
            f"apt-get install -y --no-install-recommends {BROWSER}"
        )
    style = "body{margin:0;width:1280px;font:12px sans-serif;background:white}svg{float:left}"
    page.write_text(f"<!doctype html><meta charset=utf-8><style>{style}</style>{''.join(charts)}")
    rows = -(-len(charts) // COLUMNS)
    picture.unlink(missing_ok=True)
    size = f"--window-size={COLUMNS * WIDTH},{rows * HEIGHT}"
    words = [
        BROWSER,
        "--no-sandbox",
        "--disable-gpu",
        size,
        f"--screenshot={picture.absolute()}",
        page.as_uri(),
    ]
    said = subprocess.run(words, capture_output=True, text=True, timeout=_BROWSER_LIMIT)
    if not picture.exists():
        raise OSError(f"{BROWSER} drew no {picture}: {' '.join(said.stderr.split()[-20:])}")
