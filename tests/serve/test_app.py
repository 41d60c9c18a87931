"""What is asked is answered as offline; what can not be asked is refused, each with a code and the field."""

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import regard
from regard.data import builtin
from regard.search.write import Sampling
from regard.serve import ask, limits
from regard.serve.ask import Options
from regard.serve.schema import SearchRequest
from regard.serve.shelf import examples
from regard.tasks.task import Wish
from regard.trained import Trained
from tests.serve.clients import Client, Make
from tests.view.small import READING, made

TEXTS = ["abc", "", "d", "dcb", "abc"]
PAYLOADS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "{{7*7}}",
    "\u202eabc",
    "</textarea><svg onload=alert(1)>",
    "'; DROP TABLE x; --",
    "a\x00b",
    "\x1b[31mred",
    "%00%0d%0aSet-Cookie: a=b",
]


def texts_of(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [each["text"] for each in answer.json()["results"]]


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_answers_are_those_of_the_model(client: Client, copy_model: Trained) -> None:
    for options, wish in (({}, None), ({"beam": 3, "n_best": 2}, Wish(beam=3, n_best=2)), ({"beam": 1, "prefix": "a"},
                           Wish(prefix="a")), ({"max_length": 2}, Wish(max_length=2))):  # fmt: skip
        answer = client.post("/v1/run", {"texts": TEXTS, **options})
        expected = copy_model.run(TEXTS, wish=wish)
        assert texts_of(answer) == [each.text for each in expected]
        for found, offline in zip(answer.json()["results"], expected, strict=True):
            if not found["empty"]:
                assert (found["score"], found["confidence"]) == (offline.score, offline.confidence)
            assert [each["text"] for each in found["alternatives"]] == [each.text for each in offline.alternatives]


def test_a_draw_depends_on_its_seed_alone(client: Client, copy_model: Trained) -> None:
    asked = {"texts": TEXTS, "sample": {"temperature": 5.0, "seed": 3, "top_k": 4, "top_p": 0.9}}
    expected = copy_model.run(TEXTS, wish=Wish(sampling=Sampling(3, 5.0, 4, 0.9)))
    answers = client.together([("POST", "/v1/run", {"json": asked})] * 3)
    assert [texts_of(each) for each in answers] == [[each.text for each in expected]] * 3


def test_many_at_once_are_answered_as_one_by_one(client: Client, copy_model: Trained) -> None:
    words = [f"{a}{b}{c}" for a in "abcd" for b in "abcd" for c in "ab"]
    asked: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "/v1/run", {"json": {"texts": [word], "beam": 1 + place % 2}}) for place, word in enumerate(words)
    ]
    answers = client.together(asked)
    for place, (word, answer) in enumerate(zip(words, answers, strict=True)):
        assert answer.json()["results"][0]["score"] == copy_model.run([word], beam=1 + place % 2)[0].score


def test_several_columns_and_a_bad_text_among_good_ones(make_client: Make, saved: Callable[..., Path]) -> None:
    client = make_client(saved("transformer"))
    good, bad = {"texts": [["abcd"], "ab"]}, {"texts": ["ab\tcd"]}
    asked: list[tuple[str, str, dict[str, Any]]] = [("POST", "/v1/run", {"json": each}) for each in (good, bad, good)]
    first, refused, last = client.together(asked)
    assert texts_of(first) == texts_of(last)
    assert refused.status_code == 409
    assert "expected 1 source columns" in refused.json()["error"]["message"]


def test_models_are_listed_and_found_by_name(make_client: Make, copy_folder: Path, saved: Callable[..., Path]) -> None:
    client = make_client(copy_folder, saved("encoder", "task=fill"))
    listed = client.get("/v1/models").json()["models"]
    assert [each["name"] for each in listed] == ["model", "encoder"]
    assert listed[0]["examples"]
    assert all(set(each) <= set("abcd") for each in listed[0]["examples"])
    assert listed[0] | {"examples": []} == {
        "name": "model", "task": "transduce", "preset": "rnn-attention", "parameters": listed[0]["parameters"],
        "reads": "text", "columns": 1, "names": [], "beam": 1, "loaded": False, "examples": [],
    }  # fmt: skip
    assert client.post("/v1/run", {"texts": ["a[mask]c"], "model": "encoder"}).json()["model"] == "encoder"
    assert [each["loaded"] for each in client.get("/v1/models").json()["models"]] == [False, True]


