"""What every benchmark ends with: figures of interleaved pairs, a report, a picture."""

import json
import pathlib
import statistics

import history

ROOT = pathlib.Path(__file__).resolve().parents[3]
REPORTS = ROOT / "build" / "reports"


def spread(values):
    """Minimum, median and maximum."""
    return {"minimum": min(values), "median": statistics.median(values), "maximum": max(values)}


def in_turn(index, steps):
    """Those that are compared, first one way round, then the other (A B B A): none always finds the machine as the same
    one left it."""
    return steps if index % 2 == 0 else list(reversed(steps))


def write(name, figures):
    REPORTS.mkdir(parents=True, exist_ok=True)
    path = REPORTS / f"bench-{name}.json"
    path.write_text(json.dumps(figures, indent=2) + "\n")
    history.keep(name, figures)
    print(f"report {path}; ./dev bench history {name} prints it beside earlier ones")


def write_picture(name, title, unit, rows):
    """One horizontal bar a row, (label, spread), with a whisker from minimum to maximum."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    most = max(row[1]["maximum"] for row in rows) or 1
    left, width, height = 250, 420, 26
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 120}" height="{height * len(rows) + 50}" font-family="sans-serif" font-size="13">',
        f'<text x="8" y="22" font-weight="bold">{title}</text>',
    ]
    for index, (label, figures) in enumerate(rows):
        top = 38 + index * height
        scale = width / most
        lines += [
            f'<text x="{left - 8}" y="{top + 13}" text-anchor="end">{label}</text>',
            f'<rect x="{left}" y="{top}" width="{figures["median"] * scale:.1f}" height="16" fill="#4a7ebb"/>',
            f'<line x1="{left + figures["minimum"] * scale:.1f}" x2="{left + figures["maximum"] * scale:.1f}" y1="{top + 8}" y2="{top + 8}" stroke="#222"/>',
            f'<text x="{left + figures["maximum"] * scale + 6:.1f}" y="{top + 13}">{figures["median"]:.4g} {unit}</text>',
        ]
    path = REPORTS / f"bench-{name}.svg"
    path.write_text("\n".join([*lines, "</svg>", ""]))
    print(f"picture {path}")
