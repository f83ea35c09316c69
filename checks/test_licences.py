"""Every installed distribution has a free licence that this list contains."""

import re
from importlib.metadata import Distribution, distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FREE = {
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "HPND",
    "ISC",
    "LLVM-exception",
    "MIT",
    "MIT-CMU",
    "MPL-2.0",
    "PSF-2.0",
    "Python-2.0",
    "Unlicense",
    "Zlib",
}
# SPDX expressions for the texts of distributions that do not use SPDX.
SPDX = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "BSD-3-Clause, Apache-2.0, dependency licenses": "BSD-3-Clause AND Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
}


def licence(distribution: Distribution) -> str:
    """Return a distribution's licence: an SPDX expression, its classifiers, or a text."""
    metadata = distribution.metadata
    if expression := metadata.get("License-Expression"):
        return expression
    classifiers = metadata.get_all("Classifier") or []
    names = [c.rpartition(" :: ")[2] for c in classifiers if c.startswith("License :: ")]
    text = (metadata.get("License") or "unknown").strip().splitlines()[0]
    return " AND ".join(SPDX.get(name, name) for name in names) or SPDX.get(text, text)


def is_free(expression: str) -> bool:
    """For `A OR B` one free licence is enough; for `A AND B` and `A WITH B` both must be free."""
    choices = [re.split(r" (?:AND|WITH) ", part) for part in expression.split(" OR ")]
    return any(all(name.strip("() ") in FREE for name in names) for names in choices)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("MIT OR GPL-3.0-only", True),
        ("MIT AND GPL-3.0-only", False),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("(MIT OR Apache-2.0)", True),
        ("unknown", False),
        ("Free for non-commercial use", False),
    ],
)
def test_licence_expressions_are_parsed(expression, expected):
    assert is_free(expression) == expected


def test_all_installed_distributions_are_free():
    licences = {d.metadata["Name"]: licence(d) for d in distributions()}
    assert len(licences) > 50
    assert {name: text for name, text in licences.items() if not is_free(text)} == {}


def test_the_lock_has_every_distribution_with_a_hash():
    """The lock has all that `make setup` installs, except ptrnet and torch (with many builds)."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    entries = re.split(r"\n(?=[a-z])", text)
    assert all("--hash=sha256:" in entry for entry in entries)
    pinned = dict(re.match(r"([a-z0-9.-]+)==([^ ;]+)", entry).groups() for entry in entries)
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        name, _, version = line.partition("==")
        if version and name != "torch":
            assert pinned.get(name.replace("_", "-").lower()) == version, f"{line}: make lock"
