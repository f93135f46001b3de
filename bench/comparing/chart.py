"""The chart: a bar for each server in each column, on a logarithmic scale."""

import math
from html import escape

COLOURS = {
    "echo": "#c9c9c9",
    "pinpriq-memory": "#d1495b",
    "pinpriq-done-memory": "#e58a96",
    "pinpriq-tubes-memory": "#d98a3d",
    "redis-pop-memory": "#8fb8de",
    "redis-lease-memory": "#3f78b5",
    "beanstalkd-memory": "#9ac28a",
    "pinpriq-sync": "#8c1c2f",
    "pinpriq-done-sync": "#b3596a",
    "pinpriq-tubes-sync": "#8f5420",
    "redis-pop-sync": "#6c93b5",
    "redis-lease-sync": "#1f4e79",
    "beanstalkd-sync": "#4d8a3c",
}
BAR, GAP, HEIGHT, LEFT, TOP = 14, 26, 320, 86, 30
FONT = 'font-family="sans-serif" font-size="12"'


def svg(medians):
    cells = [(row, column, medians.jobs(row, column))
             for row in medians.rows for column in medians.columns]
    known = [jobs for _, _, jobs in cells if jobs]
    if not known:
        return '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>\n'
    low, high = math.floor(math.log10(min(known))), math.ceil(math.log10(max(known)))
    high = max(high, low + 1)

    def y(jobs):
        return TOP + HEIGHT * (1 - (math.log10(jobs) - low) / (high - low))

    group = BAR * len(medians.rows) + GAP
    width = LEFT + group * len(medians.columns)
    legend_top = TOP + HEIGHT + 45
    height = legend_top + 20 * len(medians.rows) + 5
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" {FONT}>',
             f'<rect width="{width}" height="{height}" fill="white"/>',
             f'<text x="{LEFT}" y="18">jobs per second, logarithmic</text>']
    for power in range(low, high + 1):
        at = y(10 ** power)
        lines.append(f'<line x1="{LEFT}" x2="{width}" y1="{at:.1f}" y2="{at:.1f}" '
                     'stroke="#dddddd"/>')
        lines.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">'
                     f'{10 ** power:,}</text>')
    for index, column in enumerate(medians.columns):
        left = LEFT + group * index + GAP / 2
        for place, row in enumerate(medians.rows):
            jobs = medians.jobs(row, column)
            if jobs:
                top = y(jobs)
                lines.append(
                    f'<rect x="{left + BAR * place:.1f}" y="{top:.1f}" width="{BAR - 2}" '
                    f'height="{TOP + HEIGHT - top:.1f}" fill="{COLOURS[row.name]}">'
                    f'<title>{escape(plain(row))}, {column[0]} × {column[1]}: {jobs:,.0f}</title>'
                    '</rect>')
        middle = left + BAR * len(medians.rows) / 2
        lines.append(f'<text x="{middle:.1f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">'
                     f'{column[0]} × {column[1]}</text>')
    for place, row in enumerate(medians.rows):
        top = legend_top + 20 * place
        lines.append(f'<rect x="{LEFT}" y="{top}" width="12" height="12" '
                     f'fill="{COLOURS[row.name]}"/>')
        lines.append(f'<text x="{LEFT + 20}" y="{top + 11}">{escape(plain(row))}</text>')
    return "\n".join([*lines, "</svg>", ""])


def plain(row):
    return row.title.replace("*", "")
