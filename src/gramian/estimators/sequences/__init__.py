"""Label sequences: what is read, what is learned from, and how scores become answers."""
