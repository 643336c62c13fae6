"""Writes the data set that coco.rs serves: the layout of the hub's COCO sets, with very small pictures.

usage: python make_fixture.py      (needs numpy, pillow, pyarrow; writes beside itself)
"""
import hashlib
import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

COLOURS = {"red": (200, 40, 40), "green": (40, 160, 60), "blue": (50, 80, 200), "white": (240, 240, 240)}


def row(seed):
    r = np.random.default_rng(seed)
    w, h = ((40, 30), (30, 40))[seed % 4 == 0]
    colour, side = list(COLOURS)[seed % 4], ("left", "right")[seed // 4 % 2]
    pixels = np.clip(r.normal(120, 12, (h, w, 3)), 0, 255)
    half = pixels[:, : w // 2] if side == "left" else pixels[:, w // 2 :]
    half[:] = COLOURS[colour]
    file = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, "JPEG", quality=60, optimize=True)
    return file.getvalue(), f"A photo with something {colour} on the {side}.", w, h


def write(name, seeds):
    rows = [row(seed) for seed in seeds]
    image = [{"bytes": b, "path": f"{seed:09d}.jpg"} for seed, (b, *_) in zip(seeds, rows)]
    table = pa.table({
        "image": pa.array(image, pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
        "caption": [caption for _, caption, *_ in rows],
        "url": [f"file:///{seed:09d}.jpg" for seed in seeds],
        "width": [w for *_, w, _ in rows],
        "height": [h for *_, h in rows],
        "sha256": [hashlib.sha256(b).hexdigest() for b, *_ in rows],
    })
    pq.write_table(table, Path(__file__).parent / name, row_group_size=4)


write("train-00000-of-00002.parquet", range(0, 10))
write("train-00001-of-00002.parquet", range(10, 18))
write("validation-00000-of-00001.parquet", range(18, 23))
