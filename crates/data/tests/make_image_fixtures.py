#!/usr/bin/env python3
"""Writes the fixtures of tests/source_resize.rs and tests/source_jpeg.rs: small pictures, and what Pillow makes of them.

    python -m venv venv && venv/bin/pip install pillow numpy
    venv/bin/python crates/data/tests/make_image_fixtures.py

resize/NAME.png            the picture
resize/NAME_SIZE.png       the same, resized by Pillow with BILINEAR to SIZE x SIZE
jpeg/NAME.jpg, NAME.png    a JPEG file, and what Pillow decodes from it, in RGB
"""

import pathlib

import numpy as np
from PIL import Image

HERE = pathlib.Path(__file__).parent


def picture(width, height, channels=3):
    """Waves of several lengths with a hard edge: smooth parts, fine detail and jumps."""
    y, x = np.mgrid[0:height, 0:width]
    waves = [127 + 120 * np.sin(x / (3 + 2 * k) + y / (5 - k)) for k in range(channels)]
    array = np.stack(waves, -1)
    array[height // 3 : height // 2, width // 4 : width // 2] = [250, 5, 120, 60][:channels]
    return np.clip(array, 0, 255).astype(np.uint8)


def resize_fixtures():
    sizes = {"small": (13, 9), "wide": (120, 31), "tall": (17, 90), "photo": (160, 120), "line": (1, 50)}
    for name, (width, height) in sizes.items():
        image = Image.fromarray(picture(width, height))
        image.save(HERE / f"resize/{name}.png", optimize=True)
        for size in (8, 32, 48):
            small = image.resize((size, size), Image.Resampling.BILINEAR)
            small.save(HERE / f"resize/{name}_{size}.png", optimize=True)


def jpeg_fixtures():
    colour, four = picture(37, 29), picture(37, 29, 4)
    kinds = {
        "baseline_444": (Image.fromarray(colour), {"subsampling": 0}),
        "baseline_422": (Image.fromarray(colour), {"subsampling": 1}),
        "baseline_420": (Image.fromarray(colour), {"subsampling": 2}),
        "restarts": (Image.fromarray(colour), {"restart_marker_blocks": 2}),
        "progressive": (Image.fromarray(colour), {"progressive": True}),
        "progressive_restarts": (Image.fromarray(colour), {"progressive": True, "restart_marker_blocks": 2}),
        "grey": (Image.fromarray(colour[..., 0]), {}),
        "cmyk": (Image.fromarray(four, "CMYK"), {}),
        "ycck": (Image.fromarray(four, "CMYK"), {}),
    }
    for name, (image, options) in kinds.items():
        path = HERE / f"jpeg/{name}.jpg"
        image.save(path, quality=85, **options)
        if name == "ycck":  # Pillow writes CMYK only: the Adobe marker's last byte says how to read it.
            data = bytearray(path.read_bytes())
            data[data.find(b"Adobe") + 11] = 2
            path.write_bytes(data)
        Image.open(path).convert("RGB").save(path.with_suffix(".png"), optimize=True)


for folder in ("resize", "jpeg"):
    (HERE / folder).mkdir(exist_ok=True)
resize_fixtures()
jpeg_fixtures()
