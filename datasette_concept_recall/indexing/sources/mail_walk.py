"""Which mail folders there are below a folder, without those of what was thrown away."""

from __future__ import annotations

import os
from pathlib import Path

from .mail_folders import OF_MBOX, Files, Folder, Mbox, is_mbox, reason, storable

# Folders whose mails somebody has thrown away.
_THROWN_AWAY = {"trash", "deleted items", "deleted messages", "junk", "junk e-mail", "spam"}

_OF_MAILDIR = {"cur", "new", "tmp"}


class Walk:
    """The mail folders below a folder, each with its name for people, and what was in the way."""

    def __init__(self, root: Path) -> None:
        self.folders: dict[str, Folder] = {}
        self.problems: list[str] = []
        self.has_mail = False
        pending = [(root, "")]
        while pending:
            path, name = pending.pop()
            try:
                children = self._visit(path, name)
            except OSError as error:
                self.problems.append(f"A folder could not be looked into: {reason(error)}")
            else:
                pending.extend(reversed(children))
        self.has_mail = self.has_mail or bool(self.folders)

    def _visit(self, path: Path, name: str) -> list[tuple[Path, str]]:
        """Notes what mails are right here, and gives the folders to visit next."""
        with os.scandir(path) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
        folders = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
        is_maildir = any(entry.name in _OF_MAILDIR for entry in folders)
        if is_maildir:
            self._found(name or "INBOX", Files(path))
            folders = [entry for entry in folders if entry.name not in _OF_MAILDIR]
        else:
            self._files(
                path, name, [each for each in entries if each.is_file(follow_symlinks=False)]
            )
        children = []
        for entry in folders:
            shown = storable(entry.name)
            if is_maildir and shown.startswith("."):
                shown = shown[1:].replace(".", "/")
            if _is_thrown_away(entry.name):
                self.has_mail = True
            else:
                children.append((path / entry.name, f"{name}/{shown}" if name else shown))
        return children

    def _files(self, path: Path, name: str, files: list[os.DirEntry[str]]) -> None:
        """Notes the mbox files of a folder, and the folder itself if it has mails as files."""
        if any(entry.name.lower().endswith(".eml") for entry in files):
            self._found(name or storable(path.name), Files(path, ".eml", ("",)))
        for entry in files:
            if entry.name.lower().endswith(".eml"):
                continue
            try:
                found = is_mbox(Path(entry.path))
            except OSError as error:
                self.problems.append(f"A file could not be looked into: {reason(error)}")
                continue
            if found and _is_thrown_away(entry.name):
                self.has_mail = True
            elif found:
                shown = storable(entry.name)
                self._found(f"{name}/{shown}" if name else shown, Mbox(Path(entry.path)))
            elif Path(entry.name).suffix.lower() in OF_MBOX:
                self.problems.append("A file is called mbox and is none")

    def _found(self, name: str, folder: Folder) -> None:
        """Keeps a folder under its name, which gets a mark where another one has it."""
        while name in self.folders:
            name += "+"
        self.folders[name] = folder


def _is_thrown_away(name: str) -> bool:
    """Whether a folder or one that it is in, by a name such as ``.INBOX.Trash``, is for rubbish."""
    return any(part.strip() in _THROWN_AWAY for part in name.lower().split("."))
