"""Writes tests/formats: PNG, WebP and GIF files of every kind, and `expected.json` with what they show.

For each file `expected.json` has its size, `pillow` (what `Image.open(f).convert("RGB")` gives) and, where it differs,
`white` (the same laid on white), as base64 of RGB bytes. PNG of 16 bits is scaled (x / 257, rounded); that Pillow
agrees within a level, except for grey, which it clips, is checked here.

Called by make_image_fixtures.py.
"""

import base64
import io
import json
import struct
import zlib

import numpy as np
from PIL import Image, ImageOps

W, H = 11, 9
EXPECTED = {}


def waves(channels, top=255, width=W, height=H):
    """Samples from 0 to `top`, no two neighbours equal."""
    y, x = np.mgrid[0:height, 0:width]
    return np.stack([(x * (3 + k) + y * (5 + 2 * k) + 7 * k) * top // 37 % (top + 1) for k in range(channels)], -1)


def note(path, pillow, white=None):
    pillow = np.asarray(pillow, np.uint8)
    code = lambda a: base64.b64encode(np.ascontiguousarray(a).tobytes()).decode()
    size = [pillow.shape[1], pillow.shape[0]]
    EXPECTED[path.name] = {"size": size, "pillow": code(pillow)}
    if white is not None and (pillow != white).any():
        EXPECTED[path.name]["white"] = code(np.asarray(white, np.uint8))


def laid_on_white(rgb, alpha):
    """Rounded to the nearest level."""
    rgb, alpha = rgb.astype(int), alpha.astype(int)[..., None]
    return (rgb * alpha + 255 * (255 - alpha) + 127) // 255


def note_by_pillow(path):
    """What Pillow shows, and the same with Pillow's own alpha laid on white."""
    image = Image.open(path)
    rgba = np.asarray(image.convert("RGBA"))
    note(path, image.convert("RGB"), laid_on_white(rgba[..., :3], rgba[..., 3]))


# PNG


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def packed(samples, depth):
    """One row of samples as bytes, with its filter."""
    flat = samples.reshape(-1)
    if depth == 16:
        return b"\0" + flat.astype(">u2").tobytes()
    bits = (flat[:, None] >> np.arange(depth - 1, -1, -1)) & 1
    return b"\0" + np.packbits(bits.astype(np.uint8).reshape(-1)).tobytes()


PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def png(samples, depth, kind, palette=None, transparent=None, interlaced=False):
    height, width, _ = samples.shape
    out = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, interlaced))
    if palette is not None:
        out += chunk(b"PLTE", palette.astype(np.uint8).tobytes())
    if transparent is not None:
        out += chunk(b"tRNS", transparent)
    parts = [samples[y::dy, x::dx] for x, y, dx, dy in PASSES] if interlaced else [samples]
    rows = [packed(row, depth) for part in parts if part.size for row in part]
    return out + chunk(b"IDAT", zlib.compress(b"".join(rows), 9)) + chunk(b"IEND", b"")


def png_fixtures(folder):
    kinds = {0: ("grey", 1, (1, 2, 4, 8, 16)), 2: ("rgb", 3, (8, 16)), 3: ("palette", 1, (1, 2, 4, 8))}
    kinds |= {4: ("grey_alpha", 2, (8, 16)), 6: ("rgba", 4, (8, 16))}
    for kind, (name, channels, depths) in kinds.items():
        for depth in depths:
            for clear in (False, True) if kind < 4 else (False,):
                for interlaced in (False, True):
                    parts = [name + str(depth)] + ["trns"] * clear + ["interlaced"] * interlaced
                    path = folder / ("_".join(parts) + ".png")
                    png_fixture(path, kind, channels, depth, clear, interlaced)


def png_fixture(path, kind, channels, depth, clear, interlaced):
    top = (1 << depth) - 1
    samples = waves(channels, top)
    palette = transparent = None
    eight = (samples * 255 * 2 + top) // (2 * top)
    rgb = np.repeat(eight[..., :1], 3, -1) if channels < 3 else eight[..., :3]
    alpha = eight[..., -1] if channels in (2, 4) else np.full((H, W), 255)
    if kind == 3:
        palette = waves(3, 255, min(top + 1, 256), 1)[0]
        rgb = palette[samples[..., 0]]
        if clear:
            entries = np.array([0, 128, 255, 40][: min(top + 1, 4)], np.uint8)
            transparent = entries.tobytes()
            alpha = np.append(entries, np.full(256, 255))[samples[..., 0]]
    elif clear:
        colour = samples[4, 5]
        transparent = colour.astype(">u2").tobytes()
        alpha = np.where((samples == colour).all(-1), 0, 255)
    path.write_bytes(png(samples, depth, kind, palette, transparent, interlaced))
    shown = np.asarray(Image.open(path).convert("RGB")).astype(int)
    if not (kind == 0 and depth == 16):
        assert abs(shown - rgb).max() <= (depth == 16), path
    note(path, rgb, laid_on_white(rgb, alpha))


