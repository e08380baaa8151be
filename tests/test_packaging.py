"""What is shipped works where it lands: archive and wheel are built, installed and run.

Nothing is built in the source tree: a copy of it is, so that no left-over of an earlier build can
slip into the wheel, and none is left behind.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import time
import venv
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urljoin
from urllib.request import ProxyHandler, build_opener

import pytest

import knowledge

PACKAGE = "datasette_concept_recall"
ROOT = Path(__file__).parents[1]
DATASETTE = f"datasette=={metadata.version('datasette')}"
START_SECONDS = 60

pytestmark = pytest.mark.slow

# No proxy of the environment may stand between the test and its own server.
open_url = build_opener(ProxyHandler({})).open


def environment() -> dict[str, str]:
    """The environment without what would let the source tree or a user's settings shine through."""
    hidden = ("PYTHON", "DATASETTE_")
    return {key: value for key, value in os.environ.items() if not key.startswith(hidden)}


def run(*command: str | Path, cwd: Path) -> str:
    """Standard output of a command that has to succeed; all that it printed when it does not."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def new_python(folder: Path, *install: str | Path) -> Path:
    """The interpreter of a new virtual environment in which something has been installed."""
    venv.create(folder, with_pip=True, symlinks=os.name != "nt")
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(python, "-m", "pip", "install", "--quiet", *install, cwd=folder)
    return python


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source tree, links kept as links, as a fresh checkout has it."""
    copy = tmp_path_factory.mktemp("source") / "tree"
    unwanted = shutil.ignore_patterns(
        ".git", ".venv*", "*.egg-info", "build", "dist", ".*_cache", "__pycache__", ".hypothesis"
    )
    shutil.copytree(ROOT, copy, symlinks=True, ignore=unwanted)
    return copy


@pytest.fixture(scope="module")
def built(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the source archive, and the wheel that was built from that archive."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", out, tree, cwd=out)
    return out


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    return next(built.glob("*.whl"))


@pytest.fixture(scope="module")
def clean_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment that holds the wheel and the running version of Datasette."""
    return new_python(tmp_path_factory.mktemp("clean") / "venv", DATASETTE, wheel)


@pytest.fixture(scope="module")
def server(clean_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Datasette of the clean environment that serves a small database."""
    folder = tmp_path_factory.mktemp("served")
    conn = knowledge.create(folder / "small.db")
    knowledge.add_observation(conn, "A wheel carries its templates", concepts=["wheel"])
    conn.commit()
    conn.close()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [clean_python, "-m", "datasette", "serve", "small.db", "--port", str(port)]
    log = folder / "log.txt"
    with log.open("w") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment(), stdout=output, stderr=subprocess.STDOUT
        )
    try:
        address = f"http://127.0.0.1:{port}/"
        wait_for(f"{address}-/versions.json", process, log)
        yield address
    finally:
        process.terminate()
        process.wait(START_SECONDS)


def get(url: str) -> tuple[int, str]:
    """Status and body of an answer, an error's too."""
    try:
        with open_url(url, timeout=START_SECONDS) as response:
            return response.status, response.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            status, _ = get(url)
        except (URLError, ConnectionError):
            time.sleep(0.1)
        else:
            assert status == 200
            return
    pytest.fail(f"Datasette did not start:\n{log.read_text()}")


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.is_file()}


def test_the_wheel_holds_every_file_of_the_package_once(tree: Path, wheel: Path) -> None:
    """The wheel has all modules, templates, static files and decision records, and no tests."""
    source = tree / PACKAGE
    expected = {f"{PACKAGE}/{path.relative_to(source)}" for path in source.rglob("*.py")}
    expected |= {f"{PACKAGE}/py.typed"}
    for folder in ("static", "templates", "decisions", "demo_data"):
        if (source / folder).is_dir():
            expected |= {f"{PACKAGE}/{folder}/{name}" for name in names_in(source / folder)}
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
    assert sorted(names) == sorted(expected)


def test_the_source_archive_holds_tests_and_templates(tree: Path, built: Path) -> None:
    """The source archive has the tests, and the templates in both places they are looked for."""
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tests = {path.relative_to(tree).as_posix() for path in (tree / "tests").rglob("*.py")}
    templates = {f"templates/{name}" for name in names_in(tree / "templates")}
    assert tests - names == set()
    assert templates | {f"{PACKAGE}/{name}" for name in templates} <= names


def test_the_dependencies_of_the_wheel_fit_together(clean_python: Path) -> None:
    """In the clean environment no package lacks another or has the wrong version of it."""
    assert "No broken requirements" in run(
        clean_python, "-m", "pip", "check", cwd=clean_python.parent
    )


def test_the_installed_wheel_serves_the_recall_page_and_its_stylesheet(server: str) -> None:
    """Datasette with the wheel installed answers with the page and each stylesheet it links."""
    status, page = get(urljoin(server, "small/-/recall?q=wheel"))
    assert status == 200
    links = [tag for tag in re.findall(r"<link[^>]*>", page) if "stylesheet" in tag]
    hrefs = [re.search(r'href="([^"]+)"', tag) for tag in links]
    ours = [each[1] for each in hrefs if each and PACKAGE in each[1].replace("-", "_")]
    assert ours != []
    assert [get(urljoin(server, href))[0] for href in ours] == [200] * len(ours)


def test_the_installed_wheel_builds_the_demo(clean_python: Path, tmp_path: Path) -> None:
    """The demo is built from the decision records inside the wheel, without the source tree."""
    demo = tmp_path / "demo.db"
    command = [clean_python, "-m", "datasette", "concept-recall", "demo", demo, "--no-serve"]
    run(*command, cwd=tmp_path)
    assert demo.exists()


def test_an_editable_installation_finds_templates_and_records(tree: Path, tmp_path: Path) -> None:
    """With ``pip install -e`` the folders kept outside the package are found inside it."""
    python = new_python(tmp_path / "venv", "--no-deps", "-e", tree)
    find = (
        "import importlib.util, pathlib\n"
        f"place, = importlib.util.find_spec({PACKAGE!r}).submodule_search_locations\n"
        "for folder in ('templates', 'decisions'):\n"
        "    print(*(path.name for path in pathlib.Path(place, folder).iterdir()))\n"
    )
    found = set(run(python, "-c", find, cwd=tmp_path).split())
    assert found == names_in(tree / "templates") | names_in(tree / "docs/decisions")
