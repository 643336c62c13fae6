"""Milliseconds per training step of the published model in PyTorch on the CPU, eager: the peer of `ocelli bench step`.

usage: python step_torch.py [--batch 16] [--length 64] [--steps 20] [--threads 2] [--amp]

Forward, loss, backward, Adam, with dropout; 8 batches in turn, pictures normalised already. One JSON line: median, least
and most over the steps, and the most memory that the process has had.
"""
import argparse, json, resource, sys, time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))
import torch

from seemore_torch import Config, Seemore


def batches(rows, length, n=8, vocab=78):
    g = torch.Generator().manual_seed(0)
    for _ in range(n):
        tokens = torch.full((rows, length), vocab - 1)
        for row in tokens:
            k = min(int(torch.randint(30, 101, (), generator=g)), length)
            row[:k] = torch.randint(0, vocab - 1, (k,), generator=g)
        targets = torch.cat([tokens[:, 1:], torch.full((rows, 1), vocab - 1)], 1)
        yield torch.randn(rows, 3, 96, 96, generator=g), tokens, targets


if __name__ == "__main__":
    a = argparse.ArgumentParser()
    a.add_argument("--batch", type=int, default=16)
    a.add_argument("--length", type=int, default=64)
    a.add_argument("--steps", type=int, default=20)
    a.add_argument("--threads", type=int, default=2)
    a.add_argument("--amp", action="store_true")
    a = a.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    model = Seemore(Config()).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-4)
    data, ms = list(batches(a.batch, a.length)), []
    for i in range(3 + a.steps):
        begin = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=a.amp):
            _, loss = model(*data[i % 8])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if i >= 3:
            ms.append((time.perf_counter() - begin) * 1e3)
    ms.sort()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(dict(torch=torch.__version__, batch=a.batch, length=a.length, steps=len(ms), ms=dict(median=ms[len(ms) // 2], min=ms[0], max=ms[-1]), loss=loss.item(), peak_memory_bytes=peak)))
