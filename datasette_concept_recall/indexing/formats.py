"""Which files are read, told from their names: suffix to format, and what is never read."""

from __future__ import annotations

from typing import Literal

from .failures import Unusable

_MARKDOWN = "md markdown mdown mkd mkdn"
_NOTES = "txt text rst org adoc asciidoc textile tex"
_TEXTS = (
    "log srt vtt bib diff patch po pot ics py pyi pyx js mjs cjs jsx ts tsx vue svelte c h cc cpp "
    "cxx hh hpp cs m mm rs go java kt kts scala groovy gradle swift dart rb php pl pm lua r jl hs "
    "ml mli fs fsx ex exs erl clj cljs lisp el scm f f90 f95 pas vb asm s sh bash zsh fish ps1 bat "
    "cmd awk sed sql json jsonl ndjson geojson yaml yml toml ini cfg conf properties xml xsd xsl "
    "css scss sass less graphql proto tf hcl cmake mk make dockerfile jinja j2"
)
FORMATS: dict[str, str] = {
    **dict.fromkeys(_MARKDOWN.split(), "markdown"),
    **dict.fromkeys(_NOTES.split(), "text"),
    **dict.fromkeys(_TEXTS.split(), "text"),
    **{suffix: suffix for suffix in ["csv", "tsv", "xlsx", "xls", "ods", "docx", "pptx", "pdf"]},
    "tab": "tsv",
    "xlsm": "xlsx",
    **dict.fromkeys(("html", "htm", "xhtml"), "html"),
}
"""Suffix (lower case, without its dot) to the name of the format it is read as."""

_UNREAD: dict[str, str] = {
    suffix: what
    for what, suffixes in {
        "an image": "png jpg jpeg gif bmp tif tiff webp heic heif avif ico svg psd ai eps raw cr2 "
        "nef dng xcf indd",
        "an audio file": "mp3 wav flac ogg oga opus m4a aac wma aiff aif mid midi amr",
        "a video": "mp4 m4v mkv webm avi mov wmv flv mpg mpeg 3gp ogv mts m2ts",
        "an archive": "zip tar gz tgz bz2 tbz2 xz txz zst lz4 7z rar jar war whl iso dmg cab cpio",
        "a document of a format that is not read": "doc dot docm dotx rtf odt odp odg ppt pps pptm "
        "ppsx potx xlsb pages numbers key epub mobi azw3 djvu ps xps",
    }.items()
    for suffix in suffixes.split()
}
_EXECUTABLE = "exe dll so dylib com scr msi sys elf o a lib class pyc wasm"

_EXECUTABLE_BEGINNINGS = (
    b"\x7fELF",
    b"\xfe\xed\xfa\xce",  # Mach-O, in either width and byte order …
    b"\xfe\xed\xfa\xcf",
    b"\xce\xfa\xed\xfe",
    b"\xcf\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",  # … and for several processors; a class of Java begins alike
    b"\x00asm",
)


def suffix_of(name: str) -> str:
    """The suffix of a file name in lower case and without its dot, ``""`` where there is none."""
    stem, _, suffix = name.rpartition("/")[2].rpartition(".")
    return suffix.lower() if stem else ""


def is_known(name: str) -> bool:
    """Whether a file of this name is worth reading; without a suffix its content decides later."""
    suffix = suffix_of(name)
    return not suffix or suffix in FORMATS


def kind_of(name: str) -> Literal["note", "file"]:
    """What recall calls a file of this name: a note is Markdown or plain prose."""
    suffix = suffix_of(name)
    return "note" if not suffix or suffix in f"{_MARKDOWN} {_NOTES}".split() else "file"


def format_of(name: str, data: bytes) -> str:
    """The format as which a file is to be read, a value of `FORMATS`.

    Raises `Unusable` for executables, for what is never read, and for what is not known.
    """
    suffix = suffix_of(name)
    if suffix in _EXECUTABLE.split() or _is_executable(data):
        raise Unusable("executable", "The file is an executable program")
    if suffix in _UNREAD:
        raise Unusable("unsupported", f"The file is {_UNREAD[suffix]}")
    if suffix in FORMATS:
        return FORMATS[suffix]
    if not suffix and _is_utf8(data):
        return "text"
    raise Unusable("unknown_format", "The name of the file does not tell a format that is read")


def _is_executable(data: bytes) -> bool:
    # A text may begin with MZ too, but has no zero bytes, as the header of a program has.
    is_windows = data.startswith(b"MZ") and b"\0" in data[:1024]
    return is_windows or data.startswith(_EXECUTABLE_BEGINNINGS)


def _is_utf8(data: bytes) -> bool:
    try:
        return "\0" not in data.decode("utf-8")
    except UnicodeDecodeError:
        return False
