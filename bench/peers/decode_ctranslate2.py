"""CTranslate2 on the ported model, by its own batching; tokens are cut by the tokenizer of the Hugging Face folder."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ctranslate2
from tokenizers import Tokenizer

from bench.peers.decoding import Decode, Job, Order, serve

COMPUTE = {"fp32": "float32"}  # in its words; int8 is called so by both


def load(job: Job) -> tuple[Decode, dict[str, Any]]:
    translator = ctranslate2.Translator(
        f"{job.folder}/ctranslate2",
        compute_type=COMPUTE.get(job.precision, job.precision),
        inter_threads=job.workers,
        intra_threads=job.threads,
    )
    tokenizer = Tokenizer.from_file(f"{job.folder}/hf/tokenizer.json")
    rules = json.loads((Path(job.folder) / "hf" / "generation_config.json").read_text(encoding="utf-8"))
    never = [[tokenizer.id_to_token(id)] for id in rules["suppress_tokens"]]

    def decode(lines: Sequence[str], order: Order) -> list[str]:
        given = [one.tokens[:-1] for one in tokenizer.encode_batch(list(lines))]  # it puts the end there by itself
        found = translator.translate_batch(
            given,
            beam_size=order.beam,
            max_batch_size=order.batch,
            length_penalty=rules["length_penalty"],
            suppress_sequences=never,
            min_decoding_length=0,
            max_decoding_length=order.longest,
        )
        ids = [[tokenizer.token_to_id(token) for token in one.hypotheses[0]] for one in found]
        return [str(text) for text in tokenizer.decode_batch(ids)]

    return decode, {"version": ctranslate2.__version__, "computes": translator.compute_type}


if __name__ == "__main__":
    serve(load)
