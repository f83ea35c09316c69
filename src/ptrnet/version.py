"""The version of ptrnet. It must equal the version in `pyproject.toml`."""

VERSION = "0.1.0"
