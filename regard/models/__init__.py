"""A batch in, encoder states, decoder states and logits out: the parts joined into models."""
