"""torch's own suite for process groups ends as docs/reference/torch_suites.md says."""

import pytest
import torch
import torch_suite_page as page

THIS = page.minor(torch.__version__)


@pytest.mark.slow
@pytest.mark.every_torch
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("run", ["fccl", "gloo, replaced"], ids=["as_fccl", "as_gloo"])
def test_the_distributed_tests_of_torch_end_as_the_page_says(run):
    noted = page.recorded()[THIS]
    report = page.run_suite(run)
    for name, text in sorted(report["failed"].items()):
        print(f"failed: {name}: {text}")
    assert page.summary_of(report) == noted[run]
    assert report["failed"].keys() <= page.REASONS.keys(), (
        "a test fails for a reason that nobody has written down"
    )


def test_under_its_name_fccl_passes_as_many_as_gloo_but_for_those_that_look_for_it():
    for version, runs in page.recorded().items():
        replaced, gloo = runs["gloo, replaced"], runs["Gloo itself"]
        assert replaced["passed"] + len(replaced["failed"]) >= gloo["passed"], version
        assert replaced["failed"].keys() <= page.REASONS.keys(), version


def test_the_page_shows_what_was_noted():
    assert page.PAGE.read_text() == page.page_of(page.recorded()), f"run {page.__file__} --only-page"
