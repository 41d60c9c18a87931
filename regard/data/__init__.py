"""Files and text in, batches of token ids out."""