def test_examples_come_from_what_the_report_shows(tmp_path: Path) -> None:
    shown = {"examples": {"best": [{"source": "a\tb"}]}, "looked": [{"number": 4, "source": ["a", "b"]},
                                                                  {"number": 2, "source": ["c", "d"]}]}  # fmt: skip
    (tmp_path / "report.json").write_text(json.dumps(shown), encoding="utf-8")
    assert examples(tmp_path) == ("a\tb", "c\td")
    for broken in ("", "[]", "{}", '{"examples": {"best": [1]}}', '{"examples": {"best": []}, "looked": 3}'):
        (tmp_path / "report.json").write_text(broken, encoding="utf-8")
        assert examples(tmp_path) == ()


@pytest.mark.parametrize("name", ["intents", "slots", "paraphrases", "questions", "story"])
def test_every_task_of_texts_answers(make_client: Make, tmp_path: Path, name: str) -> None:
    file = builtin.write(name, 40, tmp_path / ("text.txt" if name == "story" else "data.tsv"))[0]
    side = "decoder" if name == "story" else "encoder"
    model = regard.train(file, out=tmp_path / "model", settings=["train.steps=2", f"{side}.width=16"])
    text: Any = ["the cat", "who?"] if name == "questions" else "the cat"
    found = make_client(tmp_path / "model").post("/v1/run", {"texts": [text], "max_length": 4} if name == "story" else
                                                 {"texts": [text]})  # fmt: skip
    wish = Wish(max_length=4) if name == "story" else None
    offline = model.run([tuple(text) if isinstance(text, list) else text], wish=wish)[0]
    assert texts_of(found) == [offline.text]
    assert [tuple(each) for each in found.json()["results"][0]["chances"]] == list(offline.chances)


def test_a_text_that_is_too_long_is_marked(client: Client, copy_model: Trained) -> None:
    longest = copy_model.config.data.max_source
    with pytest.warns(UserWarning, match="cut to"):
        offline = copy_model("ab" * longest)
    found = client.post("/v1/run", {"texts": ["ab", "ab" * longest, ""]})
    assert [each["cut"] for each in found.json()["results"]] == [0, longest, 0]
    assert texts_of(found)[1] == offline


def test_nothing_is_sure_of_an_empty_text(client: Client) -> None:
    """As `regard run --json` has it."""
    empty, full = client.post("/v1/run", {"texts": ["", "ab"], "n_best": 2}).json()["results"]
    assert empty == {"text": "", "score": None, "confidence": None, "alternatives": [], "chances": [], "cut": 0,
                     "empty": True}  # fmt: skip
    assert full["empty"] is False
    assert full["confidence"] > 0


def test_search_finds_what_the_model_finds(client: Client, copy_model: Trained) -> None:
    corpus = ["abc", "d c", "a b", "dd"]
    found = client.post("/v1/search", {"query": "abd", "texts": corpus, "count": 3}).json()["hits"]
    offline = copy_model.search(corpus, "abd", 3)
    assert [(each["number"], each["text"]) for each in found] == [(hit.number, hit.text) for hit in offline]
    assert [each["cosine"] for each in found] == pytest.approx([hit.score for hit in offline])
    hit = next(each for each in found if " " in each["text"])
    word = hit["words"][0]
    left = hit["text"][: word["start"]] + hit["text"][word["end"] :]
    query, without = copy_model.embed(["abd", left])
    assert word["weight"] == pytest.approx(hit["cosine"] - float(query @ without), abs=1e-6)
    assert [hit["text"][each["start"] : each["end"]] for each in hit["words"]] == hit["text"].split()


