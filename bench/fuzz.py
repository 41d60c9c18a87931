"""An application in, how many requests drawn from its own description were tried, and what went wrong with them, out.

Half of them are drawn to fit the description and half to break it. None may fail in the server, and every answer must
be one that is described: status, type, form. What fits must be answered, or refused for what this model is; what does
not fit must be refused.
"""

from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from schemathesis import GenerationMode
from schemathesis.core.failures import FailureGroup

HOST = {"Host": "localhost"}
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)


def fuzz(app: Any, examples: int, seed: int = 0) -> tuple[int, list[str]]:
    """`examples` requests of each kind for each route that takes a body; few for those that take nothing."""
    schema = schemathesis.openapi.from_asgi("/openapi.json", app=app, headers=HOST)
    tried, failures = 0, list[str]()
    for found in schema.get_all_operations():
        operation = found.ok()
        for mode in MODES if operation.body else MODES[:1]:
            count, wrong = one(operation, mode, examples if operation.body else 3, seed)
            tried, failures = tried + count, failures + wrong
    return tried, failures


def one(operation: Any, mode: GenerationMode, examples: int, seed: int) -> tuple[int, list[str]]:
    tried = 0

    @seeded(seed)
    @settings(max_examples=examples, deadline=None, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        nonlocal tried
        tried += 1
        if mode is MODES[0] and tried % 2 and isinstance(case.body, dict) and "model" in case.body:
            del case.body["model"]  # few names that are drawn are names of models
        case.call_and_validate(headers=HOST)

    try:
        ask()
    except FailureGroup as group:
        return tried, [f"{operation.method.upper()} {operation.path} {mode.value}: {each}" for each in group.exceptions]
    return tried, []
