"""The panels of the dashboards of deploy/metrics, and the queries of each as Prometheus is asked them."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "metrics" / "dashboards"


@dataclass(frozen=True)
class Panel:
    """A panel, by its dashboard's file and its title, and its queries with all variables at All."""

    file: str
    title: str
    queries: list[str]

    @property
    def name(self) -> str:
        """How people know the panel."""
        return f"{self.file}: {self.title}"


def panels_of(file: Path) -> list[Panel]:
    """The panels of a dashboard; ValueError if a query names a variable that the dashboard lacks."""
    dashboard = json.loads(file.read_text())
    variables = {each["name"]: each.get("allValue", "") for each in dashboard["templating"]["list"]}

    def filled(query: str) -> str:
        for name in re.findall(r"\$(\w+)", query):
            if not variables.get(name):
                raise ValueError(f"{file.name}: the query {query} names {name}, which is no variable of All")
        return re.sub(r"\$(\w+)", lambda found: variables[found[1]], query)

    return [
        Panel(file.stem, each["title"], [filled(target["expr"]) for target in each["targets"]])
        for each in dashboard["panels"]
    ]


def all_panels() -> list[Panel]:
    """The panels of every dashboard."""
    return [panel for file in sorted(FOLDER.glob("*.json")) for panel in panels_of(file)]
