"""Chains: no chain of includes is so long that nobody knows what a file rests on."""

from collections.abc import Iterator

from tree import Fault, Tree

LIMIT = 9
# The folders in which the check looks for files that an include names in quotes.
ROOTS = ("src/", "include/")


def faults(tree: Tree) -> Iterator[Fault]:
    known: dict[str, list[str]] = {}
    for path in tree.cpp:
        if path.startswith(ROOTS):
            chain = longest(tree, path, known)
            if len(chain) > LIMIT:
                names = " > ".join(chain)
                yield Fault(path, 1, f"a chain of {len(chain)} files, the limit is {LIMIT}: {names} (chains)")


def longest(tree: Tree, path: str, known: dict[str, list[str]]) -> list[str]:
    """The longest chain of the project's files from this one on, each of which includes the next."""
    if path not in known:
        known[path] = [path]  # a file that includes itself ends the chain
        chains = [longest(tree, file, known) for file in included(tree, path)]
        known[path] = [path, *max(chains, key=len, default=[])]
    return known[path]


def included(tree: Tree, path: str) -> list[str]:
    names = [name for _, quote, name in tree.includes(path) if quote == '"']
    return [root + name for name in names for root in ROOTS if root + name in tree.files]
