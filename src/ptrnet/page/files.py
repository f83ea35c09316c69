"""The files of the page, and what a browser may do with them.

`index.html` stands at the page's address, all else below `page/`. The same files are the page of a
service and, with models and their runtime beside them, a page without one: its `index.html` names
where the answers come from.
"""

from pathlib import Path

FOLDER = Path(__file__).parent / "static"
INDEX = "index.html"
BELOW = "page"  # the folder in which the other files stand
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_SOURCE = '<meta name="source" content="service">'
_POLICY = (
    "default-src 'none'; script-src 'self'{scripts}; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY.format(scripts="") + "; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


def index() -> bytes:
    """The page that a service answers."""
    return (FOLDER / INDEX).read_bytes()


def static_index() -> bytes:
    """The page that answers by itself: with its own policy, as no service sends one."""
    policy = _POLICY.format(scripts=" 'wasm-unsafe-eval'")  # onnxruntime is WebAssembly
    tags = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '  <meta name="source" content="onnx">'
    )
    text = (FOLDER / INDEX).read_text(encoding="utf-8")
    return text.replace(_SOURCE, tags).encode()


def parts() -> dict[str, bytes]:
    """The other files, by their paths below `page/`."""
    paths = (path for path in sorted(FOLDER.rglob("*")) if path.suffix in MEDIA_TYPES)
    names = {path.relative_to(FOLDER).as_posix(): path for path in paths}
    return {name: path.read_bytes() for name, path in names.items() if name != INDEX}
