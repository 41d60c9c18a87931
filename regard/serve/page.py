"""The page's files, and the description of the API as a page without a script."""

from collections.abc import Iterator, Mapping
from html import escape
from importlib import resources
from typing import Any

FILES = {"/": "index.html", "/app.js": "app.js", "/app.css": "app.css"}
KINDS = {"html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}
MISSING = "The page of this server is not built into this copy of regard. The API is described at /docs.\n"
STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font: 0.9em/1.4 ui-monospace, monospace; }
pre { overflow-x: auto; padding: 0.5rem; border: 1px solid color-mix(in srgb, currentColor 25%, transparent); }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: 0.15rem 1rem 0.15rem 0; }
h2 { margin-top: 2.5rem; }
"""


def file(path: str) -> tuple[bytes, str]:
    """A file of the page and its type; a plain word where the page was not built."""
    name = FILES[path]
    found = resources.files("regard.view") / "page" / name
    if not found.is_file():
        return MISSING.encode(), "text/plain; charset=utf-8"
    return found.read_bytes(), KINDS[name.rsplit(".", 1)[1]]


# ── the API, described ───────────────────────────────────────────────────────────────────────────────────────────────


def described(schema: Mapping[str, Any]) -> str:
    """All paths and all records of an OpenAPI schema as one page."""
    paths = [line for path, methods in schema["paths"].items() for method, what in methods.items()
             for line in operation(path, method, what)]  # fmt: skip
    records = [line for name, what in schema["components"]["schemas"].items() for line in record(name, what)]
    return "\n".join([
        "<!doctype html>", '<html lang="en">', "<head>", '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">', f"<title>{escape(schema['info']['title'])}</title>",
        '<link rel="stylesheet" href="/docs.css">', "</head>", "<body>",
        f"<h1>{escape(schema['info']['title'])}</h1>",
        f"<p>{escape(schema['info'].get('description', ''))}</p>",
        '<p>The same for machines: <a href="/openapi.json">/openapi.json</a></p>',
        *paths, "<h2>Records</h2>", *records, "</body>", "</html>", "",
    ])  # fmt: skip


def operation(path: str, method: str, what: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h2><code>{escape(method.upper())} {escape(path)}</code></h2>"
    yield f"<p>{escape(what.get('description') or what.get('summary', ''))}</p>"
    body = what.get("requestBody", {}).get("content", {}).get("application/json", {})
    if body:
        yield f"<p>Takes {shown(body.get('schema', {}))}</p>"
    if "example" in body:
        yield f"<pre>{escape(body['example'])}</pre>"
    yield "<table>"
    for status, answer in what["responses"].items():
        given = ", ".join(f"{escape(kind)}: {shown(each.get('schema', {}))}" if each.get("schema") else escape(kind)
                          for kind, each in answer.get("content", {}).items())  # fmt: skip
        yield f"<tr><td>{escape(str(status))}</td><td>{escape(answer.get('description', ''))}</td><td>{given}</td></tr>"
    yield "</table>"


def record(name: str, what: Mapping[str, Any]) -> Iterator[str]:
    yield f'<h3 id="{escape(name)}"><code>{escape(name)}</code></h3>'
    yield f"<p>{escape(what.get('description', ''))}</p>"
    yield "<table>"
    for field, each in what.get("properties", {}).items():
        needed = "needed" if field in what.get("required", ()) else ""
        yield (f"<tr><td><code>{escape(field)}</code></td><td>{shown(each)}</td><td>{needed}</td>"
               f"<td>{escape(each.get('description', ''))}</td></tr>")  # fmt: skip
    yield "</table>"


def shown(schema: Mapping[str, Any]) -> str:
    """A schema in a few words, with a link where it is a record of its own."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rsplit("/", 1)[1])
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(shown(each) for each in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {shown(schema.get('items', {}))}{bounds(schema, 'minItems', 'maxItems')}"
    kind = escape(str(schema.get("type", "anything")))
    return kind + bounds(schema, "minLength", "maxLength") + bounds(schema, "minimum", "maximum")


def bounds(schema: Mapping[str, Any], least: str, most: str) -> str:
    low, high = schema.get(least), schema.get(most)
    if low is None and high is None:
        return ""
    return f" ({low if low is not None else ''}–{high if high is not None else ''})"
