"""Errors are problem documents."""

from ptrnet.solver import Solver
from tests.serve.conftest import QUESTION, SOLVE, problem


def test_unknown_addresses_and_methods_are_problems(send):
    assert "GET /nothing: " in problem(send("GET", "/nothing"), 404)
    assert f"GET {SOLVE}: " in problem(send("GET", SOLVE), 405)
    problem(send("GET", "/v1/models/"), 404)  # a redirect would not be a problem document


def test_a_defect_of_ours_shows_no_traceback(send, models):
    class Broken(Solver):
        def predict(self, *arguments, **options):
            raise ZeroDivisionError("secret")

    models["hull"] = Broken(models["hull"].model, models["hull"].task)
    detail = problem(send("POST", SOLVE, json=QUESTION), 500)
    assert "defect" in detail and "secret" not in detail
