"""The Gram operator of pairs, by the sampled vec trick."""
