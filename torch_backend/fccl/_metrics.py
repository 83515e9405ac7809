"""The library's metrics, read from its text for Prometheus, so that the two always agree."""

import re

from fccl._register import load

_SAMPLE = re.compile(r"(\w+)\{(.*)\} (\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def metrics(host: bool = False) -> dict[str, list[dict]]:
    """The counts of this process so far; with `host`, also those of its group's other ranks on this host.

    By the names of docs/reference/metrics.md; each entry is {"labels": {...}, "value": ...}.
    """
    families: dict[str, list[dict]] = {}
    for line in metrics_text(host).splitlines():
        if line.startswith("# TYPE ") and not line.endswith(" histogram"):
            families.setdefault(line.split(" ")[2], [])
        if sample := _SAMPLE.fullmatch(line):
            name, labels, value = sample.groups()
            plain = {key: _plain(text) for key, text in _LABEL.findall(labels)}
            families.setdefault(name, []).append({"labels": plain, "value": float(value)})
    return families


def metrics_text(host: bool = False) -> str:
    """The same as Prometheus reads it."""
    return load().metrics_text(host)


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
