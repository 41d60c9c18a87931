"""A desk in, a web application out: every route, what it takes, what it gives, and what it refuses."""

import hmac
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from regard import __version__
from regard.serve.ask import as_ask, look, look_options, search
from regard.serve.desk import Desk
from regard.serve.guard import COOKIE, Allowed, Guard
from regard.serve.page import FILES, STYLE, described, file
from regard.serve.refusal import Refusal, of_errors, of_status
from regard.serve.schema import (
    RECORD_FIELDS,
    Change,
    ErrorAnswer,
    HealthAnswer,
    LookRequest,
    ModelsAnswer,
    RunAnswer,
    RunRequest,
    Said,
    Sample,
    SearchAnswer,
    SearchRequest,
)

ABOUT = """Models that turn text into text, label it, fill it, search it or describe pictures. Errors are
{"error": {"code", "message", "field"}}. A request that is well formed but not for this model is 409."""
REFUSED = {
    400: "The body is not JSON.",
    401: "The token is missing.",
    403: "A page of another origin.",
    404: "No such model.",
    405: "Another method is expected.",
    408: "The body came too slowly.",
    409: "Not for this model.",
    413: "The body is too large.",
    415: "The body must be application/json.",
    421: "Another Host.",
    422: "A field is missing, unknown, or not as it should be.",
    503: "Too many wait, or the server is ending; Retry-After says when to try again.",
}
READING = (401, 403, 405, 421, 503)
RECORD = {"type": "object", "required": list(RECORD_FIELDS),
          "properties": {name: {} for name in RECORD_FIELDS}}  # fmt: skip
Answers = dict[int | str, dict[str, Any]]
METRICS: Answers = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}


def refusals(*statuses: int) -> Answers:
    return {status: {"model": ErrorAnswer, "description": REFUSED[status]} for status in statuses or REFUSED}


def make_app(desk: Desk, allowed: Allowed) -> Guard:
    """The application behind its guard."""
    app = FastAPI(title="regard", version=__version__, description=ABOUT.replace("\n", " "), docs_url=None,
                  redoc_url=None, redirect_slashes=False)  # fmt: skip
    add_answers(app, desk)
    add_state(app, desk)
    add_page(app, allowed)
    add_refusals(app)
    paths = [path for route in app.routes if (path := getattr(route, "path", ""))]
    return Guard(app, allowed, desk.meter, paths, lambda: desk.is_full)


def add_answers(app: FastAPI, desk: Desk) -> None:
    """What models are asked."""

    @app.post("/v1/run", response_model=RunAnswer, responses=refusals(), summary="Answers")
    async def run(asked: RunRequest, request: Request) -> Response:
        """One result for each text, or each picture, in order."""
        place = desk.shelf.place(asked.model)
        ask = as_ask(asked)
        ask.options.refuse_too_much(place.cover.config, ask.size)
        results = await desk.ask(place, ask, request)
        return as_json(RunAnswer.model_construct(model=place.name, results=results))

    @app.post("/v1/look", responses=refusals() | {200: {"content": {"application/json": {"schema": RECORD}}}})
    async def look_in(asked: LookRequest, request: Request) -> Response:
        """What was written for a text, how sure each token is, and what it looked at: a record."""
        place = desk.shelf.place(asked.model)
        look_options(asked).refuse_too_much(place.cover.config, 1)
        made = await desk.ask(place, lambda model: look(model, place.name, asked), request)
        return Response(made, media_type="application/json")

    @app.post("/v1/search", response_model=SearchAnswer, responses=refusals(), summary="Nearest texts")
    async def nearest(asked: SearchRequest, request: Request) -> Response:
        """The texts nearest to a query, best first, and how much each of their words matters."""
        place = desk.shelf.place(asked.model)
        hits = await desk.ask(place, lambda model: search(model, asked), request)
        return as_json(SearchAnswer.model_construct(model=place.name, hits=hits))