@pytest.mark.parametrize("text", ["abc d bb", "abcd", "a"])
@pytest.mark.parametrize("kind", ["characters", "words", "bpe", "spelled"])
def test_a_hit_and_a_vector_are_told_by_the_same_words(kind: str, text: str) -> None:
    """Asked for the text itself, what a hit loses without a word is what the vector loses."""
    model = made("embed", "encoder", f"tokens.source={kind}")
    (hit,) = ask.search(model, SearchRequest(query=text, texts=[text], count=1))
    record = model.look(text)
    assert [(word.start, word.end) for word in hit.words] == [(word.start, word.end) for word in record.carried]
    expected = [word.weight for word in record.carried]
    assert [word.weight for word in hit.words] == pytest.approx(expected, abs=1e-5)


def test_a_record_has_what_is_promised(client: Client) -> None:
    found = client.post("/v1/look", {"text": "abc"}).json()
    assert found["kind"] == "record"
    assert found["model"]["name"] == "model"
    assert "".join(each["text"] for each in found["source"][:3]) == "abc"
    weights = next(each for each in found["maps"] if each["queries"] == "target")["weights"]
    assert sum(weights[0][0]) == pytest.approx(1.0, abs=1e-5)


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────────────────────────

LONG = "a" * (limits.MOST_TEXT + 1)
RUN = {"texts": ["a"]}
REFUSED: list[tuple[str, Any, int, str, str | None]] = [
    ("/v1/run", {}, 422, "invalid_field", None),
    ("/v1/run", [], 422, "invalid_field", None),
    ("/v1/run", None, 422, "invalid_field", None),
    ("/v1/run", {"texts": []}, 422, "invalid_field", "texts"),
    ("/v1/run", {"texts": "abc"}, 422, "invalid_field", "texts"),
    ("/v1/run", {"texts": ["a", 1]}, 422, "invalid_field", "texts.1"),
    ("/v1/run", {"texts": ["a", ["b", None]]}, 422, "invalid_field", "texts.1.1"),
    ("/v1/run", {"texts": [LONG]}, 422, "invalid_field", "texts.0"),
    ("/v1/run", {"texts": ["a"] * 257}, 422, "invalid_field", "texts"),
    ("/v1/run", {"texts": ["\ud800"]}, 422, "invalid_field", "texts.0"),
    ("/v1/run", {"text": ["a"]}, 422, "unknown_field", "text"),
    ("/v1/run", RUN | {"beams": 2}, 422, "unknown_field", "beams"),
    ("/v1/run", RUN | {"beam": 0}, 422, "invalid_field", "beam"),
    ("/v1/run", RUN | {"beam": 65}, 422, "invalid_field", "beam"),
    ("/v1/run", RUN | {"beam": "2"}, 422, "invalid_field", "beam"),
    ("/v1/run", RUN | {"beam": 2.5}, 422, "invalid_field", "beam"),
    ("/v1/run", RUN | {"beam": True}, 422, "invalid_field", "beam"),
    ("/v1/run", RUN | {"n_best": 1000}, 422, "invalid_field", "n_best"),
    ("/v1/run", RUN | {"max_length": 0}, 422, "invalid_field", "max_length"),
    ("/v1/run", RUN | {"sample": {"temperature": 0}}, 422, "invalid_field", "sample.temperature"),
    ("/v1/run", RUN | {"sample": {"temperature": float("nan")}}, 422, "invalid_field", "sample.temperature"),
    ("/v1/run", RUN | {"sample": {"top_p": 1.5}}, 422, "invalid_field", "sample.top_p"),
    ("/v1/run", RUN | {"sample": {"heat": 1}}, 422, "unknown_field", "sample.heat"),
    ("/v1/run", RUN | {"sample": {}, "beam": 2}, 422, "invalid_field", None),
    ("/v1/run", RUN | {"model": "other"}, 404, "unknown_model", "model"),
    ("/v1/run", RUN | {"model": "../model"}, 404, "unknown_model", "model"),
    ("/v1/run", RUN | {"model": "/etc/passwd"}, 404, "unknown_model", "model"),
    ("/v1/run", RUN | {"model": ""}, 422, "invalid_field", "model"),
    ("/v1/run", {"texts": ["a\tb"]}, 409, "does_not_fit", None),
    ("/v1/run", {"pictures": ["/etc/passwd"]}, 422, "invalid_field", "pictures.0"),
    ("/v1/run", {"pictures": ["data:image/svg+xml;base64,AAAA"]}, 422, "invalid_field", "pictures.0"),
    ("/v1/run", {"pictures": ["data:image/png;base64,AAAA"]}, 409, "does_not_fit", None),
    ("/v1/run", {"texts": ["a"], "pictures": ["data:image/png;base64,AAAA"]}, 422, "invalid_field", None),
    ("/v1/look", {"text": "a", "change": {"off": [["x"]]}}, 422, "missing_field", "change.off.0.1"),
    ("/v1/look", {"text": "a", "change": {"erase": [-1]}}, 422, "invalid_field", "change.erase.0"),
    ("/v1/look", {"text": ""}, 409, "does_not_fit", None),
    ("/v1/search", {"texts": ["a"]}, 422, "missing_field", "query"),
    ("/v1/search", {"query": "", "texts": ["a"]}, 422, "invalid_field", "query"),
    ("/v1/search", {"query": "a", "texts": ["a"] * 1001}, 422, "invalid_field", "texts"),
    ("/v1/search", {"query": "a", "texts": ["a"], "count": 0}, 422, "invalid_field", "count"),
    ("/v1/nothing", {}, 404, "not_found", None),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body", "status", "code", "field"), REFUSED)
def test_what_can_not_be_asked(client: Client, path: str, body: Any, status: int, code: str, field: str | None) -> None:
    found = client.ask("POST", path, content=json.dumps(body), headers={"Content-Type": "application/json"})
    assert found.headers["content-type"] == "application/json"
    error = found.json()["error"]
    assert error.keys() == {"code", "message", "field"}
    assert (found.status_code, error["code"], error["field"]) == (status, code, field), error
    assert error["message"]


def test_a_misspelt_field_is_told_the_right_one(client: Client) -> None:
    assert "did you mean beam?" in client.post("/v1/run", RUN | {"beams": 2}).json()["error"]["message"]
    assert "did you mean texts?" in client.post("/v1/run", {"text": ["a"]}).json()["error"]["message"]
    assert "did you mean text?" in client.post("/v1/look", {"texts": ["a"]}).json()["error"]["message"]
    seeds = client.post("/v1/run", RUN | {"sample": {"seeds": 1}}).json()["error"]["message"]
    assert "did you mean seed?" in seeds


@pytest.mark.parametrize("content", ["", "{", "{'texts': ['a']}", "[" * 100_000, '{"texts": [NaN}', "1" * 5000, "\xff"])
def test_what_is_no_json(client: Client, content: str) -> None:
    body = content.encode("latin-1")
    found = client.ask("POST", "/v1/run", content=body, headers={"Content-Type": "application/json"})
    assert found.status_code in (400, 422)
    assert found.json()["error"]["code"] in ("invalid_json", "missing_field", "invalid_field")


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a", ""]
)
def test_only_json_is_read(client: Client, kind: str) -> None:
    found = client.ask("POST", "/v1/run", content=b'{"texts": ["a"]}', headers={"Content-Type": kind})
    assert (found.status_code, found.json()["error"]["code"]) == (415, "wrong_content_type")


