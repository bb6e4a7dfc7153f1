"""Folders as Hugging Face has them, made from what archives hold: one file a family of models. `tools/models` is the table of them."""
