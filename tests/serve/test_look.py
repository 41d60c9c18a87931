"""Records and pictures through the API: what the model gives offline, and nothing from anybody's disk."""

import base64
import io
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import regard
from regard.data.images import read_picture
from regard.search.write import Sampling
from regard.tasks.task import Item, Wish
from regard.trained import Trained
from regard.view.change import Change
from tests.serve.clients import SOON, Client, Make


def record(client: Client, **asked: Any) -> dict[str, Any]:
    found = client.post("/v1/look", asked)
    assert found.status_code == 200, found.text
    made: dict[str, Any] = found.json()
    return made | {"seconds": None}


def plain(made: Any) -> dict[str, Any]:
    import json

    found: dict[str, Any] = json.loads(json.dumps(made.as_json()))
    return found | {"seconds": None}


def test_a_record_is_that_of_the_model(client: Client, copy_model: Trained) -> None:
    assert record(client, text="abc") == plain(copy_model.look("abc"))
    assert record(client, text=["abc"], beam=3) == plain(copy_model.look("abc", beam=3))
    drawn = copy_model.look("abc", wish=Wish(sampling=Sampling(2, 3.0)))
    assert record(client, text="abc", sample={"seed": 2, "temperature": 3.0}) == plain(drawn)
    assert record(client, text="abc", derive=True) == plain(copy_model.look("abc", derive=True))


def test_what_if(client: Client, copy_model: Trained) -> None:
    map = next(iter(copy_model.look("abc").maps))
    changed = {"erase": [1], "off": [[map, 0]], "begin": [copy_model.vocabulary.target.encode("d").ids[0]]}
    offline = copy_model.look("abc", change=Change((1,), ((map, 0),), tuple(changed["begin"])))
    found = record(client, text="abc", change=changed)
    assert found == plain(offline)
    assert found["output"].startswith("d")
    assert found["change"] == changed


def test_a_beginning_can_be_a_text(client: Client, copy_model: Trained) -> None:
    """A model that stands beside another has other tokens, and is told what theirs spell."""
    ids = copy_model.vocabulary.target.encode("dc").ids
    assert record(client, text="abc", change={"begin": "dc"}) == plain(copy_model.look("abc", change=Change(begin=ids)))
    assert record(client, text="abc", change={"begin": ""})["output"] == copy_model.look("abc").output


@pytest.mark.parametrize("change", [{"erase": [99]}, {"off": [["nothing", 0]]}, {"off": [["decoder.0.cross", 99]]},
                                    {"begin": [10**6]}, {"begin": [0]}])  # fmt: skip
def test_what_is_not_there_can_not_be_changed(client: Client, change: Any) -> None:
    found = client.post("/v1/look", {"text": "abc", "change": change})
    assert found.status_code in (200, 409), found.text


def test_packed_weights_are_the_same_numbers(client: Client) -> None:
    listed, packed = record(client, text="abc"), record(client, text="abc", packed=True)
    for one, other in zip(listed["maps"], packed["maps"], strict=True):
        held = np.frombuffer(base64.b64decode(other["weights"]["float32"]), "<f4").reshape(other["weights"]["shape"])
        assert np.array_equal(np.array(one["weights"], np.float32), held)


def test_two_folders_of_one_name_are_told_apart(make_client: Make, copy_folder: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(copy_folder, tmp_path / "model")
    client = make_client(copy_folder, tmp_path / "model")
    assert record(client, text="a", model="model-2")["model"]["name"] == "model-2"


# ── pictures ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def captions(make_client: Make, saved: Callable[..., Path]) -> Client:
    return make_client(saved("caption"))


def url(content: bytes, kind: str = "png") -> str:
    return f"data:image/{kind};base64," + base64.b64encode(content).decode()


def picture(kind: str = "PNG", size: tuple[int, int] = (20, 12)) -> bytes:
    made = io.BytesIO()
    Image.effect_noise(size, 90).convert("RGB").save(made, kind)
    return made.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_a_picture_is_described(captions: Client, kind: str) -> None:
    content = picture(kind)
    model = next(iter(captions.desk.shelf.places.values())).model()
    pixels = read_picture(content, "x", 8, 3)
    offline = model.answer([Item((), (), pixels)], model.wish(), regard.trained.Recent(0), 0)[0]
    asked = url(content, kind.lower())
    found = captions.post("/v1/run", {"pictures": [asked, asked]}).json()["results"]
    assert [each["text"] for each in found] == [offline.text] * 2
    seen = record(captions, picture=asked)
    assert seen["output"] == offline.text
    assert seen["picture"]["width"] == 8
    assert record(captions, picture=asked, text="/etc/passwd")["text"] == "/etc/passwd"  # its name, and no more


def bomb(width: int, height: int) -> bytes:
    """A PNG of some hundred bytes that says it is huge."""

    def chunk(name: bytes, content: bytes) -> bytes:
        whole = name + content
        return struct.pack(">I", len(content)) + whole + struct.pack(">I", zlib.crc32(whole))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    )


def test_a_bomb_is_not_opened(captions: Client) -> None:
    for size in ((60_000, 60_000), (5_000, 5_000)):
        begun = time.perf_counter()
        found = captions.post("/v1/run", {"pictures": [url(bomb(*size))]})
        assert (found.status_code, found.json()["error"]["code"]) == (409, "does_not_fit")
        assert time.perf_counter() - begun < SOON


@pytest.mark.parametrize(
    "asked",
    [
        {"texts": ["/etc/passwd"]},
        {"texts": ["picture.png"]},
        {"texts": ["images.npz#0"]},
        {"texts": ["data:image/png;base64,AAAA"]},
        {"pictures": [url(b"no picture")]},
        {"pictures": [url(picture()[:60])]},
        {"pictures": ["data:image/png;base64,A"]},
        {"pictures": [url(picture("GIF"))]},
    ],
)
def test_what_is_no_picture(captions: Client, asked: Any) -> None:
    found = captions.post("/v1/run", asked)
    assert (found.status_code, found.json()["error"]["code"]) == (409, "does_not_fit")
    assert "passwd" not in found.text
    assert "object at" not in found.text


def test_pictures_are_for_models_that_read_them(client: Client, captions: Client) -> None:
    assert client.post("/v1/look", {"picture": url(picture())}).status_code == 409
    assert captions.post("/v1/look", {"text": "/etc/passwd"}).status_code == 409
    assert captions.post("/v1/search", {"query": "a", "texts": ["a"]}).status_code == 409
    for wrong in ("picture.png", "file:///etc/passwd", "http://localhost/x.png", "data:text/plain;base64,AAAA"):
        assert captions.post("/v1/look", {"picture": wrong}).status_code == 422
