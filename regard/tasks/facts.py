"""The name of a number that a task tells beside its scores in, what it is out: for a card or a table."""

COUNTS = ("hidden", "unseen", "targets")  # whole numbers

MEANINGS = {
    "loss": "nats for each token or label that had to be foreseen",
    "perplexity": "between how many equally likely tokens the model was choosing",
    "token_accuracy": "% of tokens that were foreseen, given all before them",
    "token_accuracy_forced": "% of tokens that were foreseen, given the true ones before them",
    "token_accuracy_free": "% of places with the right token, given what the model wrote itself",
    "exposure_gap": "the former less the latter",
    "hidden": "tokens that were hidden and asked for",
    "majority": "% that would be right if the most frequent label were always given",
    "exact": "% of texts whose labels are all right",
    "unseen": "labels that training never saw, each counted as wrong",
    "targets": "different texts among which the right one was to be found",
    "median_rank": "place of the right text among them; 1 is best",
    "brier": "how far confidences are from what came true; 0 is best",
    "calibration_error": "how far confidences are from the share that came true; 0 is best",
}


def number(name: str, value: float) -> str:
    return f"{value:,.0f}" if name in COUNTS else f"{value:.4f}"
