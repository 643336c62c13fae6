"""Images a second of PyTorch's DataLoader over a data set in the hub's layout, as a script of the recipe has it.

usage: python loader_torch.py DATA_DIR [--batch 64] [--workers 2] [--epochs 1]

Each picture: whole decoding by Pillow, bilinear to 96x96, normalised to a float tensor; each caption: ids of characters
padded to 256. Workers live on from epoch to epoch; an epoch counts from the request of its first batch. Prints one JSON
line an epoch.
"""
import argparse, io, json, time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

MEAN, STD = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
LENGTH = 256


class Pairs(Dataset):
    def __init__(self, folder):
        files = sorted(Path(folder, "data").glob("train-*.parquet"))
        tables = [pq.read_table(f, columns=["image", "caption"]) for f in files]
        self.images = [image["bytes"] for t in tables for image in t.column("image").to_pylist()]
        self.captions = [c for t in tables for c in t.column("caption").to_pylist()]
        self.ids = {c: i for i, c in enumerate(sorted(set("".join(self.captions))))}

    def __len__(self):
        return len(self.captions)

    def __getitem__(self, i):
        picture = Image.open(io.BytesIO(self.images[i])).convert("RGB").resize((96, 96), Image.BILINEAR)
        pixels = (np.asarray(picture, np.float32) / 255 - MEAN) / STD
        ids = [self.ids[c] for c in self.captions[i]][:LENGTH]
        tokens = np.full(LENGTH, len(self.ids), np.int64)
        tokens[: len(ids)] = ids
        targets = np.append(tokens[1:], len(self.ids))
        return torch.from_numpy(pixels.transpose(2, 0, 1).copy()), torch.from_numpy(tokens), torch.from_numpy(targets)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    for name, default in (("batch", 64), ("workers", 2), ("epochs", 1)):
        parser.add_argument("--" + name, type=int, default=default)
    args = parser.parse_args()
    pairs, workers = Pairs(args.folder), args.workers
    loader = DataLoader(pairs, args.batch, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
    for epoch in range(args.epochs):
        start, images = time.perf_counter(), 0
        for pixels, _, _ in loader:
            images += len(pixels)
        seconds = time.perf_counter() - start
        print(json.dumps({"epoch": epoch + 1, "images": images, "images_per_s": images / seconds}), flush=True)


if __name__ == "__main__":
    main()
