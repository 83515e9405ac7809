"""Puts a label before every line that a command writes."""

import os
from collections.abc import Callable


class LabelledOutput:
    """The output of one command, passed on line by line from a pipe to one of our own descriptors.

    `writing` is the command's end of the pipe, to be closed here once the command has it.
    """

    def __init__(self, label: str, target: int) -> None:
        self._label = f"[{label}] ".encode()
        self._target = target
        self._rest = b""
        self.reading, self.writing = os.pipe()

    def pass_on(self, ended: Callable[[], None]) -> None:
        """Writes out the whole lines that have come; at the end of the stream, the last part of one too."""
        piece = os.read(self.reading, 1 << 16)
        lines = (self._rest + piece).split(b"\n")
        self._rest = lines.pop() if piece else b""
        text = b"".join(self._label + line + b"\n" for line in lines if piece or line)
        while text:
            text = text[os.write(self._target, text) :]
        if not piece:
            ended()
            os.close(self.reading)
