"""The build beside what pyproject.toml says: a wheel that carries compiled kernels.

NBKERNELS_PREBUILT names a directory that `python -m nbkernels prebuild --out` made: then the wheel holds its kernels,
and is tagged for this Python and platform where some are for processors; kernels for GPUs run under any. Without it the
wheel is pure, as the sdist always is.

NBKERNELS_URL is the repository's address: whoever publishes a release tells it, and the package's pages follow from it,
as do README's links, which an index of packages shows without the files beside it.
"""

import json
import os
import re
import runpy
import shutil
import sys
import sysconfig
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

PREBUILT = os.environ.get("NBKERNELS_PREBUILT")
URL = os.environ.get("NBKERNELS_URL", "").rstrip("/")
PAGES = {
    "Source": "", "Documentation": "/tree/HEAD/docs", "Issues": "/issues", "Changelog": "/blob/HEAD/CHANGELOG.md",
}  # fmt: skip


SOURCES = runpy.run_path("nbkernels/jit/disk/sources.py") if PREBUILT else {}


def carried() -> list[Path]:
    """What the wheel carries, under PREBUILT; SystemExit says why there is nothing."""
    gpus = sorted(Path(PREBUILT).glob("cuda/*/*/*.nbc"))
    own = SOURCES["digest"](*SOURCES["OF_CUDA"])[:16]
    if gpus and not any(file.parts[-3] == own for file in gpus):
        sys.exit(f"NBKERNELS_PREBUILT={PREBUILT}: its kernels for GPUs were made from other sources")
    gpus = [file for file in gpus if file.parts[-3] == own]
    if gpus and not processors():
        return gpus
    source = made()
    return [source / "toolchain.json", *sorted(source.glob("*/*.nbc")), *gpus]


def processors() -> list[Path]:
    """The records of kernels for processors."""
    return sorted(Path(PREBUILT).glob("*/toolchain.json")) if PREBUILT else []


def made() -> Path:
    """What was made for this Python from these sources; SystemExit says why there is none."""
    major, minor, *_ = sys.version_info
    wanted = {
        "python": f"{sys.implementation.name} {major}.{minor}{getattr(sys, 'abiflags', '')}",
        "platform": sysconfig.get_platform(),
        "options": {},
        "sources": SOURCES["digest"](),
    }
    problems = []
    for file in processors():
        found = json.loads(file.read_text(encoding="utf-8"))
        other = [name for name, value in wanted.items() if found.get(name) != value]
        if not other:
            return file.parent
        problems.append(f"{file.parent} was made with another {', '.join(other)}")
    what = "; ".join(problems) or "it holds no toolchain.json; wanted is what `python -m nbkernels prebuild` made"
    sys.exit(f"NBKERNELS_PREBUILT={PREBUILT}: {what}")


class Build(build_py):
    def run(self):
        super().run()
        place = Path(self.build_lib, "nbkernels", "prebuilt")
        shutil.rmtree(place, ignore_errors=True)  # of an earlier build
        if not PREBUILT or self.editable_mode:
            return
        for file in carried():
            target = place / file.relative_to(PREBUILT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)


class Tagged(Distribution):
    def has_ext_modules(self):
        """Whether the wheel is one Python's and platform's."""
        return bool(processors())


if URL and not URL.startswith("https://"):
    sys.exit(f"NBKERNELS_URL={URL}: wanted is the repository's address, https://...")
urls = {name: URL + page for name, page in PAGES.items()} if URL else {}
readme = Path("README.md").read_text(encoding="utf-8")
if URL:
    readme = re.sub(r"(!\[[^]]*\]\()(?=[\w.])(?!https?:)", rf"\g<1>{URL}/raw/HEAD/", readme)
    readme = re.sub(r"(?<=\]\()(?=[\w.])(?!https?:)", f"{URL}/blob/HEAD/", readme)
about = {"long_description": readme, "long_description_content_type": "text/markdown"}
# A checkout without links, as Git makes them on Windows unless told otherwise.
unlinked = Path("dispatch").is_dir() and not Path("nbkernels/dispatch").is_dir()
elsewhere = {"package_dir": {"": ".", "nbkernels.dispatch": "dispatch"}} if unlinked else {}
setup(cmdclass={"build_py": Build}, distclass=Tagged, project_urls=urls, **about, **elsewhere)
