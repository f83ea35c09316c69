"""The page at `/`: files that are the same for everyone, and may ask this service alone."""

from functools import cache
from http import HTTPStatus
from pathlib import PurePosixPath

from fastapi import APIRouter, Response

from ptrnet.page import files
from ptrnet.serve.problems import Problem

router = APIRouter(include_in_schema=False)
_index, _parts = cache(files.index), cache(files.parts)


@router.get("/")
async def index() -> Response:
    """The page."""
    return _response(files.INDEX, _index())


@router.get(f"/{files.BELOW}/{{path:path}}")
async def part(path: str) -> Response:
    """A file that the page is made of."""
    if path not in _parts():
        raise Problem(HTTPStatus.NOT_FOUND, f"the page has no file {path[:100]!r}")
    return _response(path, _parts()[path])


def _response(path: str, content: bytes) -> Response:
    media_type = files.MEDIA_TYPES[PurePosixPath(path).suffix]
    return Response(content, headers=files.HEADERS, media_type=media_type)
