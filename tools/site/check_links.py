"""Reads a site: each link must lead to a page and an anchor there, and nothing may come from elsewhere."""

import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser fetches without a click.
_FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
_NOT_OF_THE_SITE = ("http", "https", "mailto", "javascript")


class Page(HTMLParser):
    """The links, the anchors and what a browser fetches of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = set()
        self.headings: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if "id" in values:
            self.anchors.add(values["id"])
            if tag in ("h1", "h2", "h3", "h4"):
                self.headings.add(values["id"])
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in _FETCHED and values.get(_FETCHED[tag]) and values.get("rel") != "canonical":
            self.fetched.append(values[_FETCHED[tag]])


@cache
def read(file: Path) -> Page:
    """The page that a file holds."""
    return Page(file.read_text())


def pages_of(site: Path) -> list[Path]:
    """The pages of a site; the one for what is not there has links that only its server understands."""
    return sorted(file for file in site.rglob("*.html") if file.name != "404.html")


def faults(site: Path) -> Iterator[str]:
    """A sentence for each link that leads nowhere, and for each thing that is fetched from elsewhere."""
    for file in pages_of(site):
        page = read(file)
        for link in page.links:
            if why := _wrong_with(link, file):
                yield f"{file.relative_to(site)} links to {link}: {why}"
        for link in page.fetched:
            if urlsplit(link).netloc:
                yield f"{file.relative_to(site)} fetches {link} from elsewhere"
            elif why := _wrong_with(link, file):
                yield f"{file.relative_to(site)} fetches {link}: {why}"


def _wrong_with(link: str, file: Path) -> str:
    parts = urlsplit(link)
    if parts.scheme in _NOT_OF_THE_SITE:
        return ""
    target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return "there is no such file"
    if parts.fragment and unquote(parts.fragment) not in read(target).anchors:
        return "the page has no such anchor"
    return ""


def main(words: list[str]) -> int:
    """Prints the faults of the site in the folder that is named, and counts its pages and links."""
    site = Path(words[0])
    found = list(faults(site))
    print("\n".join(found), end="\n" if found else "")
    pages = [read(file) for file in pages_of(site)]
    print(f"{len(pages)} pages, {sum(len(page.links) for page in pages)} links, {len(found)} broken")
    return 1 if found or not pages else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
