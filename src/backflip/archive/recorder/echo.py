"""What the program prints, shown on where our own output goes; never a reason to stop recording."""

import os
from collections.abc import Mapping
from typing import final

from backflip.archive.recorder.lines import StreamName


@final
class Echo:
    """Writes to descriptors as far as somebody takes it."""

    def __init__(self, descriptors: Mapping[StreamName, int]) -> None:
        """Show each stream on its descriptor."""
        self._descriptors = dict(descriptors)
        self.problems: dict[StreamName, str] = {}

    def write(self, stream: StreamName, data: bytes) -> None:
        """Show bytes, if there is still somebody to see them."""
        rest = memoryview(data)
        try:
            while rest and stream in self._descriptors:
                rest = rest[os.write(self._descriptors[stream], rest) :]
        except BrokenPipeError:
            del self._descriptors[stream]  # as with `| head`: who reads has had enough
        except OSError as error:
            self.problems[stream] = str(error.strerror)