def add_state(app: FastAPI, desk: Desk) -> None:
    """What the server tells of itself."""

    @app.get("/v1/models", responses=refusals(*READING), summary="Models")
    async def models() -> ModelsAnswer:
        """The models that are served; the first answers where none is named."""
        served = [place.answer() for place in desk.shelf.places.values()]
        return ModelsAnswer(models=served, lesson=bool(desk.shelf.lesson))

    @app.get("/v1/lesson", responses=refusals(404, *READING) | {200: {"content": {"application/json": {}}}})
    async def lesson(request: Request) -> Response:
        """The pages of the lesson; the model of page NAME answers as lesson/NAME."""
        found = await desk.lesson(request)
        if found is None:
            raise Refusal(404, "there is no lesson in this copy of regard", "no_lesson")
        return Response(found, media_type="application/json")

    @app.get("/healthz", responses=refusals(403, 405, 421), summary="Alive")
    async def healthz() -> HealthAnswer:
        """Whether the server answers at all."""
        return HealthAnswer(status="ok")

    @app.get("/readyz", responses=refusals(403, 405, 421, 503), summary="Ready")
    async def readyz() -> HealthAnswer:
        """Whether there is room for another request."""
        if any(worker.ended or worker.is_full for worker in desk.workers.values()):
            raise Refusal(503, "the server is ending, or too many requests wait", "not_ready")
        return HealthAnswer(status="ready")

    @app.get("/metrics", response_class=Response, summary="Metrics", responses=refusals(*READING) | METRICS)
    async def metrics() -> Response:
        """What was counted, for Prometheus."""
        return Response(desk.meter.text(desk.gauges()), media_type="text/plain; version=0.0.4; charset=utf-8")


def add_page(app: FastAPI, allowed: Allowed) -> None:
    """What a person looks at."""

    async def page(request: Request) -> Response:
        given = request.query_params.get("token", "")
        if allowed.token and hmac.compare_digest(given.encode(), allowed.token.encode()):
            return let_in(allowed.token)
        content, kind = file(request.url.path)
        return Response(content, media_type=kind)

    async def docs() -> Response:
        return Response(described(app.openapi()), media_type="text/html; charset=utf-8")

    async def style() -> Response:
        return Response(STYLE, media_type="text/css; charset=utf-8")

    for path in FILES:
        app.add_api_route(path, page, include_in_schema=False, response_class=Response)
    app.add_api_route("/docs", docs, include_in_schema=False, response_class=Response)
    app.add_api_route("/docs.css", style, include_in_schema=False, response_class=Response)


def let_in(token: str) -> Response:
    """Whoever opened the page with its token keeps it in a cookie, and no longer in the address."""
    made = Response(status_code=303, headers={"Location": "/"})
    made.set_cookie(COOKIE, token, httponly=True, samesite="strict", path="/")
    return made


def add_refusals(app: FastAPI) -> None:
    """Whatever goes wrong has the same form."""
    asked = {"/v1/run": list(RunRequest.model_fields), "/v1/look": list(LookRequest.model_fields),
             "/v1/search": list(SearchRequest.model_fields)}  # fmt: skip
    inside = {"sample": list(Sample.model_fields), "change": list(Change.model_fields)}

    async def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, Refusal)
        return told(error)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        known = {**inside, "body": asked.get(request.url.path, [])}
        return told(of_errors(error.errors(), error.body, known))

    async def framework(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return told(of_status(error.status_code, error.detail, error.headers))

    async def defect(_: Request, error: Exception) -> Response:
        return told(Refusal(500, f"a defect of regard: {type(error).__name__}; the log of the server tells more"))

    app.add_exception_handler(Refusal, refused)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, framework)
    app.add_exception_handler(Exception, defect)


def told(refusal: Refusal) -> Response:
    return Response(refusal.body(), refusal.status, refusal.headers, "application/json")


def as_json(made: Said) -> Response:
    return Response(made.model_dump_json(), media_type="application/json")
