"""Max-margin classification of many labels."""
