"""Where the service listens, and whom it has to know there."""

import ipaddress
import os
import socket
from pathlib import Path

from ptrnet.errors import InputError

BACKLOG = 1024  # connections that wait to be accepted
MIN_TOKEN = 16  # characters


def read_token(path: str) -> str:
    """The token in a file.

    Raises:
        InputError: no such file, or anything but one word of 16 visible ASCII characters or more.
    """
    try:
        token = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise InputError(f"--token-file: {path}: cannot be read: {reason}") from None
    is_word = token.isascii() and token.isprintable() and " " not in token
    if not is_word or len(token) < MIN_TOKEN:
        raise InputError(
            f"--token-file: {path}: expected one word of {MIN_TOKEN} ASCII characters or more"
        )
    return token


def check_origin(origin: str) -> None:
    """Refuses what is no origin of web pages."""
    if not origin.startswith(("http://", "https://")) or origin.count("/") != 2:
        raise InputError(f"--allow-origin: expected such as https://example.org, got {origin}")


def listen(host: str, port: int, has_token: bool) -> socket.socket:
    """A socket that listens; connections wait in it until they are accepted.

    Raises:
        InputError: no such address, the port is taken, or others reach it and there is no token.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        raise InputError(f"--host {host}: {error.args[-1]}") from None
    if not has_token and not ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback:
        raise InputError(
            f"--host {host}: others reach the service there: expected --token-file, with the "
            "token that their requests carry"
        )
    try:
        listener = socket.create_server(address, family=family, backlog=BACKLOG)
    except OSError as error:
        raise InputError(
            f"--port {port}: cannot listen there at {host}: {os.strerror(error.errno or 0)}"
        ) from None
    # Connections inherit it. asyncio sets it on its own sockets alone, and without it the second
    # packet of a response waits 40 ms for the client's acknowledgement of the first.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def address_of(listener: socket.socket) -> str:
    """Its address, as a browser takes it."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
