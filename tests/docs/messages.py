"""Messages that pages quote, and the texts in the sources that they may be made of."""

import os
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from pages import ROOT

# Files that word errors.
_SOURCES = (
    *("src/**/*.cpp", "src/**/*.h", "include/fccl/*", "plugins/ofi/*.cpp", "torch_backend/csrc/*.cpp"),
    "tools/cluster/*.py",
)
_LITERALS = re.compile(r'(?:(?:R"\((?:.*?)\)"|"(?:[^"\\\n]|\\.)*")\s*)+', re.S)
_LITERAL = re.compile(r'R"\((.*?)\)"|"((?:[^"\\\n]|\\.)*)"', re.S)
_FIELD = re.compile(r"\{[^{}]*\}|%[sud]")
_FENCED = re.compile(r"^ *```.*?^ *```", re.M | re.S)
_LOGGED = re.compile(r"^ {4}\S+ \[\d+\] fccl \w+: (.+)$", re.M)
# A field that is not a message may hold a number, a name of code, an address, a host, a GPU, a file, or a
# shortened part. No common word.
_ATOM = re.compile(r"\.\.\.|\S*[\d_A-Z]\S*|/\S+|(?:\"[^\"]*\")|box|dp|lo|NVIDIA H100")
_SYSTEM = {os.strerror(number) for number in range(1, 134)}
_COMMON = re.compile(r"[a-z]{2,}[,;:.?]?")
# A quotation with fewer words, or with an option, is a name, a value or a command.
_FEWEST_WORDS, _FEWEST_COMMON = 4, 3


def quoted_messages(page: str) -> list[str]:
    """The messages in a page: what stands alone in backticks, and lines of the log."""
    text = _FENCED.sub("", (ROOT / page).read_text())
    quoted = [" ".join(each.split()) for each in re.findall(r"`([^`]+)`", text)]
    return [each for each in quoted if _is_message(each)] + _LOGGED.findall(text)


def _is_message(text: str) -> bool:
    words = text.split()
    common = [word for word in words if _COMMON.fullmatch(word)]
    has_option = any(word.startswith("-") for word in words)
    return len(words) >= _FEWEST_WORDS and len(common) >= _FEWEST_COMMON and not has_option


def texts_of_sources() -> list[str]:
    """Every string in the sources, adjacent ones as one."""
    return [
        text for pattern in _SOURCES for path in ROOT.glob(pattern) for text in _strings(path.read_text())
    ]


def _strings(source: str) -> Iterator[str]:
    code = re.sub(r"^\s*(?://.*|#include.*)$", "", source, flags=re.M)
    for group in _LITERALS.findall(code):
        yield "".join(
            raw or plain.replace('\\"', '"').replace("\\n", "") for raw, plain in _LITERAL.findall(group)
        )


class Sources:
    """Tells whether the sources have the words of a message: formats in each other's fields, and values."""

    def __init__(self, texts: Iterable[str]) -> None:
        """`texts`: strings of the sources, formats among them."""
        formats = {tuple(_FIELD.split(text)) for text in texts if re.search(r"[a-z]{2}|: |\(", text)}
        # The longest piece, which few messages have, and the pieces; what says most is tried first.
        self._formats = sorted(
            ((max(pieces, key=len), pieces) for pieces in formats), key=lambda found: -len(found[0])
        )
        self.have = lru_cache(maxsize=None)(self._have)

    def _have(self, message: str) -> bool:
        if not message.strip() or _ATOM.fullmatch(message.strip()) or message in _SYSTEM:
            return True
        if ", " in message and all(self.have(part) for part in message.split(", ")):
            return True
        return any(
            self._is_made_by(pieces, message)
            for longest, pieces in self._formats
            if longest in message and _occur(pieces, message)
        )

    # Other messages may stand before and behind a text, since sources also join texts by +.
    def _is_made_by(self, pieces: tuple[str, ...], message: str) -> bool:
        first, *others = pieces
        begins = [found.start() for found in re.finditer(re.escape(first), message)] if first else [0]
        return any(
            self._fill(others, message[begin + len(first) :], len(message))
            and (begin == 0 or self.have(message[:begin]))
            for begin in begins
        )

    # The rest of the message is a field, then the next piece, and so on.
    def _fill(self, pieces: list[str], rest: str, whole: int) -> bool:
        if not pieces:
            return not rest or (len(rest) < whole and self.have(rest))
        piece, *others = pieces
        last = not (piece or others)
        ends = [len(rest)] if last else [found.start() for found in re.finditer(re.escape(piece), rest)]
        return any(
            end < whole and self._fill(others, rest[end + len(piece) :], whole) and self.have(rest[:end])
            for end in ends
        )


def _occur(pieces: tuple[str, ...], message: str) -> bool:
    begin = 0
    for piece in pieces:
        begin = message.find(piece, begin)
        if begin < 0:
            return False
        begin += len(piece)
    return True
