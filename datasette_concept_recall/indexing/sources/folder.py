"""A folder of files: what is in it, and when it changed."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from fnmatch import fnmatchcase
from functools import lru_cache
from hashlib import blake2b
from itertools import chain, starmap
from pathlib import Path
from typing import Any, overload

from ..extract import extract, is_known, kind_of
from ..failures import SourceUnreachable, Unavailable, Unusable
from ..ids import content_hash
from ..models import Entry, Extracted, Listing, Opened

LARGEST_FILE = 200_000_000
"""Files of more bytes are not read: they would have to fit into memory several times."""

_LATEST = 253_402_300_799
"""The last second of the year 9999: file systems can hold later ones, which are no dates."""

_LEFT_BY_PROGRAMS = frozenset({b"thumbs.db", b"desktop.ini"})
_LEFT_SUFFIXES = frozenset({"tmp", "temp", "swp", "lnk", "url", "part"})
"""Files that programs leave for themselves, in lower case."""


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
        files: list[_Listed] = []
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
            self._sort(found, within, files, folders, unverified)
        files.sort()
        digest = blake2b(b"\0".join(chain.from_iterable(files)), digest_size=16).digest()
        return _FileListing(_Files(files), tuple(unverified), tuple(problems), digest)

    def _sort(
        self,
        found: list[os.DirEntry[bytes]],
        within: bytes,
        files: list[_Listed],
        folders: list[bytes],
        unverified: list[bytes],
    ) -> None:
        is_choosy = bool(self._include or self._exclude)
        for each in found:
            name = each.name
            if name.startswith(b"."):
                continue
            key = within + name
            try:
                if each.is_file(follow_symlinks=False):  # neither a link nor a pipe
                    if _is_document(name) and (not is_choosy or self._is_wanted(key)):
                        status = each.stat(follow_symlinks=False)
                        files.append((key, _fingerprint(status)))
                elif each.is_dir(follow_symlinks=False) and not self._matches(key, self._exclude):
                    folders.append(key + b"/")
            except FileNotFoundError:  # gone since the folder was listed
                continue
            except OSError:
                unverified.append(key)

    def _is_wanted(self, key: bytes) -> bool:
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
        return _fingerprint(status).decode()

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


_Listed = tuple[bytes, bytes]
"""A file that was listed: its key and its fingerprint, neither of which holds a zero byte."""


class _Files(Sequence[Entry]):
    """The entries of files that were listed, each made when it is asked for."""

    def __init__(self, files: list[_Listed]) -> None:
        self.files = files

    def __len__(self) -> int:
        return len(self.files)

    def __iter__(self) -> Iterator[Entry]:
        return starmap(_File, self.files)

    @overload
    def __getitem__(self, index: int) -> Entry: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Entry]: ...

    def __getitem__(self, index: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(index, slice):
            return _Files(self.files[index])
        return _File(*self.files[index])


class _FileListing(Listing):
    """The listing of files, which says what differs without making an entry of each."""

    entries: _Files

    def keys(self) -> Set[bytes]:
        return {key for key, _ in self.entries.files}

    def differing(self, stored: Mapping[bytes, str | None]) -> list[Entry]:
        return [
            _File(key, fingerprint)
            for key, fingerprint in self.entries.files
            if stored.get(key) != fingerprint.decode()
        ]


class _File(Entry):
    """A file that was listed. What does not tell whether it changed is made out when it is asked
    for: of most files nobody does."""

    __slots__ = ()
    locations = ()

    def __init__(self, key: bytes, fingerprint: bytes) -> None:
        _set(self, "key", key)
        _set(self, "fingerprint", fingerprint.decode())

    def __getattr__(self, name: str) -> Any:
        """Makes out what is not there yet."""
        path = _shown(self.key)
        file_name = path.rpartition("/")[2]
        time_ns, _, size = self.fingerprint.partition(":")
        seconds = min(max(0, int(time_ns) // 1_000_000_000), _LATEST)
        _set(self, "title", file_name.rpartition(".")[0] or file_name)
        _set(self, "path", path)
        _set(self, "created_at", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)))
        _set(self, "size", int(size))
        _set(self, "item_table", None)
        _set(self, "is_active", True)
        return object.__getattribute__(self, name)


_set = object.__setattr__  # what is frozen for all others


def _is_document(name: bytes) -> bool:
    """Whether a file of this name, which is not hidden, is read."""
    stem, _, suffix = name.rpartition(b".")
    is_read = _is_read(suffix) if stem else not name.endswith(b"~")
    return is_read and not name.startswith(b"~$") and name.lower() not in _LEFT_BY_PROGRAMS


@lru_cache(maxsize=256)
def _is_read(suffix: bytes) -> bool:
    shown = _shown(suffix).lower()
    return shown not in _LEFT_SUFFIXES and is_known(f"name.{shown}")


_FLAGS = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")
)


def _content_of(path: bytes) -> bytes:
    """The bytes of an ordinary file, which is not a link or a pipe since it was listed."""
    with open(os.open(path, _FLAGS), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise Unavailable("changed", "It is no file any more")
        return file.read(LARGEST_FILE + 1)


def _fingerprint(status: os.stat_result) -> bytes:
    """Of one path: it differs when the time (nanoseconds) or the size (bytes) does."""
    return b"%d:%d" % (status.st_mtime_ns, status.st_size)


def _shown(key: bytes) -> str:
    """A path as it can be stored and shown; bytes that are no text are replaced."""
    return key.decode("utf-8", "replace")


def _unavailable(error: OSError) -> Unavailable:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return Unavailable("not_found", "It is not there any more")
    return Unavailable("not_readable", f"It cannot be read: {error.strerror}")
