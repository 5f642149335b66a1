"""Names that stand for a moment only: who uses them is alone on the connection meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Naming:
    """Lets statements of several threads run side by side, or one of them alone.

    A frame found in a thread's scope stands under its name while that thread's statement is planned. Another thread's
    statement must not see it, so it waits.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._sharing = 0
        self._alone = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Run beside others."""
        with self._changed:
            while self._alone:
                self._changed.wait()
            self._sharing += 1
        try:
            yield
        finally:
            with self._changed:
                self._sharing -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait for the others, and run without them."""
        with self._changed:
            while self._alone or self._sharing > 0:
                self._changed.wait()
            self._alone = True
        try:
            yield
        finally:
            with self._changed:
                self._alone = False
                self._changed.notify_all()
