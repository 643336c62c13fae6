"""The published recipe as a whole PyTorch job: the peer for end-to-end time.

usage: python benches/job_torch.py DATA_DIR [--batch 64] [--epochs 1] [--workers 4] [--best]

Does what a user of the recipe waits for: import, read parquet, decode JPEG, resize to 96x96,
character tokens padded to 256, Adam 2e-4, bf16 autocast, TF32, pinned memory, prefetch on a side
stream, one validation pass (40 batches of 8), one snapshot per epoch. --best adds what PyTorch can
do beyond the recipe: torch.compile, fused Adam and one CUDA graph for the whole step.
Prints one line per epoch and `total_s`, counted from process start.
"""
import time
START = time.time()
import argparse, io, json, os, sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))
import numpy as np
import pyarrow.parquet as pq
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from seemore_torch import Config, Seemore

MEAN, STD = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
PAD_TO = 256


class Captions(Dataset):
    def __init__(self, root, split, vocab=None):
        t = [pq.read_table(p, columns=["image", "caption"]) for p in sorted(Path(root, "data").glob(f"{split}-*.parquet"))]
        self.images = [x["bytes"] for p in t for x in p.column("image").to_pylist()]
        self.captions = [c for p in t for c in p.column("caption").to_pylist()]
        self.vocab = vocab or {c: i for i, c in enumerate(sorted(set("".join(self.captions))))}
        self.pad = len(self.vocab)

    def __len__(self):
        return len(self.captions)

    def __getitem__(self, i):
        img = Image.open(io.BytesIO(self.images[i])).convert("RGB").resize((96, 96), Image.BILINEAR)
        img = (np.asarray(img, np.float32) / 255 - MEAN) / STD
        ids = [self.vocab[c] for c in self.captions[i] if c in self.vocab][:PAD_TO]
        tokens = np.full(PAD_TO, self.pad, np.int64)
        tokens[: len(ids)] = ids
        targets = np.append(tokens[1:], self.pad)
        return torch.from_numpy(img.transpose(2, 0, 1).copy()), torch.from_numpy(tokens), torch.from_numpy(targets)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("data"); a.add_argument("--batch", type=int, default=64); a.add_argument("--epochs", type=int, default=1)
    a.add_argument("--workers", type=int, default=4); a.add_argument("--best", action="store_true"); a.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    a.add_argument("--max-steps", type=int, default=None)
    a = a.parse_args()
    dev, cuda = a.device, a.device == "cuda"
    torch.manual_seed(1337)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    train = Captions(a.data, "train")
    val = Captions(a.data, "validation", train.vocab)
    loader = DataLoader(train, a.batch, shuffle=True, num_workers=a.workers, pin_memory=cuda, drop_last=True, persistent_workers=a.workers > 0)
    val_loader = DataLoader(val, 8, num_workers=min(a.workers, 4), pin_memory=cuda)
    model = Seemore(Config(vocab_size=train.pad + 1)).to(dev).train()
    opt = torch.optim.Adam(model.parameters(), lr=2e-4, fused=a.best, capturable=a.best)
    fwd = torch.compile(model) if a.best else model

    def step(im, tk, tg):
        with torch.autocast(dev, torch.bfloat16, enabled=cuda, cache_enabled=not a.best):
            _, loss = fwd(im, tk, tg)
        loss.backward(); opt.step(); opt.zero_grad(set_to_none=True)
        return loss

    if a.best:
        static = [t.to(dev) for t in next(iter(loader))]
        state = {k: v.clone() for k, v in model.state_dict().items()}
        side = torch.cuda.Stream(); side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3): step(*static)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph): static_loss = step(*static)
        model.load_state_dict(state)
        for s in opt.state.values():
            for v in s.values(): v.zero_()
        eager_step = step
        def step(*batch):
            for d, s in zip(static, batch): d.copy_(s, non_blocking=True)
            graph.replay(); return static_loss
    ready = time.time()
    copy = torch.cuda.Stream() if cuda else None

    def prefetched(loader):
        ahead = None
        for batch in loader:
            if cuda:
                with torch.cuda.stream(copy): batch = [t.to(dev, non_blocking=True) for t in batch]
            if ahead is not None: yield ahead
            if cuda:
                torch.cuda.current_stream().wait_stream(copy)
                for t in batch: t.record_stream(torch.cuda.current_stream())
            ahead = batch
        if ahead is not None: yield ahead

    for epoch in range(a.epochs):
        t0, n, dts = time.time(), 0, []
        for batch in prefetched(loader):
            t1 = time.time(); loss = step(*batch)
            if cuda: torch.cuda.synchronize()
            dts.append(time.time() - t1); n += 1
            if a.max_steps and n >= a.max_steps: break
        train_s = time.time() - t0
        model.eval()
        with torch.no_grad(), torch.autocast(dev, torch.bfloat16, enabled=cuda):
            losses = [model(*(t.to(dev) for t in b))[1].item() for b, _ in zip(val_loader, range(40))]
        model.train()
        Path("snapshots").mkdir(exist_ok=True)
        torch.save({"model_state": model.state_dict(), "optimizer_state": opt.state_dict(), "epochs_run": epoch + 1}, f"snapshots/{epoch:02d}_snapshot.pt")
        print(json.dumps(dict(epoch=epoch, steps=n, images_per_s=round(n * a.batch / train_s, 1), train_s=round(train_s, 3), step_ms_median=round(1e3 * sorted(dts)[n // 2], 3), train_loss=round(loss.item(), 4), val_loss=round(sum(losses) / len(losses), 4))), flush=True)
    print(json.dumps(dict(ready_s=round(ready - START, 2), total_s=round(time.time() - START, 2))), flush=True)


if __name__ == "__main__":
    main()
