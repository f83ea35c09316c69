"""Models on the Hugging Face hub."""

import re
from pathlib import Path

from ptrnet.errors import ModelError, short
from ptrnet.model_folder import CARD, CONFIG, TENSORS

_ID = re.compile(r"([\w-][\w.-]*/[\w-][\w.-]*)(?:@([\w./-]+))?")


def fetch(repository: str) -> Path:
    """Return the folder with a repository's files. Download files that the local cache lacks.

    Args:
        repository: "owner/name", or "owner/name@revision" with a branch, a tag or a commit. Only a
            commit always names the same model.

    Raises:
        ModelError: `repository` is not an id or is not on the hub, or the hub cannot be reached.
    """
    match = _ID.fullmatch(repository)
    if match is None:  # then the user meant a folder, which the caller did not find
        raise ModelError(f"{repository}: no such folder")
    from huggingface_hub import snapshot_download

    name, revision = match.groups()
    try:
        folder = snapshot_download(name, revision=revision, allow_patterns=[CONFIG, TENSORS, CARD])
    except Exception as error:  # the errors of the hub's client have no common base
        raise ModelError(
            f"{repository}: no such folder, and not fetched from the hub: {_first_line(error)}"
        ) from None
    return Path(folder)


def push(folder: Path, repository: str, *, private: bool) -> str:
    """Upload a model's folder to the hub, and return the address of the repository.

    Raises:
        ModelError: the name is not of the form OWNER/NAME, or the hub refuses the upload.
    """
    match = _ID.fullmatch(repository)
    if match is None or match[2]:
        raise ModelError(f"expected OWNER/NAME on the hub, got {short(repository)}")
    from huggingface_hub import HfApi

    try:
        api = HfApi()
        address = api.create_repo(repository, private=private, exist_ok=True)
        api.upload_folder(repo_id=repository, folder_path=folder)
    except Exception as error:  # the errors of the hub's client have no common base
        raise ModelError(f"{repository}: not pushed to the hub: {_first_line(error)}") from None
    return str(address)


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
