"""What stands between the index and libraries that read the files of strangers.

Whatever a library raises over a file says that the file is not what it seems to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from .failures import DocumentFailure, Unusable

Item = TypeVar("Item")


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn an exception of a library into `Unusable` with ``invalid`` as the code.

    ``what`` is what is read, with its article. Running out of memory and being interrupted say
    nothing about the file and pass.
    """
    try:
        yield
    except (DocumentFailure, MemoryError):
        raise
    except Exception as error:
        raise _invalid(what, error) from error
    except BaseException as error:
        # Libraries written in Rust panic with this exception, which they do not let anyone import.
        if type(error).__name__ == "PanicException":
            raise _invalid(what, error) from error
        raise


def each(what: str, items: Iterable[Item]) -> Iterator[Item]:
    """The items of a library's iterable, with `reading` around each as it is read."""
    # What goes wrong with an item where it is used is raised there, not here.
    with reading(what):
        yield from items


def _invalid(what: str, error: BaseException) -> Unusable:
    reason = " ".join(str(error).split())[:100]
    return Unusable(
        "invalid", f"This is not {what} that can be read: {reason or type(error).__name__}"
    )
