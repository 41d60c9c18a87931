"""What the page draws, as plain values, or the body of a still one in; one HTML file that asks for nothing else out."""

import base64
import hashlib
import html
from importlib import resources
from typing import Any

from regard.data.plain import json_text
from regard.errors import RegardError

TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


def page(data: dict[str, Any], title: str) -> str:
    """The file. Nothing in it is loaded from elsewhere, and its policy allows no script but its own."""
    style, script = asset("app.css"), asset("app.js").replace("</script", "<\\/script")
    policy = (f"default-src 'none'; script-src '{fingerprint(script)}'; style-src '{fingerprint(style)}'; "
              "img-src data: blob:; base-uri 'none'; form-action 'none'")  # fmt: skip
    return file(f'<script type="application/json" id="regard">{inlined(data)}</script>\n<script>{script}</script>',
                title, style, policy)  # fmt: skip


def still(body: str, title: str, more: str = "") -> str:
    """A file with the style of the page, some `more` of it and no script at all: what is in it does not move."""
    style = asset("app.css") + more
    policy = f"default-src 'none'; style-src '{fingerprint(style)}'; base-uri 'none'; form-action 'none'"
    return file(body, title, style, policy)


def file(body: str, title: str, style: str, policy: str) -> str:
    return TEMPLATE.format(policy=html.escape(policy), title=html.escape(title[:120]), style=style, body=body)


def asset(name: str) -> str:
    """A file of the built page."""
    try:
        return resources.files("regard.view").joinpath("page", name).read_text(encoding="utf-8")
    except OSError:
        raise RegardError(f"regard/view/page/{name} is missing: `make page` builds it") from None


def fingerprint(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def inlined(data: dict[str, Any]) -> str:
    """JSON that no text in it can end: every < is spelled out, and the two signs that scripts take for line ends."""
    text = json_text(data, (",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
