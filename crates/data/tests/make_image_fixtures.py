#!/usr/bin/env python3
"""Writes the fixtures of the picture tests: small pictures, and what Pillow makes of them.

    python -m venv venv && venv/bin/pip install pillow numpy simplejpeg opencv-python-headless
    venv/bin/python crates/data/tests/make_image_fixtures.py

resize/NAME.png            the picture
resize/NAME_SIZE.png       the same, resized by Pillow with BILINEAR to SIZE x SIZE
jpeg/NAME.jpg, NAME.png    a JPEG file, and what Pillow decodes from it, in RGB
photo/NAME.jpg, NAME.png   a JPEG file of a camera's kind, and what a model should see of it: by Pillow, at 96 x 96
formats/                   see make_format_fixtures.py
edges/                     see make_jpeg_fixtures.py
odd/                       see make_jpeg_oddities.py
"""

import pathlib

import numpy as np
import simplejpeg
from PIL import Image

import make_format_fixtures
import make_jpeg_fixtures

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
        "cmyk_progressive": (Image.fromarray(four, "CMYK"), {"progressive": True}),
        "rgb": (Image.fromarray(colour), {"keep_rgb": True, "subsampling": 0}),
        "grey_progressive": (Image.fromarray(colour[..., 0]), {"progressive": True}),
    }
    for name, (image, options) in kinds.items():
        path = HERE / f"jpeg/{name}.jpg"
        image.save(path, quality=85, **options)
        if name == "ycck":  # Pillow writes CMYK only: the Adobe marker's last byte says how to read it.
            data = bytearray(path.read_bytes())
            data[data.find(b"Adobe") + 11] = 2
            path.write_bytes(data)
        Image.open(path).convert("RGB").save(path.with_suffix(".png"), optimize=True)
    by_hand = {
        "baseline_440": simplejpeg.encode_jpeg(colour, quality=85, colorsubsampling="440"),
        "baseline_411": simplejpeg.encode_jpeg(colour, quality=85, colorsubsampling="411"),
        # Sampling factors of a single component say nothing, yet some cameras write 2 x 2.
        "grey_factors": (HERE / "jpeg/grey.jpg").read_bytes().replace(b"\x01\x01\x11\0", b"\x01\x01\x22\0", 1),
        "cmyk_plain": without_adobe((HERE / "jpeg/cmyk.jpg").read_bytes()),
    }
    for name, data in by_hand.items():
        path = HERE / f"jpeg/{name}.jpg"
        path.write_bytes(data)
        Image.open(path).convert("RGB").save(path.with_suffix(".png"), optimize=True)


def scene(width, height, seed):
    """Noise of every length, discs and bars of full colours, grain: what a photograph has, and its hardest edges."""
    random = np.random.default_rng(seed)
    picture = np.full((height, width, 3), 127.0)
    for k in range(1, 7):
        for channel in range(3):
            coarse = Image.fromarray(random.normal(0, 1, (2**k, 2**k)).astype(np.float32))
            smooth = coarse.resize((width, height), Image.Resampling.BICUBIC)
            picture[..., channel] += np.asarray(smooth) * 60 / k
    y, x = np.mgrid[0:height, 0:width]
    for _ in range(12):
        cx, cy, radius = random.integers(0, width), random.integers(0, height), random.integers(5, height // 4)
        picture[(x - cx) ** 2 + (y - cy) ** 2 < radius**2] = random.integers(0, 2, 3) * 255
    picture[height // 2 : height // 2 + 3] = 0
    picture += random.normal(0, 3, picture.shape)
    return np.clip(picture, 0, 255).astype(np.uint8)


def photo_fixtures():
    kinds = {
        "420": ((320, 240), {"subsampling": 2, "quality": 75}),
        "422": ((320, 213), {"subsampling": 1, "quality": 90}),
        "444": ((240, 320), {"subsampling": 0, "quality": 60}),
        "progressive": ((320, 240), {"subsampling": 2, "quality": 85, "progressive": True}),
        "grey": ((320, 240), {"quality": 80}),
    }
    for seed, (name, (size, options)) in enumerate(kinds.items()):
        image = Image.fromarray(scene(*size, seed)).convert("L" if name == "grey" else "RGB")
        path = HERE / f"photo/{name}.jpg"
        image.save(path, optimize=True, **options)
        seen = Image.open(path).convert("RGB").resize((96, 96), Image.Resampling.BILINEAR)
        seen.save(path.with_suffix(".png"), optimize=True)


def without_adobe(data):
    """Cuts the Adobe segment out."""
    at = data.find(b"Adobe") - 4
    return data[:at] + data[at + 2 + int.from_bytes(data[at + 2 : at + 4], "big") :]


for folder in ("resize", "jpeg", "photo", "formats", "edges"):
    (HERE / folder).mkdir(exist_ok=True)
resize_fixtures()
jpeg_fixtures()
photo_fixtures()
make_format_fixtures.write(HERE / "formats")
make_jpeg_fixtures.write(HERE / "edges", picture)
