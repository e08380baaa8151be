"""The kinds of sources, one module each."""

from __future__ import annotations
