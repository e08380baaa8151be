"""Promises about the package as a whole: names, hooks, what importing it costs, tests."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module, metadata
from importlib.resources import files
from pathlib import Path

import pytest
from datasette import hookspecs

PACKAGE = "datasette_concept_recall"
ROOT = Path(__file__).parents[1]

PUBLIC_NAMES = [
    "ConceptMatch",
    "ConceptMatcher",
    "ConceptMention",
    "LayerHit",
    "RecallError",
    "RecallResult",
    "RecordText",
    "UnknownProject",
    "embedding_text",
    "frontmatter_prose",
    "match_concept_names",
    "predicate_line",
    "recall_by_concept_names",
    "recall_by_text",
    "word_count",
    "word_match",
]

# Hooks that one supported line of Datasette has and the other has not.
ONLY_BEFORE_1_0 = {"canned_queries", "get_metadata", "permission_allowed", "skip_csrf"}
ONLY_SINCE_1_0 = {
    "actors_from_ids",
    "homepage_actions",
    "jinja2_environment_from_request",
    "jump_items_sql",
    "permission_resources_sql",
    "query_actions",
    "register_actions",
    "register_column_types",
    "register_events",
    "register_token_handler",
    "row_actions",
    "shutdown",
    "top_database",
    "top_homepage",
    "top_query",
    "top_row",
    "top_stored_query",
    "top_table",
    "track_event",
    "view_actions",
    "write_wrapper",
}
# Hooks that other plugins define; they are never called where the other plugin is missing.
OF_OTHER_PLUGINS = {"register_agent_tools", "register_mcp_tools"}

INSTALLED = {name for name, hook in vars(hookspecs).items() if hasattr(hook, "datasette_spec")}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions_in(folder: Path) -> Iterator[tuple[str, Function]]:
    """Every function of every module below a folder, with a label that says where it stands."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
            if isinstance(node, FUNCTIONS):
                yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", node


PACKAGE_FUNCTIONS = list(functions_in(ROOT / PACKAGE))


def hook_name(function: Function) -> str | None:
    """The hook that a function implements, or None for a function that implements none."""
    for decorator in function.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        target = call.func if call else decorator
        if getattr(target, "id", getattr(target, "attr", None)) != "hookimpl":
            continue
        keywords = {k.arg: k.value for k in call.keywords} if call else {}
        specname = keywords.get("specname")
        return specname.value if isinstance(specname, ast.Constant) else function.name
    return None


HOOKS = {label: name for label, node in PACKAGE_FUNCTIONS if (name := hook_name(node))}


def parameters(function: Function) -> set[str]:
    spec = function.args
    given = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg]
    return {each.arg for each in given if each}


def documented_parameters(function: Function) -> set[str]:
    """Parameters that a docstring names as ``name=``, as `name=` or as :param name:."""
    text = ast.get_docstring(function) or ""
    return set(re.findall(r"(?<!`)`{1,2}(\w+)=`", text)) | set(re.findall(r":param (\w+):", text))


def test_the_public_names_are_exactly_these() -> None:
    """The names that users of the package may rely on change only together with this test."""
    package = import_module(PACKAGE)
    assert sorted(package.__all__) == PUBLIC_NAMES
    assert [name for name in PUBLIC_NAMES if not hasattr(package, name)] == []


def test_the_lists_of_hooks_agree_with_the_installed_datasette() -> None:
    """The hooks listed for one line of Datasette are there in that line and not in the other."""
    here, other = ONLY_BEFORE_1_0, ONLY_SINCE_1_0
    if "register_actions" in INSTALLED:
        here, other = other, here
    assert here - INSTALLED == set()
    assert other & INSTALLED == set()


def test_every_hook_is_known_to_a_supported_datasette() -> None:
    """A hook whose name no Datasette knows, which would be ignored in silence, is found here."""
    known = INSTALLED | ONLY_BEFORE_1_0 | ONLY_SINCE_1_0 | OF_OTHER_PLUGINS
    assert HOOKS != {}
    assert {label: name for label, name in HOOKS.items() if name not in known} == {}


def test_hooks_stay_short() -> None:
    """A hook implementation parses, delegates and returns, in at most ten lines."""
    lengths = {}
    for label, node in PACKAGE_FUNCTIONS:
        if label in HOOKS:
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            lengths[label] = (node.end_lineno or 0) - body[0].lineno + 1
    assert {label: lines for label, lines in lengths.items() if lines > 10} == {}


def test_documented_parameters_exist() -> None:
    """A parameter that a docstring names as such stands in the signature of that function."""
    unknown = {
        label: missing
        for label, node in PACKAGE_FUNCTIONS
        if (missing := documented_parameters(node) - parameters(node))
    }
    assert unknown == {}


FRESH_IMPORT = f"""
import json, sys
from datasette import hookimpl
before = set(sys.modules)
import {PACKAGE}
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_importing_the_package_loads_only_itself_and_the_standard_library() -> None:
    """In a fresh interpreter the package adds no third-party module to those of Datasette."""
    command = [sys.executable, "-c", FRESH_IMPORT]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    allowed = sys.stdlib_module_names | {PACKAGE}
    added = [name for name in json.loads(done.stdout) if name.partition(".")[0] not in allowed]
    assert added == []


@pytest.mark.parametrize(
    ("folder", "source"), [("templates", "templates"), ("decisions", "docs/decisions")]
)
def test_files_kept_outside_the_package_are_found_in_it(folder: str, source: str) -> None:
    """The templates and the decision records can be read as files of the installed package."""
    inside = {entry.name for entry in files(PACKAGE).joinpath(folder).iterdir()}
    outside = {path.name for path in (ROOT / source).iterdir()}
    assert outside != set()
    assert inside == outside


def test_datasette_finds_the_package_through_its_entry_point() -> None:
    """The entry point names the package, else Datasette finds no templates or static files."""
    points = metadata.distribution("datasette-concept-recall").entry_points
    found = [(point.group, point.name, point.value) for point in points]
    assert found == [("datasette", "concept_recall", PACKAGE)]


def test_every_test_says_what_it_promises() -> None:
    """The docstring of each test begins with its promise, a sentence that ends its paragraph."""
    lacking = []
    for label, node in functions_in(ROOT / "tests"):
        promise, *_ = (ast.get_docstring(node) or "").split("\n\n")
        if node.name.startswith("test_") and not promise.endswith("."):
            lacking.append(label)
    assert lacking == []


def test_a_plugin_that_is_registered_first_may_use_the_hooks_of_this_one() -> None:
    """Which of two plugins Datasette finds first is nobody's choice."""
    script = """
import os
os.environ["DATASETTE_LOAD_PLUGINS"] = ""
from datasette import hookimpl
from datasette.plugins import pm

class Another:
    @hookimpl
    def register_source_indexers(self, datasette):
        return []

pm.register(Another())
from datasette_concept_recall.registered import pm, source_indexers
assert pm.hook.register_semantic_fallbacks(datasette=None) == []
print(len(source_indexers(None)))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout == "3\n"
