"""The text of a document, filtered on its way into chunks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..rendering import RecordText
from .failures import DocumentFailure, Unavailable, Unusable
from .generations import Redaction
from .models import Extracted, Segment, storable
from .places import describe
from .sanitise import Report, sanitised

LARGEST_TEXT = 50_000_000
"""Characters of one document: what unpacks to more was made to."""


@dataclass
class DocumentText:
    """The text of a document, gathered while it is cut, and what the filter took out of it;
    ``record`` is what is known of it besides."""

    extracted: Extracted
    record: RecordText
    report: Report = field(default_factory=Report)
    parts: list[str] = field(default_factory=list)
    length: int = 0

    @property
    def title(self) -> str | None:
        """What the document calls itself, if anything."""
        return storable(self.extracted.title) if self.extracted.title else None

    def segments(self) -> Iterator[Segment]:
        """The segments, filtered. An error of the filter lets no text pass."""
        filtered = sanitised(self._read(), self.report)
        while True:
            try:
                segment = next(filtered, None)
            except DocumentFailure:
                raise
            except Exception as error:
                raise Unavailable("filter", f"The filter failed: {error}") from error
            if segment is None:
                return
            self.length += len(segment.text)
            if self.length > LARGEST_TEXT:
                raise Unusable("too_large", f"Its text has more than {LARGEST_TEXT:,} characters")
            self.parts.append(segment.text)
            yield segment

    def _read(self) -> Iterator[Segment]:
        """What the extractor gives; what it raises that is no failure of a document is its own."""
        try:
            for segment in self.extracted.segments:
                yield segment._replace(text=storable(segment.text))
        except (DocumentFailure, GeneratorExit):
            raise
        except Exception as error:
            raise Unavailable("internal", f"The file could not be read: {error}") from error

    def redactions(self) -> list[Redaction]:
        """What was taken out, for the report of the document."""
        return [
            Redaction(finding.family, describe(finding.place), finding.removed)
            for finding in self.report.findings
        ]
