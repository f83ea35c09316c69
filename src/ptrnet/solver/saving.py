"""Save and load a solver, on disk and on the Hugging Face hub."""

import os
import tempfile
from pathlib import Path
from typing import Any, Self

from ptrnet.errors import InputError
from ptrnet.files import exists
from ptrnet.models.base import PointerModel
from ptrnet.pretrained import card, model_folder
from ptrnet.pretrained.model_folder import CARD, RECIPE
from ptrnet.tasks.base import Task


class HubMixin:
    """Base class of `Solver` that saves and loads solvers. See `Solver` for the attributes."""

    model: PointerModel
    task: Task
    trained: dict[str, Any]
    card: str

    def save_pretrained(self, folder: str | Path) -> None:
        """Write `config.json`, `model.safetensors` and the card, README.md, to a folder.

        The folder is made if it is missing. A README.md in a folder without a model is not
        overwritten. The card and `trained["scores"]` are those of the training: if you have changed
        the weights since then, clear both.

        Raises:
            InputError: the folder cannot be written, or is the run folder of a training. The
                checkpoints in a run folder must belong to the model in the same folder.

        Examples:
            >>> model = ptrnet.load("hull")
            >>> model.save_pretrained("my-hull")
            >>> ptrnet.load("./my-hull").solve([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]])
            array([0, 1, 2, 3])
        """
        path = Path(folder)
        if exists(path / RECIPE):
            raise InputError(f"{path}: holds the run of a training; name another folder")
        is_users_readme = exists(path / CARD) and not model_folder.is_there(path)
        saved = model_folder.Saved(self.model, self.task, self.trained)
        model_folder.save(path, saved)
        if not is_users_readme:
            name = path.resolve().name
            text = self.card or card.basic(name, saved)
            card.write(path, card.with_front_matter(text, name, saved))

    @classmethod
    def from_pretrained(cls, name: str | Path) -> Self:
        """Load a solver from a folder, or from a repository on the Hugging Face hub.

        Args:
            name: the folder, or "owner/name" or "owner/name@revision" on the hub.

        Raises:
            ModelError: files are missing or damaged, or the hub has no such repository.

        Examples:
            >>> ptrnet.load("hull").save_pretrained("my-hull")
            >>> model = ptrnet.Solver.from_pretrained("my-hull")
        """
        folder = Path(name)
        if not os.path.exists(name):  # noqa: PTH110  Path.exists raises for too long names
            from ptrnet.pretrained import hub

            folder = hub.fetch(str(name))
        saved, text = model_folder.load(folder), card.read(folder)
        return cls(*saved, card=text)  # type: ignore[call-arg]  # `Solver` has the constructor

    def push_to_hub(
        self, repository: str, private: bool = False, license: str | None = None
    ) -> str:
        """Upload the model to "owner/name" on the Hugging Face hub, and return the address.

        The card begins with the metadata that the hub reads: task, network, scores.

        Args:
            repository: "owner/name".
            private: whether a new repository is visible only to its owner.
            license: the license of the model, as the hub names it, such as "mit".

        Raises:
            ModelError: the hub refuses the upload, or cannot be reached.

        Examples:
            >>> model.push_to_hub("my-name/my-hull", private=True)  # after `hf auth login`
        """
        from ptrnet.pretrained import hub

        saved = model_folder.Saved(self.model, self.task, self.trained)
        text = self.card or card.basic(repository, saved)
        with tempfile.TemporaryDirectory() as folder:
            model_folder.save(Path(folder), saved)
            name = repository.rpartition("/")[2]
            card.write(Path(folder), card.with_front_matter(text, name, saved, license))
            return hub.push(Path(folder), repository, private=private)
