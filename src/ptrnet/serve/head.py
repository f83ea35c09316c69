"""HEAD, which proxies and monitors ask: the answer to GET without its body."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Head:
    """Answers HEAD as GET is answered.

    Args:
        app: what is behind; it knows GET alone.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hands the request on."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def without_body(message: Message) -> None:
            await send({**message, "body": b""} if "body" in message else message)

        get = {**scope, "method": "GET"}
        try:
            await self._app(get, receive, without_body)
        finally:
            scope["route"] = get.get("route")  # found by the router, and counted by whom `scope` is
