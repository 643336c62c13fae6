#!/usr/bin/env python3
"""Changes JPEG files at random, and compares what our decoder and Pillow make of each: refused or not, and the pixels.

    cargo build --release -p ocelli-data --example decode_verdicts
    scripts/jpeg_against_pillow.py BINARY [--count N] [--seed S] [--keep FOLDER] [FILE...]

Without files it changes the small JPEG fixtures of crates/data/tests. File i comes from seed S + i. Prints how often each pair
of outcomes came up; with --keep, a file of each kind of disagreement (at most ten) is left in the folder. Exit code 1 if pixels
differ. Needs Pillow.
"""

import argparse
import collections
import glob
import io
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import zlib
from concurrent.futures import ProcessPoolExecutor

from PIL import Image, ImageOps

Image.MAX_IMAGE_PIXELS = 2_000_000  # It refuses twice as many: the limit of decode_verdicts.
TESTS = pathlib.Path(__file__).parent.parent / "crates/data/tests"
FOLDERS = ["jpeg", "edges", "odd", "cases/05_exif_orientation"]


def pillow(data):
    try:
        image = ImageOps.exif_transpose(Image.open(io.BytesIO(data), formats=["JPEG", "MPO"])).convert("RGB")
        return f"ok {image.width} {image.height} {zlib.crc32(image.tobytes())}"
    except Exception as e:
        return re.sub(r"\d+", "N", f"{type(e).__name__}: {e}".split("<")[0])[:60]


def changed(files, seed):
    chance = random.Random(seed)
    data = bytearray(chance.choice(files))
    markers = [i for i in range(len(data) - 1) if data[i] == 0xFF and data[i + 1] not in (0, 0xFF)]
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        near = chance.choice(markers) + chance.randrange(24)
        at = min(chance.choice([near, chance.randrange(len(data))]), len(data) - 1)
        end = at + 1 + chance.randrange(chance.choice([2, 40, 400]))
        kind = chance.randrange(9)
        if kind < 3:
            data[at] = chance.randrange(256)
        elif kind == 3:
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 4:
            del data[at:end]
        elif kind == 5:
            data[at:at] = data[at:end]
        elif kind == 6:
            data[at:at] = bytes([0xFF, chance.choice([0xFF, chance.randrange(256), 0xD0 + chance.randrange(10)])])
        elif kind == 7:
            data[at:end] = bytes(end - at)
        else:
            first, second = sorted((chance.choice(markers), chance.choice(markers)))
            data[at:at] = data[first:min(second, first + 2000)]
    return bytes(data)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    names = args.files or sorted(sum((glob.glob(str(TESTS / f / "*.jpg")) for f in FOLDERS), []))
    files = [pathlib.Path(name).read_bytes() for name in names]
    files = [data for data in files if len(data) < 20_000]
    counts, kept, differ = collections.Counter(), collections.Counter(), 0
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(os.cpu_count()) as pool:
        for first in range(args.seed, args.seed + args.count, 1000):
            seeds = range(first, min(first + 1000, args.seed + args.count))
            cases = [changed(files, seed) for seed in seeds]
            paths = [os.path.join(folder, str(i)) for i in range(len(cases))]
            for path, data in zip(paths, cases):
                pathlib.Path(path).write_bytes(data)
            run = subprocess.run([args.binary], input="\n".join(paths), capture_output=True, text=True, check=True)
            theirs = pool.map(pillow, cases, chunksize=50)
            for seed, data, ours, their in zip(seeds, cases, run.stdout.splitlines(), theirs, strict=True):
                kind = verdict(ours, their)
                counts[kind] += 1
                if "|" in kind and kept[kind] < 10 and args.keep:
                    kept[kind] += 1
                    name = re.sub(r"[^a-z]+", "_", kind.lower())[:100]
                    (args.keep / f"{name}_{seed}.jpg").write_bytes(data)
    for kind, n in counts.most_common():
        print(f"{n:8} {kind}")
    sys.exit(any(kind == "pixels differ |" for kind in counts))


def verdict(ours, theirs):
    """Both outcomes in words, with | between them where they disagree."""
    if ours.startswith("ok") and theirs.startswith("ok"):
        return "the same pixels" if ours == theirs else "pixels differ |"
    if not ours.startswith("ok") and not theirs.startswith("ok"):
        return "both refuse"
    return f"ours {re.sub(r'[0-9]+', 'N', ours)[:70] if ours[:2] != 'ok' else 'reads'} | Pillow {theirs if theirs[:2] != 'ok' else 'reads'}"


if __name__ == "__main__":
    main()
