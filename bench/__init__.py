"""Measurements of the plugin beside what people would use instead; see ``make bench``.

Run from the top of the repository: ``python -m bench.matching``, ``python -m bench.http``, with
``--smoke`` for the smallest sizes and ``--full`` for the largest.
"""

from __future__ import annotations
