"""Milliseconds per training step of the seemore model in PyTorch: the peer for step time.

usage: python step_torch_gpu.py [--batch 16 64] [--rungs recipe best]      (a CUDA GPU)

Rungs (--rungs all for the lot): fp32-naive and tf32-naive materialise the attention matrix; tf32 has SDPA;
recipe is bf16 autocast + SDPA, the published end state; compile adds torch.compile and fused Adam;
graph is recipe as one CUDA graph of the whole step; tf32-graph the same in TF32; best is compile as one
CUDA graph, the fastest PyTorch found for this model.
Batches are on the GPU already, 8 distinct ones in turn, 256 text tokens. One JSON line per rung:
median, min and max over 5 repeats of 60 steps.
"""
import argparse, gc, json, sys, time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))
import torch

from seemore_torch import Config, NaiveAttention, Seemore, SdpaAttention

REPEATS, STEPS = 5, 60


def batches(bs, n=8, vocab=78, length=256):
    g = torch.Generator().manual_seed(0)
    for _ in range(n):
        images = torch.randn(bs, 3, 96, 96, generator=g)
        tokens = torch.full((bs, length), vocab - 1)
        for row in tokens:
            k = int(torch.randint(30, 100, (), generator=g))
            row[:k] = torch.randint(0, vocab - 1, (k,), generator=g)
        targets = torch.cat([tokens[:, 1:], torch.full((bs, 1), vocab - 1)], 1)
        yield images.cuda(), tokens.cuda(), targets.cuda()


def rung(name, bs, attn=SdpaAttention, tf32=True, amp=True, compiled=False, graphed=False):
    torch.manual_seed(0)
    torch._dynamo.reset()
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    model = Seemore(Config(), attn).cuda().train()
    opt = torch.optim.Adam(model.parameters(), lr=2e-4, fused=compiled or graphed, capturable=graphed)
    fwd = torch.compile(model) if compiled else model
    data = list(batches(bs))

    def step(images, tokens, targets):
        with torch.autocast("cuda", torch.bfloat16, enabled=amp, cache_enabled=not graphed):
            _, loss = fwd(images, tokens, targets)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        return loss

    if graphed:
        static = [t.clone() for t in data[0]]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(4):
                step(*static)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            static_loss = step(*static)

        def run(batch):
            for d, s in zip(static, batch):
                d.copy_(s, non_blocking=True)
            graph.replay()
            return static_loss
    else:
        run = lambda batch: step(*batch)
    for i in range(12):
        run(data[i % 8])
    times = []
    for _ in range(REPEATS):
        torch.cuda.synchronize()
        t0 = time.perf_counter()
        for i in range(STEPS):
            loss = run(data[i % 8])
        torch.cuda.synchronize()
        times.append((time.perf_counter() - t0) / STEPS * 1e3)
    times.sort()
    print(json.dumps(dict(peer="pytorch " + torch.__version__, rung=name, batch=bs, ms=round(times[REPEATS // 2], 3), min=round(times[0], 3), max=round(times[-1], 3), loss=round(loss.item(), 4), peak_MiB=torch.cuda.max_memory_allocated() >> 20)), flush=True)
    del model, opt, fwd, run
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


RUNGS = {
    "fp32-naive": dict(attn=NaiveAttention, tf32=False, amp=False),
    "tf32-naive": dict(attn=NaiveAttention, amp=False),
    "tf32": dict(amp=False),
    "recipe": {},
    "compile": dict(compiled=True),
    "tf32-graph": dict(amp=False, graphed=True),
    "graph": dict(graphed=True),
    "best": dict(compiled=True, graphed=True),
}

if __name__ == "__main__":
    a = argparse.ArgumentParser()
    a.add_argument("--batch", type=int, nargs="+", default=[16, 64])
    a.add_argument("--rungs", nargs="+", default=["recipe", "best"], choices=[*RUNGS, "all"])
    a = a.parse_args()
    for bs in a.batch:
        for name in RUNGS if "all" in a.rungs else a.rungs:
            rung(name, bs, **RUNGS[name])
