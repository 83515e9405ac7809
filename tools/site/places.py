"""Where a file of the repository stands in the site: pages of docs/ as there, others below project/."""

import posixpath
import re
from pathlib import Path

import reference

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<=\]\()([^)\s]+)(?=\))")
# Pages that the site has, whether or not another one leads to them, by their titles in the navigation.
PROJECT = {
    "README.md": "README",
    "CHANGELOG.md": "Changelog",
    "CONTRIBUTING.md": "Contributing",
    "SECURITY.md": "Security",
    "RELEASING.md": "Releasing",
    "MAINTAINERS.md": "Maintainers",
    "CODE_OF_CONDUCT.md": "Code of conduct",
}
_FOLDER = "project"
_DOCS = "docs"


def path_of_link(target: str, page: str) -> str | None:
    """The path in the repository to which a link of the page leads; None if it leads elsewhere or nowhere."""
    path = target.partition("#")[0]
    if not path or "://" in path:
        return None
    found = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
    return found if not found.startswith("..") and (ROOT / found).exists() else None


def place_of(path: str) -> str:
    """The name in the site of the page that shows a file or a folder of the repository."""
    header = path.removeprefix("include/fccl/")
    if path.startswith("include/fccl/") and header in reference.PAGES:
        return reference.PAGES[header][0]
    is_folder = (ROOT / path).is_dir()
    if path.startswith(f"{_DOCS}/"):
        return path.removeprefix(f"{_DOCS}/") + ("/index.md" if is_folder else "")
    if is_folder:
        return f"{_FOLDER}/{path}/README.md"
    return f"{_FOLDER}/{path}{'' if path.endswith('.md') else '.md'}"


def with_links_of_site(text: str, page: str) -> str:
    """The text of the repository's page with its links as the site has the pages."""

    def moved(found: re.Match) -> str:
        path = path_of_link(found[1], page)
        if path is None:
            return found[0]
        anchor = "".join(found[1].partition("#")[1:])
        return posixpath.relpath(place_of(path), posixpath.dirname(place_of(page)) or ".") + anchor

    return LINK.sub(moved, text)


def outside() -> list[str]:
    """Files and folders outside docs/ that the site shows."""
    # A folder and its page are one page of the site.
    return sorted({readme_of(path) for path in _shown() if place_of(path).startswith(f"{_FOLDER}/")})


def folders() -> list[str]:
    """Folders of docs/ to which pages lead, and which have no page of their own."""
    of_docs = [path for path in _shown() if path.startswith(f"{_DOCS}/") and (ROOT / path).is_dir()]
    return sorted(path for path in of_docs if not (ROOT / path / "index.md").exists())


def _shown() -> set[str]:
    """Pages of docs/ and of the project, the files and folders to which they lead, and so on."""
    waiting = [*PROJECT, *(str(each.relative_to(ROOT)) for each in (ROOT / _DOCS).rglob("*.md"))]
    seen = set(waiting)
    while waiting:
        page = readme_of(waiting.pop())
        if not page.endswith(".md"):
            continue
        for target in LINK.findall((ROOT / page).read_text()):
            path = path_of_link(target, page)
            if path is not None and path not in seen:
                seen.add(path)
                waiting.append(path)
    return seen


def readme_of(path: str) -> str:
    """The page of a folder, where it has one; a file is its own."""
    page = f"{path}/README.md"
    return page if (ROOT / page).exists() else path
