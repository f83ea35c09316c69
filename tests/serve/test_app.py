"""The token, the page, and the headers that restrict browsers."""

from tests.serve.conftest import SOLVE, problem


def test_the_description_says_which_routes_need_a_token(with_client):
    token = "letmein-letmein-letmein"

    async def scenario(client):
        headers = {"Authorization": f"Bearer {token}"}
        return (await client.get("/openapi.json", headers=headers)).json()

    document = with_client(scenario, token=token)
    assert document["components"]["securitySchemes"] == {
        "HTTPBearer": {"type": "http", "scheme": "bearer"}
    }
    for path, operations in document["paths"].items():
        for operation in operations.values():
            wanted = path not in ("/healthz", "/readyz")
            assert ("401" in operation["responses"]) == ("security" in operation) == wanted, path


def test_head_is_answered_for_the_page_alone(send):
    index, script, models = (send("HEAD", path) for path in ("/", "/page/main.js", "/v1/models"))
    assert (index.status_code, script.status_code, models.status_code) == (200, 200, 405)
    assert index.content == script.content == b""


def test_every_route_except_probes_needs_the_token(with_client):
    paths = ("/v1/models", "/v1/models/hull", "/metrics", "/openapi.json")

    async def scenario(client):
        def get(path, *values):
            return client.get(path, headers=[("Authorization", value) for value in values])

        for path in paths:
            for values in ((), ("Bearer wrong",), ("Bearer ",), ("letmein-letmein-letmein",)):
                response = await get(path, *values)
                assert "expected Bearer and the token" in problem(response, 401)
                assert response.headers["www-authenticate"] == "Bearer"
        good = [(await get(path, "Bearer letmein-letmein-letmein")).status_code for path in paths]
        # The scheme is case-insensitive.
        lower = await get("/v1/models", "bearer letmein-letmein-letmein")
        open_to_all = [(await get(path)).status_code for path in ("/healthz", "/readyz")]
        refused = await client.post(SOLVE, content=b"x" * 10_000)
        return [*good, lower.status_code], open_to_all, refused

    good, open_to_all, refused = with_client(scenario, token="letmein-letmein-letmein")
    assert good == [200] * 5 and open_to_all == [200, 200]
    problem(refused, 401)


def test_only_pages_of_allowed_origins_are_answered(with_client):
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


def test_pages_of_allowed_origins_can_read_retry_after(with_client):
    async def scenario(client):
        return await client.get("/v1/models", headers={"Origin": "https://good.org"})

    response = with_client(scenario, origins=["https://good.org"])
    assert "Retry-After" in response.headers["access-control-expose-headers"]


def test_the_page_needs_no_token_and_restricts_the_browser(with_client):
    async def scenario(client):
        paths = ("/", "/page/main.js", "/page/page.css", "/page/../pyproject.toml", "/page/no.js")
        return [await client.get(path) for path in paths]

    index, script, style, *missing = with_client(scenario, token="letmein-letmein-letmein")
    for response, media_type in ((index, "html"), (script, "javascript"), (style, "css")):
        assert response.status_code == 200
        assert response.headers["content-type"] == f"text/{media_type}; charset=utf-8"
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "no-referrer"
        parts = response.headers["content-security-policy"].split(";")
        policy = dict(part.split(maxsplit=1) for part in parts)
        assert policy["default-src"] == policy["frame-ancestors"] == "'none'"
        assert policy["script-src"] == policy["connect-src"] == policy["style-src"] == "'self'"
    for response in missing:
        problem(response, 404)
