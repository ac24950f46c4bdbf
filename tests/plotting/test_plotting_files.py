"""Pictures as files."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import matplotlib as mpl
import pytest

import backoff_schedule.plotting
from backoff_schedule import create_backoff
from backoff_schedule.plotting import alt_text, save_plot
from backoff_schedule.presets import POSTEL, SVIX

SVG = "{http://www.w3.org/2000/svg}"
DESCRIPTION = "{http://purl.org/dc/elements/1.1/}description"


def png_chunks(picture: bytes) -> dict[bytes, bytes]:
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    chunks: dict[bytes, bytes] = {}
    place = 8
    while place < len(picture):
        length, kind = struct.unpack(">I4s", picture[place : place + 8])
        chunks[kind] = chunks.get(kind, b"") + picture[place + 8 : place + 8 + length]
        place += length + 12
    assert list(chunks)[-1] == b"IEND"
    return chunks


def test_svg_holds_its_text_and_its_text_alternative(tmp_path: Path) -> None:
    file = tmp_path / "picture.svg"
    schedules = {"svix <&>": SVIX, "postel": POSTEL}
    save_plot(schedules, file)
    root = ET.fromstring(file.read_bytes())
    assert root.tag == f"{SVG}svg"
    assert root.findtext(f"{SVG}title") == "Backoff schedules: delays and time in all"
    assert [found.text for found in root.iter(DESCRIPTION)] == [alt_text(schedules)]
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    assert {"svix <&>", "postel", "Delay after each failure", "10m", "1d"} <= set(texts)


def test_png_is_1400_dots_wide_and_tells_its_text_alternative(tmp_path: Path) -> None:
    save_plot(SVIX, tmp_path / "picture.PNG", dark=True)
    chunks = png_chunks((tmp_path / "picture.PNG").read_bytes())
    assert struct.unpack(">II", chunks[b"IHDR"][:8]) == (1400, 1240)
    assert b"Description\0" + alt_text(SVIX).encode() in chunks[b"tEXt"]


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_the_bytes_are_the_same_in_every_process(suffix: str, tmp_path: Path) -> None:
    code = (
        "import sys\nfrom backoff_schedule import presets\n"
        "from backoff_schedule.plotting import save_plot\n"
        "save_plot({'svix': presets.SVIX, 'postel': presets.POSTEL}, sys.argv[1])"
    )
    other = tmp_path / f"other.{suffix}"
    subprocess.run([sys.executable, "-c", code, str(other)], check=True)
    file = tmp_path / f"picture.{suffix}"
    with mpl.rc_context({"svg.fonttype": "path", "savefig.bbox": "tight", "savefig.dpi": 50}):
        before = dict(mpl.rcParams)
        save_plot({"svix": SVIX, "postel": POSTEL}, str(file))
        assert dict(mpl.rcParams) == before
    assert file.read_bytes() == other.read_bytes()


def test_odd_labels_make_valid_xml(tmp_path: Path) -> None:
    save_plot({"a\x00b\nc\udce9 ]]> $x^": SVIX}, tmp_path / "picture.svg")
    ET.fromstring((tmp_path / "picture.svg").read_bytes())


@pytest.mark.parametrize("name", ["picture.gif", "picture", ".svg", "svg", ""])
def test_another_suffix_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"needs to be a path that ends in \.svg or \.png"):
        save_plot(SVIX, tmp_path / name if name else name)


def test_a_picture_that_cannot_be_made_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "picture.svg"
    file.write_text("before")
    with pytest.raises(ZeroDivisionError):
        save_plot(create_backoff(compute=lambda n: 1 / (5 - n)), file)
    assert file.read_text() == "before"


def test_a_file_that_cannot_be_written_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        save_plot(SVIX, tmp_path / "nowhere" / "picture.svg")


WITHOUT_MATPLOTLIB = "import sys; sys.modules['matplotlib'] = None; "


def test_without_matplotlib_the_error_says_how_to_install_it() -> None:
    code = f"{WITHOUT_MATPLOTLIB}import backoff_schedule.plotting"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1] == (
        'ModuleNotFoundError: pictures need matplotlib: pip install "backoff-schedule[plot]"'
    )


def test_another_module_that_is_missing_is_named_itself() -> None:
    code = "import sys; sys.modules['numpy'] = None; import backoff_schedule.plotting"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "backoff-schedule[plot]" not in run.stderr
    assert "numpy" in run.stderr.splitlines()[-1]


def test_the_package_itself_loads_no_matplotlib() -> None:
    code = (
        "import sys, backoff_schedule, backoff_schedule.presets, backoff_schedule.cli.show\n"
        "print({'matplotlib', 'numpy', 'backoff_schedule.plotting'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


def test_no_module_of_the_pictures_bears_the_name_of_a_public_function() -> None:
    modules = {path.stem for path in Path(backoff_schedule.plotting.__file__).parent.glob("*.py")}
    assert not modules & set(backoff_schedule.plotting.__all__)
