"""Readers of the files that pre-trained weights come in, one small file a format, on the standard library alone. `tools/models` uses them."""
