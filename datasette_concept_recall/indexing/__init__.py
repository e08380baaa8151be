"""The index: folders, mailboxes and rows as documents, cut into chunks that recall finds."""

from __future__ import annotations