def test_a_body_that_is_too_large(client: Client) -> None:
    many = b" " * (limits.MOST_BODY + 1)
    found = client.ask("POST", "/v1/run", content=many, headers={"Content-Type": "application/json"})
    assert (found.status_code, found.json()["error"]["code"]) == (413, "too_large")


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/run"), ("PUT", "/v1/look"), ("DELETE", "/v1/models"),
                                              ("POST", "/healthz"), ("OPTIONS", "/v1/run")])  # fmt: skip
def test_other_methods(client: Client, method: str, path: str) -> None:
    found = client.ask(method, path, headers={"Content-Type": "application/json"})
    assert (found.status_code, found.json()["error"]["code"]) == (405, "wrong_method")
    assert "access-control-allow-origin" not in found.headers


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "192.168.0.1", "[::2]"]
)
def test_another_host_is_not_answered(client: Client, host: str) -> None:
    found = client.get("/v1/models", headers={"Host": host})
    assert (found.status_code, found.json()["error"]["code"]) == (421, "foreign_host")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1234", "127.0.0.1:8000", "[::1]:80"])
def test_this_machine_is_answered(client: Client, host: str) -> None:
    assert client.get("/v1/models", headers={"Host": host}).status_code == 200
    same = {"Host": host, "Origin": f"http://{host}"}
    assert client.get("/v1/models", headers=same).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:1", "file://", "http://localhost.evil.example"]
)
def test_another_origin_is_not_answered(client: Client, origin: str) -> None:
    found = client.post("/v1/run", RUN, headers={"Origin": origin})
    assert (found.status_code, found.json()["error"]["code"]) == (403, "foreign_origin")
    assert "access-control-allow-origin" not in found.headers


