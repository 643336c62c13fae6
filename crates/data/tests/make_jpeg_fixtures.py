"""Small JPEG files of every sampling and of sizes that end inside a block, and what Pillow decodes from them.

edges/NAME.jpg         the file
edges/expected.json    for each: width, height, and the CRC-32 of Pillow's pixels in RGB
edges/NAME_SIZE.png    some of them, resized by Pillow with BILINEAR to SIZE x SIZE

Needs numpy, pillow and opencv-python-headless (which writes every sampling). Called by make_image_fixtures.py.
"""

import io
import json
import struct
import zlib

import cv2
import numpy as np
from PIL import Image

SIZES = [(1, 1), (3, 2), (7, 9), (17, 33), (50, 50), (90, 100), (98, 70), (20, 700)]
SAMPLINGS = ["444", "422", "420", "440", "411"]
RESIZED = ["90x100_420_progressive", "98x70_422", "50x50_411"]


def write(folder, picture):
    expected = {}

    def keep(name, data):
        (folder / f"{name}.jpg").write_bytes(data)
        seen = Image.open(io.BytesIO(data)).convert("RGB")
        expected[name] = [*seen.size, zlib.crc32(seen.tobytes())]
        for size in (32, 224) if name in RESIZED else ():
            small = seen.resize((size, size), Image.Resampling.BILINEAR)
            small.save(folder / f"{name}_{size}.png", optimize=True)

    for width, height in SIZES:
        image = picture(width, height)
        image[:, -2:] = [255, 0, 40]  # Colours that jump in the last columns.
        for sampling in SAMPLINGS:
            for progressive in (0, 1):
                name = f"{width}x{height}_{sampling}" + "_progressive" * progressive
                keep(name, encoded(image, sampling, progressive))
    four = picture(45, 35, 4)
    ink = jpeg(Image.fromarray(four, "CMYK"), quality=85, subsampling=2)
    keep("cmyk_420", ink)
    at = ink.find(b"Adobe") + 11  # How to read the four: 0 as ink, 2 as brightness, colours and black.
    keep("ycck_420", ink[:at] + b"\2" + ink[at + 1 :])
    keep("apart_444", apart(picture(45, 35), 1))
    keep("apart_420", apart(picture(45, 35), 2))
    steep = [[1 + 40 * (i % 8 + i // 8) for i in range(64)]] * 2
    keep("factors_of_16_bits", jpeg(Image.fromarray(picture(45, 35)), qtables=steep, subsampling=2))
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


def encoded(image, sampling, progressive):
    options = [
        cv2.IMWRITE_JPEG_QUALITY, 90,
        cv2.IMWRITE_JPEG_PROGRESSIVE, progressive,
        cv2.IMWRITE_JPEG_OPTIMIZE, 1,
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR, getattr(cv2, f"IMWRITE_JPEG_SAMPLING_FACTOR_{sampling}"),
    ]
    return cv2.imencode(".jpg", np.ascontiguousarray(image[..., ::-1]), options)[1].tobytes()


def jpeg(image, **options):
    file = io.BytesIO()
    image.save(file, "JPEG", **options)
    return file.getvalue()


def apart(image, half):
    """A sequential file with a scan for each component: three grey files put together."""
    planes = list(Image.fromarray(image).convert("YCbCr").split())
    width, height = planes[0].size
    small = (-(-width // half), -(-height // half))
    planes[1:] = [plane.resize(small) for plane in planes[1:]]
    frame, scans = b"", b""
    for i, plane in enumerate(planes):
        segments, data = parts(jpeg(plane, quality=90, optimize=True))
        factors = 0x11 * half if i == 0 else 0x11
        frame += bytes([i + 1, factors, 0])
        tables = b"".join(b"\xff\xdb" + body if marker == 0xDB else b"\xff\xc4" + body
                          for marker, body in segments if marker in (0xDB, 0xC4))
        scans += tables + struct.pack(">2sH6B", b"\xff\xda", 8, 1, i + 1, 0, 0, 63, 0) + data
    head = struct.pack(">2sHBHHB", b"\xff\xc0", 17, 8, height, width, 3) + frame
    return b"\xff\xd8" + head + scans + b"\xff\xd9"


def parts(data):
    """The segments before the scan, each as marker and body with its length, and the scan's data."""
    at, segments = 2, []
    while True:
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        at += 2 + length
        if marker == 0xDA:
            return segments, data[at:-2]
        segments.append((marker, data[at - length : at]))
