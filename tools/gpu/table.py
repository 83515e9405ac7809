"""The one table of all rows: of each probe its cases, and of each case its rows."""

from itertools import groupby
from operator import itemgetter

WIDTH_OF_WHAT = 72
WIDTH_OF_WHERE = 34


def text(rows: list[dict]) -> str:
    """Lines without trailing spaces; the note of a row stands at its end."""
    lines = []
    for (probe, question, case), together in groupby(rows, key=itemgetter("probe", "question", "case")):
        heading = probe if question is None else f"{probe} (question {question})"
        lines.append(f"{heading}: {case}" if case else heading)
        lines += [line_of(row) for row in together]
    return "\n".join(lines)


def line_of(row: dict) -> str:
    """One line of the table: the question, the answer, and the note."""
    answer = row["verdict"] if row["value"] is None else f"{number(row['value'])} {row['unit']}"
    where = where_of(row)
    line = f"  {row['what']:<{WIDTH_OF_WHAT}}  {answer:<20}  {where:<{WIDTH_OF_WHERE}}  {row['note']}"
    return line.rstrip()


def where_of(row: dict) -> str:
    """The place that the row names, else the GPU, without what comes behind its name, and who shared it."""
    if row.get("where"):
        return row["where"]
    gpu = (row.get("gpu") or "").partition(",")[0][:24]
    count = row.get("ranks_per_gpu")
    return f"{gpu}, {count} {row['ranks_are']}" if count else gpu


def number(value: float) -> str:
    """Four digits, and all of a whole number."""
    return f"{value:.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.4g}"
