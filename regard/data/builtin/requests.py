"""A part and a count in, requests to a household machine out: with their intent, their slots, or said in another way.

A frame is one thing that can be wanted, with several phrasings of it; filling its slots gives a request. So a request
has one intent, each of its words one label (`O`, or `B-` and `I-` with the name of a slot), and a paraphrase in which
other words stand around the same values.
"""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from regard.data.builtin.parts import distinct, generator

Pair = tuple[str, str]

VALUES = {
    "time": "six|seven|eight|half past six|half past nine|quarter to ten|noon|midnight|five in the morning",
    "day": "monday|tuesday|wednesday|thursday|friday|saturday|sunday|tomorrow|the day after tomorrow|new year's eve",
    "song": "blue river|paper boats|the long way home|seven bridges|rain on tin|old harbour|winter light",
    "artist": "ada lind|the copper kings|mara sol|north of here|julian frost|two left feet|okoye and sons",
    "place": "lisbon|new york|cape town|oslo|san jose|berlin|the black forest|kyoto|buenos aires|riga",
    "dish": "noodle soup|two pizzas|a green salad|fried rice|lentil stew|apple pie|fish and chips",
    "person": "grandmother|uncle leo|rosa|doctor chen|my neighbour|sven|the plumber|aunt olga",
    "room": "kitchen|living room|cellar|bedroom|hall|attic",
}
POOLS = {name: tuple(text.split("|")) for name, text in VALUES.items()}
SLOT = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Frame:
    """One thing that can be wanted, and ways to say it, each with the same slots."""

    intent: str
    phrasings: tuple[str, ...]

    @property
    def slots(self) -> tuple[str, ...]:
        return tuple(sorted(set(SLOT.findall(self.phrasings[0]))))


FRAMES = (
    Frame("alarm", ("wake me at {time} on {day}", "i have to get up {day} at {time}",
                    "please ring the bell for me at {time} {day}")),
    Frame("alarm", ("set an alarm for {time}", "make some noise at {time}", "do not let me sleep past {time}")),
    Frame("music", ("play {song} by {artist}", "i want to hear {artist} with {song}",
                    "put {song} on the one that {artist} sang")),
    Frame("music", ("play something by {artist}", "let me listen to {artist}", "any record of {artist} will do")),
    Frame("weather", ("will it rain in {place} on {day}", "how is the weather {day} in {place}",
                      "do i need a coat for {place} {day}")),
    Frame("travel", ("book a train to {place} for {day} at {time}", "i want to leave for {place} {day} at {time}",
                     "{day} at {time} i must be on my way to {place}")),
    Frame("travel", ("how far is it to {place}", "which road leads to {place}", "show me the way to {place}")),
    Frame("food", ("order {dish} for {time}", "we would like {dish} at {time}", "have {dish} brought here by {time}")),
    Frame("call", ("call {person} at {time}", "i would like to speak with {person} at {time}",
                   "ring {person} up when it is {time}")),
    Frame("light", ("switch on the light in the {room}", "it is too dark in the {room}",
                    "the {room} needs some light")),
)  # fmt: skip


@dataclass(frozen=True)
class Request:
    """A frame, one of its phrasings, and what stands in its slots."""

    frame: Frame
    phrasing: int
    filled: tuple[tuple[str, str], ...]  # slot and value

    def spoken(self, phrasing: int) -> tuple[list[str], list[str]]:
        """Words and their labels."""
        words: list[str] = []
        labels: list[str] = []
        values = dict(self.filled)
        for piece in SLOT.split(self.frame.phrasings[phrasing]):
            said = values.get(piece, piece).split()
            words += said
            labels += [f"{'I' if place else 'B'}-{piece}" if piece in values else "O" for place in range(len(said))]
        return words, labels

    @property
    def text(self) -> str:
        return " ".join(self.spoken(self.phrasing)[0])


def draw(random_: random.Random) -> Request:
    frame = random_.choice(FRAMES)
    filled = tuple((slot, random_.choice(POOLS[slot])) for slot in frame.slots)
    return Request(frame, random_.randrange(len(frame.phrasings)), filled)


def some(task: str, count: int, seed: int, part: str) -> list[Request]:
    random_ = generator(task, str(seed), part)
    return distinct(lambda: draw(random_), lambda request: request.text, task, part, count)


def intents(count: int, seed: int, part: str) -> list[Pair]:
    """A request, and what is wanted."""
    return [(request.text, request.frame.intent) for request in some("intents", count, seed, part)]


def slots(count: int, seed: int, part: str) -> list[Pair]:
    """The words of a request, and a label for each."""
    found = [request.spoken(request.phrasing) for request in some("slots", count, seed, part)]
    return [(" ".join(words), " ".join(labels)) for words, labels in found]


def paraphrases(count: int, seed: int, part: str) -> list[Pair]:
    """A request, and the same said in another way."""
    found = some("paraphrases", count, seed, part)
    return [(request.text, " ".join(request.spoken((request.phrasing + 1) % len(request.frame.phrasings))[0]))
            for request in found]  # fmt: skip


def story(count: int, seed: int, part: str) -> list[tuple[str]]:
    """Lines of a running text: who says what."""
    random_ = generator("story speakers", str(seed), part)
    speakers = [name for name in POOLS["person"] if " " not in name]
    return [(f"{random_.choice(speakers)}: {request.text}.",) for request in some("story", count, seed, part)]


KINDS: dict[str, Callable[[int, int, str], Sequence[tuple[str, ...]]]] = {
    "intents": intents,
    "paraphrases": paraphrases,
    "slots": slots,
    "story": story,
}
HEADERS: dict[str, tuple[str, ...]] = {
    "intents": ("text", "label"),
    "paraphrases": ("text", "paraphrase"),
    "slots": ("tokens", "labels"),
    "story": ("text",),
}
