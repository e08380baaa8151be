"""A folder of files: what is in it, and when it changed."""

from __future__ import annotations

import os
import re
import stat
import time
from fnmatch import fnmatchcase
from pathlib import Path

from ..extract import extract, is_known, kind_of
from ..failures import SourceUnreachable, Unavailable, Unusable
from ..ids import content_hash
from ..models import Entry, Extracted, Listing, Opened

LARGEST_FILE = 200_000_000
"""Files of more bytes are not read: they would have to fit into memory several times."""

_LATEST = 253_402_300_799
"""The last second of the year 9999: file systems can hold later ones, which are no dates."""

_is_passed_over = re.compile(
    r"~\$.*|\.~lock\..*|.*\.(tmp|temp|swp|lnk|url|part)|.*~|thumbs\.db|desktop\.ini", re.DOTALL
).fullmatch
"""Names of files that programs leave for themselves, in lower case."""


class FolderSource:
    """The files of a folder and the folders in it. Keys are paths within it, as bytes.

    ``include`` and ``exclude`` are patterns such as ``*.md`` or ``drafts/*``: one with a slash is
    for the whole path, another for the name of a file or of a folder on the way to it. Links,
    hidden files and what is no document by its name are passed over.
    """

    def __init__(
        self, root: Path, include: tuple[str, ...] = (), exclude: tuple[str, ...] = ()
    ) -> None:
        self._root = os.fsencode(root)
        self._include, self._exclude = include, exclude

    def listing(self) -> Listing:
        """All files, in the order of their paths. Raises `SourceUnreachable`."""
        if not os.path.isdir(self._root):
            raise SourceUnreachable(f"There is no folder {os.fsdecode(self._root)}")
        entries: list[Entry] = []
        unverified: list[bytes] = []
        problems: list[str] = []
        folders = [b""]
        while folders:
            within = folders.pop()
            try:
                found = list(os.scandir(os.path.join(self._root, within)))
            except OSError as error:
                if not within:
                    raise SourceUnreachable(
                        f"{os.fsdecode(self._root)} cannot be read: {error.strerror}"
                    ) from error
                unverified.append(within)
                problems.append(f"{_shown(within)} cannot be read: {error.strerror}")
                continue
            self._sort(found, within, entries, folders, unverified)
        entries.sort(key=lambda entry: entry.key)
        return Listing(entries, tuple(unverified), tuple(problems))

    def _sort(
        self,
        found: list[os.DirEntry[bytes]],
        within: bytes,
        entries: list[Entry],
        folders: list[bytes],
        unverified: list[bytes],
    ) -> None:
        for each in found:
            if each.name.startswith(b"."):
                continue
            key = within + each.name
            try:
                if each.is_symlink():
                    continue
                if each.is_dir(follow_symlinks=False):
                    if not self._matches(key, self._exclude):
                        folders.append(key + b"/")
                elif self._is_wanted(key, path := _shown(key)):
                    status = each.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode):
                        entries.append(_entry(key, path, status))
            except FileNotFoundError:  # gone since the folder was listed
                continue
            except OSError:
                unverified.append(key)

    def _is_wanted(self, key: bytes, path: str) -> bool:
        name = path.rpartition("/")[2].lower()
        if not is_known(name) or _is_passed_over(name):
            return False
        if self._include and not self._matches(key, self._include):
            return False
        return not self._matches(key, self._exclude)

    def _matches(self, key: bytes, patterns: tuple[str, ...]) -> bool:
        if not patterns:
            return False
        path = _shown(key)
        parts = path.split("/")
        return any(
            fnmatchcase(path, pattern.strip("/"))
            if "/" in pattern.strip("/")
            else any(fnmatchcase(part, pattern.strip("/")) for part in parts)
            for pattern in patterns
        )

    def fingerprint(self, entry: Entry) -> str | None:
        """The fingerprint of a file as it is now, None when it is gone."""
        try:
            status = os.lstat(os.path.join(self._root, entry.key))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _unavailable(error) from error
        return _fingerprint(status)

    def read(self, entry: Entry) -> Opened:
        """The content of a file. Raises `DocumentFailure`."""
        if entry.size > LARGEST_FILE:
            raise Unusable("too_large", f"It has more than {LARGEST_FILE:,} bytes")
        try:
            data = _content_of(os.path.join(self._root, entry.key))
        except OSError as error:
            raise _unavailable(error) from error
        name = _shown(entry.key).rpartition("/")[2]

        def extracted() -> Extracted:
            return extract(name, data)

        return Opened(content_hash(data), kind_of(name), extracted)


def _content_of(path: bytes) -> bytes:
    """The bytes of an ordinary file, which is not a link or a pipe since it was listed."""
    flags = (getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
    with open(os.open(path, os.O_RDONLY | sum(flags)), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise Unavailable("changed", "It is no file any more")
        return file.read(LARGEST_FILE + 1)


def _entry(key: bytes, path: str, status: os.stat_result) -> Entry:
    name = path.rpartition("/")[2]
    return Entry(
        key=key,
        title=name.rpartition(".")[0] or name,
        fingerprint=_fingerprint(status),
        path=path,
        created_at=time.strftime(
            "%Y-%m-%dT%H:%M:%SZ", time.gmtime(min(max(0, status.st_mtime), _LATEST))
        ),
        size=status.st_size,
    )


def _fingerprint(status: os.stat_result) -> str:
    """Of one path: it differs when the time or the size does."""
    return f"{status.st_mtime_ns}:{status.st_size}"


def _shown(key: bytes) -> str:
    """A path as it can be stored and shown; bytes that are no text are replaced."""
    return key.decode("utf-8", "replace")


def _unavailable(error: OSError) -> Unavailable:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return Unavailable("not_found", "It is not there any more")
    return Unavailable("not_readable", f"It cannot be read: {error.strerror}")