def test_a_token_is_asked_for(make_client: Make, copy_folder: Path) -> None:
    token = "s3cret-s3cret-s3cret"
    client = make_client(copy_folder, token=token)
    for headers in ({}, {"Authorization": "Bearer"}, {"Authorization": f"Bearer {token}x"}, {"Authorization": token},
                    {"Cookie": "regard=x"}, {"Authorization": "Bearer \u00e9".encode("latin-1")}):  # fmt: skip
        for path in ("/v1/models", "/metrics", "/docs", "/openapi.json", "/nothing"):
            found = client.get(path, headers=headers)
            assert (found.status_code, found.headers["www-authenticate"]) == (401, "Bearer")
    assert client.get("/v1/models", headers={"Authorization": f"Bearer {token}"}).status_code == 200
    assert client.get("/healthz").status_code == 200
    opened = client.get(f"/?token={token}")
    assert (opened.status_code, opened.headers["location"]) == (303, "/")
    assert "HttpOnly" in opened.headers["set-cookie"]
    assert "SameSite=strict" in opened.headers["set-cookie"]
    assert client.get("/v1/models", headers={"Cookie": f"a=b; regard={token}"}).status_code == 200
    assert client.get("/?token=wrong").status_code == 200


@pytest.mark.parametrize("token", ["s3cret-s3cret-s3cret", "abcd/efgh+ijkl.mnop~==", "abcdefghijklmnop="])
def test_a_browser_keeps_its_token(make_client: Make, copy_folder: Path, token: str) -> None:
    client = make_client(copy_folder, token=token)
    cookie = client.get("/", params={"token": token}).headers["set-cookie"].partition(";")[0]
    assert client.get("/v1/models", headers={"Cookie": cookie}).status_code == 200
    assert client.get("/v1/models", headers={"Cookie": cookie.replace(token, token[1:])}).status_code == 401


# ── texts are texts ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("payload", PAYLOADS)
def test_markup_comes_back_as_json_alone(client: Client, payload: str) -> None:
    asked: list[tuple[str, Any]] = [
        ("/v1/run", {"texts": [payload]}),
        ("/v1/run", {"texts": ["a"], "model": payload}),
        ("/v1/run", {"texts": ["a"], payload: 1}),
        ("/v1/run", {"texts": ["a"], "prefix": payload}),
        ("/v1/look", {"text": payload}),
        ("/v1/search", {"query": payload, "texts": [payload]}),
    ]
    for path, body in asked:
        found = client.post(path, body)
        assert found.status_code < 500, found.text
        assert found.headers["content-type"] == "application/json"
        assert found.headers["x-content-type-options"] == "nosniff"
        assert found.json()
    shown = client.get("/" + payload.replace("\x00", "").replace("\x1b", ""))
    assert shown.status_code in (404, 200)
    assert "<script" not in shown.text


# ── what a person and a machine look at ──────────────────────────────────────────────────────────────────────────────


def test_every_answer_has_strict_headers(client: Client) -> None:
    for path in ("/", "/docs", "/v1/models", "/nothing", "/metrics"):
        headers = client.get(path).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-frame-options"] == "DENY"
        assert "server" not in headers


