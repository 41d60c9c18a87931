"""The settings page regard/config.py in, docs/settings.md out: python docs/settings.py"""

import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
SETTING = re.compile(r"^(?: {4}){1,2}(\w+): (\S.*?)(?: = (.+?))?(?:  # type: \S+)?(?:  # (.+))?$")
SECTION = re.compile(r"^ *class (\w+)\((\w+)(?:, Copying)?\):")
CONFIG = (HERE.parent / "regard" / "config.py").read_text(encoding="utf-8")
ALIASES = dict(re.findall(r"^(\w+) = (Literal\[.+\])$", CONFIG, re.MULTILINE))
SHOWN = {
    "Data": "data", "Tokens": "tokens", "Lookup": "every attention", "RecurrentEncoder": "encoder, kind = recurrent",
    "ConvolutionalEncoder": "encoder, kind = convolutional", "AttentionBlocks": "encoder or decoder, kind = attention",
    "ImageEncoder": "encoder, kind = image",
    "Copying": "every decoder with attention to a source", "RecurrentDecoder": "decoder, kind = recurrent",
    "ConvolutionalDecoder": "decoder, kind = convolutional", "Embedding": "embedding", "Fill": "fill",
    "Generate": "generate", "Head": "head", "Train": "train", "Search": "search",
}  # fmt: skip
INTRO = """# Settings

Made from `regard/config.py` by `python docs/settings.py`. The same words serve in a TOML file (`--config`) and on the
command line (`--set encoder.layers=4`). A side that is `kind = "none"` is left out of the model.
"""


def page() -> str:
    """The whole of settings.md."""
    lines, section = [INTRO], ""
    for line in CONFIG.splitlines():
        if found := SECTION.match(line):
            section = SHOWN.get(found[1], "")
            if section:
                also = " (and the settings of every attention)" if found[2] == "Lookup" else ""
                also = " (and those of kind = attention)" if found[2] == "AttentionBlocks" else also
                lines += ["", f"## {section}{also}", "", "| setting | default | |", "|---|---|---|"]
        elif section and (found := SETTING.match(line)) and found[1] != "kind":
            lines.append(row(found[1], found[2], found[3] or "", found[4] or ""))
    return "\n".join(lines) + "\n"


def row(name: str, kind: str, default: str, comment: str) -> str:
    kind = ALIASES.get(kind, kind)
    choices = ""
    if kind.startswith("Literal["):
        choices = "one of " + ", ".join(re.findall(r'"?([\w+-]+)"?', kind.removeprefix("Literal[")))
    text = "; ".join(part for part in (comment, choices) if part).replace("|", "\\|")
    return f"| `{name}` | `{default}` | {text} |"


if __name__ == "__main__":
    (HERE / "settings.md").write_text(page(), encoding="utf-8")
