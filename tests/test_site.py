"""The documentation site, built as `make docs` builds it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from html.parser import HTMLParser
from pathlib import Path

import pytest

import backoff_schedule
from backoff_schedule import Backoff, delivery, plotting, presets

ROOT = Path(__file__).parent.parent
# What makes a browser fetch something, by tag.
FETCHING = {"src", "srcset", "poster", "data"}
FETCHING_LINKS = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "manifest"}
# Elements that make the theme's script fetch a library from another host.
ON_DEMAND = {"mermaid", "glightbox", "pyodide", "arithmatex"}


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    command = Path(sysconfig.get_path("scripts")) / "zensical"
    return subprocess.run(
        [command, "build", "--clean", "--strict"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    make = ["make", "-s", "pictures", f"PICTURES={folder}", f"VENV={sys.prefix}"]
    subprocess.run(make, cwd=ROOT, check=True, capture_output=True)
    return folder


def copy_of_the_source(folder: Path, pictures: Path) -> Path:
    without_pictures = shutil.ignore_patterns("pictures")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=without_pictures)
    shutil.copytree(pictures, folder / "docs/pictures")
    shutil.copy(ROOT / "zensical.toml", folder)
    shutil.copytree(ROOT / "backoff_schedule", folder / "backoff_schedule")
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, pictures: Path) -> Path:
    folder = copy_of_the_source(tmp_path_factory.mktemp("site"), pictures)
    built = build(folder)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "build" / "site"


class Page(HTMLParser):
    """What a page fetches, and what its elements are called."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.classes: set[str] = set()
        self.ids: set[str] = set()
        self.pictures_without_alternative: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.classes.update(attributes.get("class", "").split())
        self.ids.add(attributes.get("id", ""))
        self.fetched += [attributes[name] for name in FETCHING & attributes.keys()]
        if tag == "link" and FETCHING_LINKS & set(attributes.get("rel", "").split()):
            self.fetched.append(attributes["href"])
        if tag == "img" and not attributes.get("alt"):
            self.pictures_without_alternative.append(attributes.get("src", ""))
        self.fetched += re.findall(r"url\(([^)]*)\)", attributes.get("style", ""))


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    return {str(path.relative_to(site)): Page(path) for path in site.rglob("*.html")}


def test_every_page_of_the_source_is_a_page_of_the_site(pages: dict[str, Page]) -> None:
    sources = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    expected = {
        str(source.with_suffix("") / "index.html") if source.stem != "index" else "index.html"
        for source in sources
    }
    assert expected <= pages.keys()


def test_no_page_loads_anything_from_another_host(pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        foreign = [url for url in page.fetched if re.match(r"(https?:)?//", url)]
        assert foreign == [], name
        assert not page.classes & ON_DEMAND, name


def test_every_file_that_a_page_loads_is_there(site: Path, pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        if name != "404.html":
            for url in page.fetched:
                assert ((site / name).parent / url.partition("#")[0]).is_file(), (name, url)


def test_no_style_sheet_loads_anything_from_another_host(site: Path) -> None:
    for path in site.rglob("*.css"):
        assert not re.search(r"url\(\s*['\"]?(https?:)?//|@import", path.read_text()), path


def test_every_picture_is_shown_and_has_a_text_alternative(
    pages: dict[str, Page], pictures: Path
) -> None:
    shown = {Path(url).name.partition("#")[0] for page in pages.values() for url in page.fetched}
    assert {path.name for path in pictures.iterdir()} <= shown
    for name, page in pages.items():
        assert page.pictures_without_alternative == [], name


def test_every_public_name_stands_in_the_reference(pages: dict[str, Page]) -> None:
    shown = set().union(
        *(page.ids for name, page in pages.items() if name.startswith("reference/"))
    )
    public = {f"backoff_schedule.{name}" for name in backoff_schedule.__all__}
    for owner in (Backoff, backoff_schedule.SeededRandom):
        members = [name for name in vars(owner) if not name.startswith("_")]
        public |= {f"backoff_schedule.{owner.__name__}.{name}" for name in members}
    named = [name for name, value in vars(presets).items() if isinstance(value, Backoff)]
    public |= {f"backoff_schedule.presets.{name}" for name in [*named, "PRESETS"]}
    public |= {f"backoff_schedule.plotting.{name}" for name in plotting.__all__}
    public |= {f"backoff_schedule.delivery.{name}" for name in delivery.__all__}
    assert sorted(public - shown) == []


@pytest.mark.parametrize(
    ("page", "text", "complaint"),
    [
        ("index.md", "[gone](gone.md)", "page does not exist"),
        ("tutorial.md", "[gone](index.md#gone)", "anchor does not exist"),
        ("tutorial.md", "[gone][backoff_schedule.gone]", "unresolved"),
        ("reference/schedule.md", "::: backoff_schedule.gone", "backoff_schedule.gone"),
    ],
)
def test_a_dead_link_or_an_unknown_name_fails_the_build(
    page: str, text: str, complaint: str, tmp_path: Path, pictures: Path
) -> None:
    source = copy_of_the_source(tmp_path, pictures) / "docs" / page
    source.write_text(f"{source.read_text()}\n\n{text}\n")
    built = build(tmp_path)
    assert built.returncode != 0
    assert complaint in re.sub(r"\x1b\[[0-9;]*m", "", built.stdout + built.stderr)
