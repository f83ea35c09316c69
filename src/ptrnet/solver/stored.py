"""A solver on disk and on the hub."""

import os
import tempfile
from pathlib import Path
from typing import Any, Self

from ptrnet.errors import InputError
from ptrnet.files import exists
from ptrnet.models.base import PointerModel
from ptrnet.pretrained import card, hub, model_folder
from ptrnet.tasks.base import Task


class Stored:
    """Base class of `Solver`: its methods that write and read files."""

    def __init__(
        self,
        model: PointerModel,
        task: Task,
        trained: dict[str, Any] | None = None,
        card: str = "",
    ) -> None:
        self.model, self.task, self.trained = model.eval(), task, trained or {}
        self.card = card

    def save_pretrained(self, folder: str | Path) -> None:
        """Writes `config.json`, `model.safetensors` and the card; makes a missing folder.

        A README.md in a folder without a model stays as it is.

        Raises:
            InputError: a folder that cannot be written, or that holds the run of a training, whose
                checkpoints would be another model's.
        """
        path = Path(folder)
        if exists(path / "recipe.toml"):
            raise InputError(f"{path}: holds the run of a training; name another folder")
        is_other_readme = card.is_there(path) and not model_folder.is_there(path)
        model_folder.save(path, self._saved)
        if not is_other_readme:  # which is not ours to write over
            card.write(path, self.card or card.basic(path.resolve().name, self._saved))

    @classmethod
    def from_pretrained(cls, name: str | Path) -> Self:
        """The solver in a folder, or in a repository of the Hugging Face hub.

        Args:
            name: the folder; or "owner/name" on the hub, "owner/name@revision" for one state of it.

        Raises:
            ModelError: the files are missing or broken, or the hub has none of that name.
        """
        is_path = os.path.exists(name)  # noqa: PTH110  Path.exists raises for too long names
        folder = Path(name) if is_path else hub.fetch(str(name))
        return cls(*model_folder.load(folder), card=card.read(folder))

    def push_to_hub(self, repository: str, private: bool = False) -> str:
        """Uploads the files to "owner/name" on the Hugging Face hub; returns the address.

        The card gets the facts in front that the hub reads: task, network, scores.

        Raises:
            ModelError: the hub refuses, or is not reached.
        """
        text = self.card or card.basic(repository, self._saved)
        with tempfile.TemporaryDirectory() as folder:
            model_folder.save(Path(folder), self._saved)
            name = repository.rpartition("/")[2]
            card.write(Path(folder), card.with_front_matter(text, name, self._saved))
            return hub.push(Path(folder), repository, private=private)

    @property
    def _saved(self) -> model_folder.Saved:
        return model_folder.Saved(self.model, self.task, self.trained)