def apng_fixtures(folder):
    frames = [Image.fromarray(waves(3).astype(np.uint8)), Image.fromarray(waves(3).astype(np.uint8)[::-1])]
    options = {"save_all": True, "append_images": frames[1:]}
    frames[0].save(folder / "animated.png", **options)
    # The default image is no frame: Pillow shows it, browsers show the first frame instead.
    frames[0].save(folder / "animated_default_apart.png", default_image=True, **options)
    for name in ("animated.png", "animated_default_apart.png"):
        note_by_pillow(folder / name)
        assert EXPECTED[name]["pillow"] == base64.b64encode(waves(3).astype(np.uint8).tobytes()).decode()


# WebP


def riff(*chunks):
    body = b"".join(tag + struct.pack("<I", len(data)) + data + b"\0" * (len(data) & 1) for tag, data in chunks)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def riff_chunks(data):
    at = 12
    while at < len(data):
        length = struct.unpack("<I", data[at + 4 : at + 8])[0]
        yield data[at : at + 4], data[at + 8 : at + 8 + length]
        at += 8 + length + (length & 1)


def saved(image, **options):
    out = io.BytesIO()
    image.save(out, "WEBP", **options)
    return out.getvalue()


def small(n):
    return struct.pack("<I", n)[:3]


def webp_fixtures(folder):
    width, height = 37, 29
    smooth = lambda n: (waves(n, 255, 6, 5).astype(np.uint8))
    big = lambda n: Image.fromarray(smooth(n)).resize((width, height), Image.Resampling.BICUBIC)
    colour, with_alpha = big(3), big(4)
    hidden = np.asarray(with_alpha).copy()
    hidden[3:9, 4:20, 3] = 0
    hidden = Image.fromarray(hidden)
    files = {
        "lossy": saved(colour, quality=80),
        "lossy_alpha": saved(hidden, quality=80, exact=True),
        "lossless": saved(colour, lossless=True),
        "lossless_alpha": saved(hidden, lossless=True, exact=True),
        "animated": saved(colour, save_all=True, append_images=[colour.rotate(180)], lossless=True),
        "animated_lossy": saved(colour, save_all=True, append_images=[colour.rotate(180)], quality=80),
        "animated_alpha": saved(hidden, save_all=True, append_images=[hidden.rotate(180)], quality=80),
    }
    # A first frame smaller than its canvas, at an offset; and one alone, which is no animation.
    for name, frames in (("offset", 2), ("single_frame", 1)):
        part = [c for c in riff_chunks(files["lossless"]) if c[0] == b"VP8L"][0][1]
        inner = b"VP8L" + struct.pack("<I", len(part)) + part + b"\0" * (len(part) & 1)
        frame = small(2) + small(3) + small(width - 1) + small(height - 1) + small(100) + b"\0" + inner
        canvas = bytes([0x12, 0, 0, 0]) + small(width + 6) + small(height + 9)
        files[name] = riff((b"VP8X", canvas), (b"ANIM", bytes(6)), *[(b"ANMF", frame)] * frames)
    for name, data in files.items():
        path = folder / f"{name}.webp"
        path.write_bytes(data)
        note_by_pillow(path)


# GIF


def lzw(indices, bits):
    """Valid GIF compression that compresses nothing: a clear code before the table would make codes longer."""
    clear, out, acc, filled = 1 << bits, bytearray([bits]), 0, 0
    codes = []
    for i, index in enumerate(indices):
        codes += [clear] * (i % max(clear - 2, 1) == 0) + [index]
    for code in codes + [clear + 1]:
        acc |= code << filled
        filled += bits + 1
        while filled >= 8:
            out.append(acc & 255)
            acc, filled = acc >> 8, filled - 8
    data = bytes(out[1:]) + bytes([acc & 255] * (filled > 0))
    blocks = [data[i : i + 255] for i in range(0, len(data), 255)]
    return bytes([bits]) + b"".join(bytes([len(b)]) + b for b in blocks) + b"\0"


def table(colours):
    size = max(len(colours) - 1, 1).bit_length()
    return size - 1, np.append(colours, np.zeros((2**size - len(colours), 3))).astype(np.uint8).tobytes()


