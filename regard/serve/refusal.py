"""What is refused in, a status and `{"error": {"code", "message", "field"}}` out."""

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from regard.config import nearest
from regard.errors import RegardError
from regard.serve.limits import RETRY_SECONDS

CODES = {
    400: "bad_request",
    401: "no_token",
    403: "foreign_origin",
    404: "not_found",
    405: "wrong_method",
    408: "too_slow",
    409: "does_not_fit",
    413: "too_large",
    415: "wrong_content_type",
    421: "foreign_host",
    422: "invalid_field",
    499: "client_gone",
    500: "defect",
    503: "busy",
    505: "http_version",
}
LONGEST = 500  # characters of a message


class Refusal(Exception):
    """A request that is not answered; the message says what was found and what was expected."""

    def __init__(self, status: int, message: str, code: str = "", field: str | None = None,
                 headers: Mapping[str, str] | None = None) -> None:  # fmt: skip
        super().__init__(message)
        self.status = status
        self.code = code or CODES.get(status, "refused")
        self.message = message[:LONGEST]
        self.field = field
        self.headers = dict(headers or {})

    def body(self) -> bytes:
        """Text only: who reads JSON reads no markup, and `<` is spelled out for those who do not."""
        made = json.dumps({"error": {"code": self.code, "message": self.message, "field": self.field}})
        return made.replace("<", "\\u003c").encode()


def busy(message: str, code: str = "busy") -> Refusal:
    return Refusal(503, message, code, headers={"Retry-After": str(RETRY_SECONDS)})


def does_not_fit(error: RegardError) -> Refusal:
    """A request that is well formed, and not for this model."""
    return Refusal(409, str(error))


def of_status(status: int, detail: object, headers: Mapping[str, str] | None) -> Refusal:
    """What the framework refuses: a path that is not there, another method, a body that is no JSON."""
    if status == 400:
        return Refusal(400, "the body is not JSON", "invalid_json")
    phrase = HTTPStatus(status).phrase if status in list(HTTPStatus) else str(detail)
    return Refusal(status, phrase.lower(), headers=headers)


# ── a body that does not have the right form ─────────────────────────────────────────────────────────────────────────


def of_errors(errors: Sequence[Mapping[str, Any]], body: Any, known: Mapping[str, Sequence[str]]) -> Refusal:
    """The error that lies deepest in what was sent: of several ways to read a value the one that came furthest.

    `known` are the names that the body may have, and those of the objects in it.
    """
    first = errors[0]
    if first["type"] == "json_invalid":
        return Refusal(400, f"the body is not JSON: {first.get('ctx', {}).get('error', '')}", "invalid_json")
    found = max(errors, key=lambda each: len(path(each, body)))
    field = ".".join(map(str, path(found, body))) or None
    if found["type"] == "extra_forbidden":
        *_, within, name = map(str, found["loc"])
        return Refusal(422, f"unknown field{nearest(name, known.get(within, ()))}", "unknown_field", field)
    if found["type"] == "missing" and not field:
        return Refusal(422, "expected a JSON object in the body", "missing_field")
    code = "missing_field" if found["type"] == "missing" else "invalid_field"
    return Refusal(422, str(found["msg"]), code, field)


def path(error: Mapping[str, Any], body: Any) -> list[str | int]:
    """Where an error lies in what was sent; names of types that the framework adds are left out."""
    found: list[str | int] = []
    steps = [step for step in error["loc"] if step != "body"]
    for place, step in enumerate(steps):
        if (isinstance(body, dict) and step in body) or (isinstance(body, list) and isinstance(step, int)):
            found.append(step)
            body = body[step] if isinstance(body, dict) or step < len(body) else None
        elif isinstance(body, dict) and error["type"] == "missing" and place == len(steps) - 1:
            found.append(step)
    return [step if isinstance(step, int) else step[:60] for step in found]
