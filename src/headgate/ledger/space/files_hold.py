"""Whether the files of a log are held for a backup.

While they are, maintenance deletes no segment and punches no holes, and no rewriting begins: the
backup reads them. Segments are sealed and checkpoints written as always, which changes no byte that
the backup reads. The disk matters more than a backup: a full one ends the hold.
"""

from __future__ import annotations

from headgate.base.errors import invariant


class FilesHold:
    """The hold of one backup on the files of one log."""

    def __init__(self) -> None:
        self.is_held = False
        self.lost = ""
        """Why the last hold ended before its backup; empty if it did not."""

    def begin(self) -> None:
        """Hold the files. One backup at a time."""
        invariant(not self.is_held, "the files of a log are held twice")
        self.is_held, self.lost = True, ""

    def lose(self, reason: str) -> None:
        """End the hold because something else needs the files' room."""
        if self.is_held:
            self.is_held, self.lost = False, reason

    def end(self) -> str:
        """End the hold. Returns :attr:`lost`. A second call changes nothing."""
        self.is_held = False
        return self.lost
