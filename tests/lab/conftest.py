from tests.cli.conftest import ptrnet  # noqa: F401  a fixture
