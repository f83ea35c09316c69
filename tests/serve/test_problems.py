"""Errors are problem documents."""

from ptrnet.solver import Solver
from tests.serve.conftest import QUESTION, SOLVE, problem


def test_unknown_addresses_and_methods_are_problems(with_client):
    async def scenario(client):
        return await client.get("/nothing"), await client.get(SOLVE)

    nothing, wrong = with_client(scenario)
    assert "GET /nothing: not found" in problem(nothing, 404)
    assert "method not allowed" in problem(wrong, 405)


def test_a_defect_of_ours_shows_no_traceback(with_client, models):
    class Broken(Solver):
        def predict(self, *arguments, **options):
            raise ZeroDivisionError("secret")

    models["hull"] = Broken(models["hull"].model, models["hull"].task)

    async def scenario(client):
        return await client.post(SOLVE, json=QUESTION)

    detail = problem(with_client(scenario), 500)
    assert "defect" in detail and "secret" not in detail
