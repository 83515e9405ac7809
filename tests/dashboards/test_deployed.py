"""The files of deploy/metrics: promtool takes them, and they name metrics that there are."""

import json
import re
import subprocess

import exporters
import panels
import picture
import pytest
from conftest import DEPLOYED, ROOT
from prometheus import TARGETS, configuration

FILES = sorted((DEPLOYED / "dashboards").glob("*.json"))
METRIC = re.compile(r"\b(fccl_\w+|fccl:\w+(?::\w+)?|DCGM_\w+|node_amazonefa_\w+)")
SUFFIX = re.compile(r"_(bucket|sum|count)$")


def run(promtool, *words):
    return subprocess.run([promtool, *words], cwd=DEPLOYED, capture_output=True, text=True)


@pytest.mark.parametrize(
    "words",
    [
        ["check", "config", "prometheus.yml"],
        ["check", "rules", "rules.yml"],
        ["test", "rules", "rules_test.yml"],
    ],
)
def test_promtool_takes_the_files(promtool, words):
    said = run(promtool, *words)
    assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("> 10", "> 60"),
        ("> 0.2", "> 0.6"),
        ('kind!="aborted"', 'kind!="remote"'),
        ("0.5 *", "0.1 *"),
        ("- 1, 1", ", 1"),
    ],
)
def test_the_tests_of_the_rules_find_a_rule_that_was_altered(promtool, tmp_path, before, after):
    rules = (DEPLOYED / "rules.yml").read_text()
    assert before in rules
    (tmp_path / "rules.yml").write_text(rules.replace(before, after))
    (tmp_path / "rules_test.yml").write_text((DEPLOYED / "rules_test.yml").read_text())
    said = subprocess.run([promtool, "test", "rules", "rules_test.yml"], cwd=tmp_path, capture_output=True)
    assert said.returncode != 0


def known_metrics():
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    rules = (DEPLOYED / "rules.yml").read_text()
    return {
        *re.findall(r"^\| `(fccl_\w+)` \|", page, re.M),
        *re.findall(r"record: (\S+)", rules),
        *exporters.DCGM_FIELDS,
        *(f"node_amazonefa_{counter}" for counter in exporters.EFA_COUNTERS),
    }


@pytest.mark.parametrize("file", [*FILES, DEPLOYED / "rules.yml"], ids=lambda file: file.name)
def test_every_metric_that_a_file_asks_for_is_one_that_there_is(file):
    known = known_metrics()
    asked = {SUFFIX.sub("", name) if name not in known else name for name in METRIC.findall(file.read_text())}
    asked -= {"fccl_gpu", "fccl_efa"}
    assert asked, f"{file.name} asks for nothing"
    assert asked <= known


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_panels_have_names_of_their_own_and_do_not_overlap(file):
    found = json.loads(file.read_text())["panels"]
    assert len({each["id"] for each in found}) == len({each["title"] for each in found}) == len(found)
    cells = [
        (x, y)
        for each in found
        for x in range(each["gridPos"]["x"], each["gridPos"]["x"] + each["gridPos"]["w"])
        for y in range(each["gridPos"]["y"], each["gridPos"]["y"] + each["gridPos"]["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24


def test_a_query_that_names_no_variable_of_its_dashboard_is_refused(tmp_path):
    dashboard = json.loads(FILES[0].read_text())
    dashboard["panels"][0]["targets"][0]["expr"] = 'up{job=~"$nobody"}'
    altered = tmp_path / "altered.json"
    altered.write_text(json.dumps(dashboard))
    with pytest.raises(ValueError, match=r"names nobody, which is no variable"):
        panels.panels_of(altered)


def test_the_configuration_is_the_deployed_one_with_other_targets():
    text = configuration({"fccl": [1, 2], "dcgm": [3], "efa": [4]}, "1s")
    assert '["127.0.0.1:1", "127.0.0.1:2"]' in text
    assert not any(place in text for place in TARGETS.values())
    assert text.count("_interval: 1s") == 2


def test_a_chart_has_a_line_for_each_series_from_corner_to_corner():
    series = [
        {"metric": {"job": "j", "peer": str(peer)}, "values": [[10, "0"], [20, str(5 * peer)]]}
        for peer in (1, 2)
    ]
    drawn = picture.chart("a < b", series)
    assert "a &lt; b" in drawn
    assert re.findall(r'points="([^"]+)"', drawn) == ["70.0,220.0 620.0,130.0", "70.0,220.0 620.0,40.0"]
    assert ">peer 2<" in drawn


def test_a_chart_without_series_is_an_empty_one():
    assert "polyline" not in picture.chart("nothing", [])