def frame(indices, bits, at=(0, 0), colours=None, transparent=None, interlaced=False):
    height, width = indices.shape
    out = b"" if transparent is None else b"!\xf9\x04\x01\0\0" + bytes([transparent]) + b"\0"
    size, local = table(colours) if colours is not None else (0, b"")
    flags = (0x80 | size if local else 0) | 0x40 * interlaced
    out += b"," + struct.pack("<HHHHB", *at, width, height, flags) + local
    order = [y for first, step in ((0, 8), (4, 8), (2, 4), (1, 2)) for y in range(first, height, step)]
    return out + lzw(indices[order if interlaced else slice(None)].reshape(-1), bits)


def gif(screen, *frames, colours=None):
    size, table_bytes = table(colours) if colours is not None else (0, b"")
    head = struct.pack("<HHBBB", *screen, 0x80 | size if table_bytes else 0, 0, 0)
    return b"GIF89a" + head + table_bytes + b"".join(frames) + b";"


def gif_fixtures(folder):
    indices = waves(1, 15)[..., 0]
    sixteen, other = waves(3, 255, 16, 1)[0], waves(3, 255, 16, 1)[0][::-1]
    screen = (W, H)
    files = {
        "plain": gif(screen, frame(indices, 4), colours=sixteen),
        "transparent": gif(screen, frame(indices, 4, transparent=3), colours=sixteen),
        "interlaced": gif(screen, frame(indices, 4, interlaced=True), colours=sixteen),
        "local_palette": gif(screen, frame(indices, 4, colours=other)),
        "both_palettes": gif(screen, frame(indices, 4, colours=other, transparent=5), colours=sixteen),
        "offset": gif((W + 5, H + 4), frame(indices, 4, at=(2, 3)), colours=sixteen),
        "offset_transparent": gif((W + 5, H + 4), frame(indices, 4, at=(2, 3), transparent=7), colours=sixteen),
        "beyond_screen": gif((W - 4, H - 3), frame(indices, 4, at=(1, 2)), colours=sixteen),
        "two_colours": gif(screen, frame(indices % 2, 2), colours=sixteen[:2]),
        "no_palette": gif(screen, frame(indices, 4)),
        "short_palette": gif(screen, frame(indices, 4), colours=sixteen[:8]),
        "animated": gif(screen, frame(indices, 4), frame(indices[::-1], 4), colours=sixteen),
    }
    for name, data in files.items():
        path = folder / f"{name}.gif"
        path.write_bytes(data)
        if name in ("offset", "beyond_screen"):  # Pillow has no alpha for what nothing is drawn on.
            shown = np.asarray(Image.open(path).convert("RGB"))
            white = np.full_like(shown, 255)
            x, y = (2, 3) if name == "offset" else (1, 2)
            white[y : y + H, x : x + W] = shown[y : y + H, x : x + W]
            note(path, shown, white)
        else:
            note_by_pillow(path)
    # By Pillow's own writer, with real compression.
    photo = Image.fromarray(waves(3, 255, 64, 50).astype(np.uint8)).quantize(200)
    photo.save(folder / "photo.gif", interlace=1)
    note_by_pillow(folder / "photo.gif")


# EXIF, and the smallest and longest pictures


def orientation_fixtures(folder):
    upright = Image.fromarray(waves(3).astype(np.uint8))
    turn = Image.Transpose
    turns = {2: turn.FLIP_LEFT_RIGHT, 3: turn.ROTATE_180, 4: turn.FLIP_TOP_BOTTOM, 5: turn.TRANSPOSE}
    turns |= {6: turn.ROTATE_90, 7: turn.TRANSVERSE, 8: turn.ROTATE_270}
    for value in (1, 2, 3, 4, 5, 6, 7, 8, 99):
        stored = upright.transpose(turns[value]) if value in turns else upright
        exif = Image.Exif()
        exif[0x112] = value
        for ending, options in (("png", {}), ("webp", {"lossless": True})):
            path = folder / f"o{value}.{ending}"
            stored.save(path, exif=exif.tobytes(), **options)
            assert (np.asarray(ImageOps.exif_transpose(Image.open(path)).convert("RGB")) == np.asarray(upright)).all()


def thin_fixtures(folder):
    longest = {"jpg": 65500, "png": 65535, "webp": 16383, "gif": 65535}
    for ending, limit in longest.items():
        for width, height in ((1, 1), (1, 2000), (2000, 1), (limit, 1), (1, limit)):
            image = Image.new("RGB", (width, height), (200, 60, 30))
            options = {"webp": {"lossless": True}, "jpg": {"quality": 95, "subsampling": 0}}.get(ending, {})
            image.save(folder / f"thin_{width}x{height}.{ending}", **options)


def write(folder):
    png_fixtures(folder)
    apng_fixtures(folder)
    webp_fixtures(folder)
    gif_fixtures(folder)
    orientation_fixtures(folder)
    thin_fixtures(folder)
    lines = [f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in sorted(EXPECTED.items())]
    (folder / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
