"""A number in, so many numbers with their German words out: short sources with long targets of no letter in common."""

import random

ONES = ("", "ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf",
        "dreizehn", "vierzehn", "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn")  # fmt: skip
TENS = ("", "", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig")
MOST = 999_999


def rows(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Digits and words; no number twice, and as many short ones as long ones as far as there are any."""
    draw, found = random.Random(f"numbers {seed}"), dict[int, str]()
    while len(found) < count:
        number = draw.randrange(1, 10 ** draw.choice((3, 4, 5, 6, 6)))
        found.setdefault(number, words(number))
    return [(str(number), text) for number, text in found.items()]


def words(number: int) -> str:
    """As it is said, in one word."""
    thousands, rest = divmod(number, 1000)
    text = (f"{below_thousand(thousands)}tausend" if thousands else "") + below_thousand(rest)
    return f"{text}s" if text.endswith("ein") else text


def below_thousand(number: int) -> str:
    hundreds, rest = divmod(number, 100)
    ten, one = divmod(rest, 10)
    few = ONES[rest] if rest < 20 else f"{ONES[one]}und{TENS[ten]}" if one else TENS[ten]
    return (f"{ONES[hundreds]}hundert" if hundreds else "") + few
