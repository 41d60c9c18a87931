"""Hugging Face transformers: `generate` on the ported model, lines of similar length together."""

from collections.abc import Sequence
from typing import Any

import torch
import transformers
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from bench.peers.decoding import Decode, Job, Order, by_length, serve


def load(job: Job) -> tuple[Decode, dict[str, Any]]:
    torch.set_num_threads(job.threads)
    model = AutoModelForSeq2SeqLM.from_pretrained(f"{job.folder}/hf").eval()
    tokenizer = AutoTokenizer.from_pretrained(f"{job.folder}/hf")

    def decode(lines: Sequence[str], order: Order) -> list[str]:
        found: dict[int, str] = {}
        for run in by_length(lines, order.batch):
            given = tokenizer([lines[number] for number in run], return_tensors="pt", padding=True)
            with torch.inference_mode():
                written = model.generate(
                    input_ids=given["input_ids"],
                    attention_mask=given["attention_mask"],
                    num_beams=order.beam,
                    max_length=order.longest + 2,  # the start and the end are counted there
                )
            texts = tokenizer.batch_decode(written, skip_special_tokens=True)
            found.update(zip(run, texts, strict=True))
        return [found[number] for number in range(len(lines))]

    size = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
    return decode, {"version": transformers.__version__, "parameters": size}


if __name__ == "__main__":
    serve(load)
