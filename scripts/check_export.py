#!/usr/bin/env python3
"""Loads what `ocelli export` wrote into the model in PyTorch (`seemore_torch.py`), with strict=True, and captions nothing.

    python scripts/check_export.py weights.safetensors      # needs torch and safetensors
    python scripts/check_export.py --names                  # names and shapes of the model that the tests train

The sizes are those of the file's metadata. The second form writes `crates/cli/tests/torch_names.txt`.
"""

import json
import sys
from pathlib import Path

import torch
from safetensors import safe_open

sys.path.insert(0, str(Path(__file__).parent))
from seemore_torch import Config, Seemore

KEYS = ("img_size", "patch_size", "image_embed_dim", "num_blks", "n_embd", "n_head", "n_layer", "vocab_size", "max_positions")

# `TINY` of crates/cli/tests/support, with the default position table and the vocabulary of drawn pictures.
TINY = dict(img_size=16, patch_size=8, image_embed_dim=16, num_blks=1, n_embd=16, n_head=2, n_layer=1, max_positions=128, vocab_size=26)


def main():
    if sys.argv[1:] == ["--names"]:
        for name, value in Seemore(Config(**TINY)).state_dict().items():
            print(name, *value.shape)
        return
    with safe_open(sys.argv[1], framework="pt") as file:
        about = file.metadata()
        weights = {name: file.get_tensor(name) for name in file.keys()}
    sizes = json.loads(about["model_config"])
    c = Config(dropout=0.0, **{key: sizes[key] for key in KEYS})
    model = Seemore(c)
    model.load_state_dict(weights, strict=True)
    with torch.no_grad():
        logits = model.eval()(torch.zeros(1, 3, c.img_size, c.img_size), torch.zeros(1, 4, dtype=torch.long))
    assert logits.shape == (1, 5, c.vocab_size) and torch.isfinite(logits).all()
    print(f"{sys.argv[1]}: {len(weights)} tensors, {sum(w.numel() for w in weights.values())} weights: loaded")


if __name__ == "__main__":
    main()
