#!/usr/bin/env python3
"""Converts a PyTorch checkpoint (.pt) to safetensors, for `model_config.init_from=FILE`.

    python scripts/pt_to_safetensors.py IN.pt OUT.safetensors

Reads with `weights_only=True`, so that no code in the file is run. Takes the state dict out of `model_state`, `model`,
`model_state_dict` or `state_dict`, removes the prefixes of DistributedDataParallel (`module.`) and torch.compile
(`_orig_mod.`), and writes floating-point tensors as float32. Needs `pip install torch safetensors`.
"""

import os
import sys
import warnings

WRAPPERS = ("model_state", "model", "model_state_dict", "state_dict")
PREFIXES = ("module.", "_orig_mod.")


def unwrap(checkpoint):
    """The state dict inside a checkpoint, which may lie in it under one of WRAPPERS."""
    while isinstance(checkpoint, dict):
        inner = next((key for key in WRAPPERS if isinstance(checkpoint.get(key), dict)), None)
        if inner is None:
            return checkpoint
        checkpoint = checkpoint[inner]
    sys.exit(f"error: no state dict in the file, but a {type(checkpoint).__name__}")


def strip_prefixes(state):
    """Removes wrappers' prefixes, in any order, as long as every name has them."""
    while state:
        prefix = next((p for p in PREFIXES if all(str(name).startswith(p) for name in state)), None)
        if prefix is None:
            break
        state = {str(name)[len(prefix):]: value for name, value in state.items()}
    return state


def convert(state, torch):
    """Dense tensors that share no memory, floating-point ones in float32."""
    tensors = {}
    for name, value in state.items():
        if not isinstance(value, torch.Tensor):
            print(f"note: `{name}` is a {type(value).__name__}, not a tensor: left out")
            continue
        if value.is_floating_point():
            value = value.to(torch.float32)
            if not torch.isfinite(value).all():
                sys.exit(f"error: `{name}` holds NaN or infinity: take an earlier checkpoint")
        # A copy, since tied tensors share their memory, which safetensors refuses.
        tensors[str(name)] = value.detach().clone(memory_format=torch.contiguous_format)
    if not tensors:
        sys.exit(f"error: no tensors; looked in the file itself and under {', '.join(WRAPPERS)}")
    return tensors


def main():
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} IN.pt OUT.safetensors")
    source, target = sys.argv[1:]
    try:
        import torch
        from safetensors.torch import save_file
    except ImportError as error:
        sys.exit(f"error: {error}; run `pip install torch safetensors`")
    try:
        warnings.simplefilter("ignore")
        checkpoint = torch.load(source, map_location="cpu", weights_only=True)
    except OSError as error:
        sys.exit(f"error: cannot read {source}: {error}")
    except Exception as error:
        # Not torch's own text, which advises to read the file without this protection.
        kind = type(error).__name__
        sys.exit(f"error: {source} is not a PyTorch file, is damaged, or holds more than tensors ({kind}): not read")
    tensors = convert(strip_prefixes(unwrap(checkpoint)), torch)
    partial = f"{target}.tmp"
    try:
        save_file(tensors, partial)
        os.replace(partial, target)
    except Exception as error:
        if os.path.exists(partial):
            os.remove(partial)
        sys.exit(f"error: cannot write {target}: {error}")
    print(f"{target}: {len(tensors)} tensors")


if __name__ == "__main__":
    main()
