"""What a recurrent mixer attends to: its effective attention matrix beside that of softmax.   usage: python attention_maps.py"""
import numpy as np

import isomer

x = np.random.default_rng(1).standard_normal((12, 32))
for preset in ("softmax", "linear-elu", "gla", "gated-deltanet"):
    system = isomer.dsf(preset, x, {"heads": 1})[0]
    weights = np.abs(system.matrix[0].real)
    print(f"{preset}: {system.law}, a token is remembered for {system.memory_horizon:.1f} tokens")
    for row in weights[::3]:
        print("   ", "".join(" .:-=+*#%@"[min(9, int(10 * value / weights.max()))] for value in row))
