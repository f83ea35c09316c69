"""Requests that other services answered wrongly, or with status 500."""

import asyncio
import json

import pytest

from tests.serve.conftest import SOLVE, TRIANGLE, client_of, problem
from tests.support.small_models import small_solver

BODY = json.dumps({"instance": TRIANGLE}).encode()
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def solver():
    return small_solver("hull", scale=8.0)


@pytest.fixture
def with_client(solver):
    """Return a function that calls `scenario(client)` with a client of the model."""

    def call(scenario, **options):
        async def main():
            async with client_of({"hull": solver}, **options) as client:
                return await asyncio.wait_for(scenario(client), 30)

        return asyncio.run(main())

    return call


def post(body, **headers):
    """Return a scenario that sends a body to be solved."""
    headers = {**JSON, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return lambda client: client.post(SOLVE, content=body, headers=headers)


DUPLICATES = {
    "pydantic: the last instance won": b'{"instance": [[0,0],[1,0],[0,1]], "instance": [[5,5]]}',
    "Go: the last option won": BODY[:-1] + b', "decoder": "greedy", "decoder": "beam"}',
    "Jackson: duplicates within an element": b'{"instance": [{"x": 1, "x": 2, "y": 3}]}',
}


@pytest.mark.parametrize("body", [pytest.param(b, id=seen) for seen, b in DUPLICATES.items()])
def test_a_key_that_occurs_twice_is_refused(with_client, body):
    assert "occurs twice" in problem(with_client(post(body)), 422)


def test_a_byte_order_mark_is_no_part_of_the_body(with_client):
    """ASP.NET: clients of Windows begin UTF-8 with a mark."""
    plain, marked = (with_client(post(body)).json() for body in (BODY, b"\xef\xbb\xbf" + BODY))
    assert plain["answers"] == marked["answers"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_other_encodings_are_refused(with_client, encoding):
    """Requests: a body in the encoding that the header declares, which JSON does not allow."""
    kind = f"application/json; charset={encoding}"
    response = with_client(post(BODY.decode().encode(encoding), Content_Type=kind))
    assert "body: not UTF-8 text" in problem(response, 422)


@pytest.mark.parametrize(
    "kind",
    ["application/json;charset=UTF-8", "Application/JSON", 'application/json; charset="utf-8"'],
)
def test_the_case_and_the_parameters_of_the_media_type_do_not_matter(with_client, kind):
    """FastAPI: a parameter of the content type caused status 422."""
    assert with_client(post(BODY, Content_Type=kind)).status_code == 200


SURROGATES = {
    "a field": '{"instance": [[0, 0]], "\\ud800": 1}',
    "an option": '{"instance": [[0, 0]], "decoder": "\\ud800"}',
    "an element": '{"instance": [["\\udfff", 0]]}',
    "the field of an element": '{"instance": [{"\\ud800": 0}]}',
}


@pytest.mark.parametrize("body", [pytest.param(b, id=seen) for seen, b in SURROGATES.items()])
def test_half_a_character_is_refused(with_client, body):
    """Orjson: an error message with a lone surrogate could not be encoded, so status 500."""
    problem(with_client(post(body.encode())), 422)


@pytest.mark.parametrize("content", [b"x", BODY])
def test_compressed_bodies_are_refused(with_client, content):
    """Starlette: the compressed bytes were taken for JSON."""
    response = with_client(post(content, Content_Encoding="gzip"))
    assert "Content-Encoding: expected none, got 'gzip'" in problem(response, 415)


@pytest.mark.parametrize(
    "name", ["h%C3%BCll", "%00", "%ff", "%0d%0aSet-Cookie:%20a", "%F0%9F%98%80", "h" * 60_000]
)
def test_any_name_of_a_model_is_unknown_in_one_line(with_client, name):
    """Triton: a name with a zero byte or a line feed went into a path and a header."""

    async def scenario(client):
        return await client.post(f"/v1/models/{name}/solve", content=BODY, headers=JSON)

    response = with_client(scenario)
    detail = problem(response, 404)
    assert detail.startswith("unknown model ") and len(detail) < 200
    assert "set-cookie" not in response.headers


@pytest.mark.parametrize(
    "value", ["Bearer \u00e9".encode("latin-1"), "Bearer \u20ac".encode(), b"Bearer"]
)
def test_any_token_is_compared(with_client, value):
    """Python: `hmac.compare_digest` refuses texts that are not ASCII, so status 500."""

    async def scenario(client):
        return await client.get("/v1/models", headers=[(b"Authorization", value)])

    problem(with_client(scenario, token="letmein-letmein-letmein"), 401)


def test_unknown_addresses_make_no_new_metrics(with_client):
    """Prometheus: each address of a scanner became a time series."""

    async def scenario(client):
        for k in range(5):
            await client.get(f"/wp-{k}.php")
            await client.post(f"/v1/models/m{k}/solve", content=BODY, headers=JSON)
        return (await client.get("/metrics")).text

    counted = [line for line in with_client(scenario).splitlines() if "requests_total{" in line]
    assert [line.partition("} ")[2] for line in counted] == ["5.0", "5.0"]


def test_no_instances_have_no_answers(with_client):
    """BentoML: an empty batch reached the model, which failed."""
    response = with_client(post(b'{"instances": []}'))
    assert response.status_code == 200 and response.json()["answers"] == []
