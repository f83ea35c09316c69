import pytest

from ptrnet import labellers, tasks
from ptrnet.errors import InputError


def test_every_task_names_labellers_that_exist():
    for name in tasks.names():
        assert set(tasks.get(name).labellers) <= set(labellers.names())


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(InputError, match="did you mean 'monotone-chain'"):
        labellers.get("monoton-chain")
