"""The web page that shows models at work, in HTML, CSS and JavaScript without a framework.

This file names the page's files, and the headers that tell a browser what these files may do.
`index.html` is at the page's address, and all other files are below `page/`. A service serves these
files unchanged, and its models answer. `ptrnet export --page` writes a page without a service: the
files are next to exported models, which answer in the browser. A `meta` tag of `index.html` says
whether the service or the browser answers.
"""

from pathlib import Path

FOLDER = Path(__file__).parent / "static"
INDEX = "index.html"
BELOW = "page"  # the folder of the other files
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


def static_index() -> bytes:
    """Return `index.html` for a page without a service.

    The returned text has the content security policy, which a service would send as a header.
    """
    policy = _POLICY.format(scripts=" 'wasm-unsafe-eval'")  # onnxruntime is WebAssembly
    tags = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '  <meta name="source" content="onnx">'
    )
    text = (FOLDER / INDEX).read_text(encoding="utf-8")
    return text.replace(_SOURCE, tags).encode()


def parts() -> dict[str, bytes]:
    """Return the content of all files except `index.html`, by their paths below `page/`."""
    paths = (path for path in sorted(FOLDER.rglob("*")) if path.is_file())
    names = {path.relative_to(FOLDER).as_posix(): path for path in paths}
    return {name: path.read_bytes() for name, path in names.items() if name != INDEX}
