"""Writes a training curve to compare with: weights, batches in turn, and PyTorch's losses at each step of Adam.

usage: python make_curve.py OUT_FILE [STEPS]     (needs torch, numpy, safetensors; in f64, so best on a GPU)

Metadata as in make_golden.py. Tensors (float32 unless said; int64 tokens/targets), N = STEPS, K = 8 batches:
  w.NAME          initial weights
  in.images.k     [B, 3, S, S]     in.tokens.k, in.targets.k [B, T], for k below K; step n trains on batch n % K
  train.losses    [N] loss before each step, dropout 0, in f64
  dropout.losses  [3, N] with dropout 0.1 in f32, under three seeds of PyTorch's
"""
import dataclasses, json, sys
from pathlib import Path

import torch
from safetensors.torch import save_file

sys.path.insert(0, str(Path(__file__).parent))
from seemore_torch import Config, Seemore

CONFIG = dict(img_size=96, patch_size=16, image_embed_dim=512, num_blks=3, n_embd=128, n_head=8, n_layer=8, vocab_size=78, max_positions=1000)
BATCHES, BATCH, LENGTH, LR = 8, 16, 64, 5e-4


def losses(model, batches, steps):
    opt = torch.optim.Adam(model.parameters(), lr=LR)
    out = []
    for step in range(steps):
        _, loss = model(*batches[step % BATCHES])
        out.append(loss.detach())
        opt.zero_grad()
        loss.backward()
        opt.step()
    return torch.stack(out).cpu()


def main(path, steps):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    start = {k: v.clone() for k, v in Seemore(Config(dropout=0.0, **CONFIG)).state_dict().items()}
    pad = CONFIG["vocab_size"] - 1
    batches, out = [], {}
    for k in range(BATCHES):
        images = torch.randn(BATCH, 3, CONFIG["img_size"], CONFIG["img_size"])
        # Captions of a few letters each, so that there is something to learn beside the pictures.
        tokens = torch.randint(0, 12, (BATCH, LENGTH))
        targets = torch.cat([tokens[:, 1:], torch.full((BATCH, 1), pad)], 1)
        out |= {f"in.images.{k}": images, f"in.tokens.{k}": tokens, f"in.targets.{k}": targets}
        batches.append((images, tokens, targets))

    def run(dropout, dtype, seed):
        torch.manual_seed(seed)
        model = Seemore(Config(dropout=dropout, **CONFIG)).to(device, dtype).train()
        model.load_state_dict(start)
        given = [(i.to(device, dtype), t.to(device), y.to(device)) for i, t, y in batches]
        return losses(model, given, steps).float()

    model = Seemore(Config(dropout=0.0, **CONFIG))
    model.load_state_dict(start)
    out |= {f"w.{n}": p.detach().clone() for n, p in model.named_parameters()}
    out["train.losses"] = run(0.0, torch.float64, 0)
    out["dropout.losses"] = torch.stack([run(0.1, torch.float32, seed) for seed in range(3)])
    optimizer = dict(name="adam", lr=LR, betas=[0.9, 0.999], eps=1e-8, steps=steps)
    meta = {"config": json.dumps(dataclasses.asdict(Config(dropout=0.0, **CONFIG))), "optimizer": json.dumps(optimizer)}
    save_file({k: v.contiguous() for k, v in out.items()}, path, metadata=meta)
    print("loss", float(out["train.losses"][0]), "->", float(out["train.losses"][-1]), "with dropout", out["dropout.losses"][:, -1].tolist())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 400)