def test_the_description_asks_nobody_else(client: Client) -> None:
    found = client.get("/docs")
    assert "POST /v1/run" in found.text
    assert not re.search(r"https?://|<script|style=", found.text)
    assert client.get("/docs.css").headers["content-type"].startswith("text/css")
    schema = client.get("/openapi.json").json()
    assert {"/v1/run", "/v1/look", "/v1/search", "/v1/models", "/healthz", "/readyz", "/metrics"} <= set(
        schema["paths"]
    )


def test_metrics_can_be_read(client: Client) -> None:
    client.post("/v1/run", RUN)
    found = client.get("/metrics")
    assert found.headers["content-type"].startswith("text/plain; version=0.0.4")
    sample = re.compile(r'[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+')
    lines = [line for line in found.text.splitlines() if not line.startswith("# ")]
    assert lines
    assert [line for line in lines if not sample.fullmatch(line)] == []
    assert any(line.startswith('regard_requests_total{path="/v1/run",method="POST",status="200"}') for line in lines)
    for path in ("/x1", "/x2"):
        client.get(path)
    assert "/x1" not in client.get("/metrics").text


# ── memory ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("path", "asked", "status"),
    [
        ("/v1/run", {"texts": ["a"], "beam": 64}, 422),
        ("/v1/run", {"texts": ["a"], "n_best": 64}, 422),
        ("/v1/look", {"text": "a", "beam": 64}, 422),
        ("/v1/run", {"texts": ["a"] * 256, "n_best": 2}, 422),
        ("/v1/run", {"texts": ["a", "b"], "beam": 64, "max_length": 4}, 200),
        ("/v1/run", {"texts": [str(each) for each in range(256)], "n_best": 2, "max_length": 4}, 200),
    ],
)
def test_what_would_need_too_much_memory_is_refused(
    make_client: Make, saved: Callable[..., Path], path: str, asked: Any, status: int
) -> None:
    found = make_client(saved("rnn-attention", "data.max_target=10000")).post(path, asked)
    assert found.status_code == status
    if status == 422:
        assert found.json()["error"]["code"] == "too_much"
        assert "max_length" in found.json()["error"]["message"]


def test_a_wide_beam_decodes_fewer_texts_at_once(copy_model: Trained) -> None:
    """And answers as all together would."""
    batches = {beam: Options(beam=beam).wish(copy_model).batch for beam in (1, 5, 64)}
    assert batches == {1: 64, 5: 64, 64: limits.MOST_ROWS // 64}
    long = dataclasses.replace(Options(beam=5), max_length=10_000)
    assert 1 <= long.wish(copy_model).batch <= 64


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("task", "preset", "asked", "names"),
    [
        ("tag", "transformer", {"sample": {}, "max_length": 3}, "sample and max_length"),
        ("classify", "transformer", {"prefix": "a"}, "prefix"),
        ("embed", "transformer", {"n_best": 2}, "n_best"),
        ("fill", "encoder", {"beam": 2}, "beam"),
    ],
)
def test_refusals_speak_of_fields_and_not_of_flags(
    make_client: Make, tmp_path: Path, task: str, preset: str, asked: Any, names: str
) -> None:
    made(task, preset).save(tmp_path / task)
    client = make_client(tmp_path / task)
    found = client.post("/v1/run", {"texts": [READING[task][1]], **asked})
    assert found.status_code == 409
    assert f"{names} can not be asked of the task {task}" in found.json()["error"]["message"]
    begun = client.post("/v1/look", {"text": READING[task][1], "change": {"begin": [8]}})
    assert begun.status_code == 409
    assert "--" not in found.text + begun.text


def test_the_schema_knows_every_field_of_a_record(client: Client) -> None:
    described = client.get("/openapi.json").json()["paths"]["/v1/look"]["post"]["responses"]["200"]
    fields = described["content"]["application/json"]["schema"]["required"]
    assert fields == list(client.post("/v1/look", {"text": "abc"}).json())


def test_pictures_of_the_training_data_are_no_examples(make_client: Make, saved: Callable[..., Path]) -> None:
    folder = saved("caption")
    shown = {"examples": {"best": [{"source": "/home/somebody/cat.png"}]}}
    (folder / "report.json").write_text(json.dumps(shown), encoding="utf-8")
    assert make_client(folder).get("/v1/models").json()["models"][0]["examples"] == []
