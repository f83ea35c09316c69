"""Tokens, and pages of other origins."""

from tests.serve.conftest import problem

SOLVE = "/v1/models/hull/solve"


def test_a_token_is_asked_for_everywhere_but_by_probes(with_client):
    paths = ("/v1/models", "/metrics", "/openapi.json", "/nothing")

    async def scenario(client):
        def get(path, *values):
            return client.get(path, headers=[("Authorization", value) for value in values])

        for path in paths:
            for values in ((), ("Bearer wrong",), ("Bearer ",), ("letmein-letmein-letmein",)):
                response = await get(path, *values)
                assert "expected Bearer and the token" in problem(response, 401)
                assert response.headers["www-authenticate"] == "Bearer"
        good = [(await get(path, "Bearer letmein-letmein-letmein")).status_code for path in paths]
        lower = await get("/v1/models", "bearer letmein-letmein-letmein")  # a scheme has no case
        open_to_all = [(await get(path)).status_code for path in ("/healthz", "/readyz")]
        refused = await client.post(SOLVE, content=b"x" * 10_000)
        return [*good, lower.status_code], open_to_all, refused

    good, open_to_all, refused = with_client(scenario, token="letmein-letmein-letmein")
    assert good == [200, 200, 200, 404, 200] and open_to_all == [200, 200]
    problem(refused, 401)


def test_pages_of_other_origins_are_not_answered_unless_they_are_allowed(with_client):
    async def scenario(client):
        responses = []
        for origin in ("https://good.org", "https://bad.org"):
            preflight = {
                "Origin": origin,
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "content-type,authorization",
            }
            responses += [
                await client.options(SOLVE, headers=preflight),
                await client.get("/v1/models", headers={"Origin": origin}),
            ]
        return [r.headers.get("access-control-allow-origin") for r in responses]

    assert with_client(scenario) == [None] * 4
    allowed = ["https://good.org"] * 2 + [None] * 2
    assert with_client(scenario, origins=["https://good.org"], token="t" * 20) == allowed


def test_pages_of_allowed_origins_see_when_to_come_again(with_client):
    async def scenario(client):
        return await client.get("/v1/models", headers={"Origin": "https://good.org"})

    response = with_client(scenario, origins=["https://good.org"])
    assert "Retry-After" in response.headers["access-control-expose-headers"]
