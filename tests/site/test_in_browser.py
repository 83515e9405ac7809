"""The site as its readers see it: pages open without an error, and search finds."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, address_of, serve

pytestmark = pytest.mark.slow
PICTURES = ROOT / "build" / "site-pictures"
HITS = "[...document.querySelectorAll('.md-search-result__link')].map(each => each.getAttribute('href'))"


@pytest.mark.parametrize(
    ("page", "title", "text"),
    [
        ("", "FCCL", "Tutorials: learn by doing"),
        ("tutorials/fsdp2_on_one_host/", "Train with FSDP2 on one host - FCCL", "torchrun"),
        ("reference/c_functions/#fcclCommShrink", "C functions - FCCL", "excludeRanksCount"),
        ("reference/cpp_functions/#fccl::Communicator", "C++ functions - FCCL", "all_reduce"),
        ("reference/python_functions/", "Python functions - FCCL", "fccl.use_arena"),
        ("reference/environment/", None, "FCCL_TIMEOUT"),
    ],
)
def test_a_page_opens_with_its_title_and_no_error(window, address, page, title, text):
    window.open(f"{address}/{page}")
    assert title is None or window.ask("document.title") == title
    assert text in window.ask("document.querySelector('article').innerText")
    name = page.partition("#")[0].strip("/").replace("/", "_") or "index"
    window.picture(PICTURES / f"{name}.png")
    assert window.faults == []


@pytest.mark.parametrize(
    ("words", "hit"),
    [
        ("fcclCommShrink", "reference/c_functions/#fcclCommShrink"),
        ("all_to_all_v", "reference/cpp_functions/#fccl::Communicator::all_to_all_v"),
        ("use_arena", "reference/python_functions/#fccl.use_arena"),
        ("FCCL_TIMEOUT", "reference/environment/"),
        ("elastic", "how_to/elastic/"),
    ],
)
def test_a_search_finds_the_page_of_a_word(window, address, words, hit):
    window.open(f"{address}/?q={words}")
    found = window.wait_for(f"{HITS}.length > 0 && {HITS}")
    window.picture(PICTURES / f"search_{words}.png")
    assert any(hit in each.split("?")[0] + each[each.find("#") :] for each in found[:8]), found
    assert window.faults == []


def test_a_page_that_fetches_from_elsewhere_or_fails_is_a_fault(window, tmp_path):
    script = "console.error('broken'); fetch('http://elsewhere.invalid/font.woff')"
    page = f"<!doctype html><link rel=icon href='data:,'><script>{script}</script>"
    (tmp_path / "index.html").write_text(page)
    server = serve(tmp_path)
    window.open(address_of(server))
    assert any("broken" in each for each in window.faults)
    assert any(each.startswith("fetched from elsewhere: http://elsewhere.invalid") for each in window.faults)
    server.shutdown()


def test_mike_adds_a_version_that_the_page_lets_its_reader_choose(window, tmp_path):
    clone = tmp_path / "clone"
    copy_of_sources(clone)
    identity = {f"GIT_{who}_{what}": "test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = os.environ | identity | {"NO_MKDOCS_2_WARNING": "1"}
    environment["PATH"] = f"{ROOT / 'build/site-venv/bin'}:{environment['PATH']}"

    def run(*words):
        ended = subprocess.run(words, cwd=clone, env=environment, capture_output=True, text=True, timeout=300)
        assert ended.returncode == 0, ended.stdout + ended.stderr

    run("git", "init", "--quiet", "--initial-branch=main")
    run("git", "commit", "--quiet", "--allow-empty", "--message=all")
    for words in (["0.1"], ["--update-aliases", "0.2", "latest"]):
        run("mike", "deploy", "--config-file", "tools/site/mkdocs.yml", *words)
    run("mike", "set-default", "--config-file", "tools/site/mkdocs.yml", "latest")
    run("bash", "-c", "mkdir published && git archive gh-pages | tar -x -C published")
    server = serve(clone / "published")
    window.open(f"{address_of(server)}/0.2/")
    assert window.wait_for("document.querySelector('.md-version__current')?.innerText") == "0.2"
    links = "[...document.querySelectorAll('.md-version__link')].map(each => each.innerText.trim())"
    assert window.ask(links) == ["0.2", "0.1"]
    window.picture(PICTURES / "versions.png")
    assert window.faults == []
    server.shutdown()


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A clean one, with the packages, which alone may come from the network."""
    folder = tmp_path_factory.mktemp("clean") / "checkout"
    copy_of_sources(folder)
    (folder / "build").mkdir()
    (folder / "build/site-venv").symlink_to(ROOT / "build/site-venv")
    return folder


def dev_docs(checkout, *before):
    words = [*before, "./dev", "docs"]
    return subprocess.run(words, cwd=checkout, capture_output=True, text=True, timeout=300)


def test_a_clean_checkout_makes_the_site_without_a_network(checkout):
    if os.geteuid() != 0:
        pytest.skip("only root may take the network away from a command")
    ended = dev_docs(checkout, "unshare", "--net")
    assert ended.returncode == 0, ended.stderr
    assert " 0 broken" in ended.stderr
    assert (checkout / "build/site/reference/c_functions/index.html").exists()


def test_a_broken_link_of_a_page_fails_the_build(checkout):
    with (checkout / "docs/how_to/install.md").open("a") as page:
        page.write("[here](nowhere.md)\n")
    ended = dev_docs(checkout)
    assert ended.returncode == 1
    assert "'how_to/install.md' contains a link 'nowhere.md'" in ended.stderr


def copy_of_sources(folder: Path) -> None:
    """The files that git has or would have."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
