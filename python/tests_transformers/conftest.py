"""flash-linear-attention, where it is installed, would be taken by modeling files, and runs on GPUs only."""
import sys

sys.modules["fla"] = None
