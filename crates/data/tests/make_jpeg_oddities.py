#!/usr/bin/env python3
"""Odd and damaged JPEG files, and what Pillow makes of each.

odd/NAME.jpg        the file
odd/expected.json   for each: width, height and the CRC-32 of Pillow's pixels in RGB, or null if Pillow refuses it

Made from files in jpeg/ and edges/. Needs pillow; run it after make_image_fixtures.py.
"""

import io
import json
import pathlib
import struct
import zlib

from PIL import Image, ImageOps

HERE = pathlib.Path(__file__).parent


def segments(data):
    """The file in pieces that begin with a marker: a scan's codes belong to its header, without restart markers."""
    at = [i for i in range(len(data) - 1) if data[i] == 0xFF and data[i + 1] not in (0, 0xFF)]
    starts, end = [], 0
    for i in at:
        if i < end or 0xD0 <= data[i + 1] <= 0xD7:
            continue
        starts.append(i)
        if data[i + 1] not in (0xD8, 0xD9):
            end = i + 2 + int.from_bytes(data[i + 2 : i + 4], "big")
    return [data[a:b] for a, b in zip(starts, starts[1:] + [len(data)])]


def marked(pieces, marker):
    return [i for i, piece in enumerate(pieces) if piece[1] == marker]


def with_byte(piece, at, value):
    return piece[:at] + bytes([value]) + piece[at + 1 :]


def segment(marker, body):
    return b"\xff" + bytes([marker]) + struct.pack(">H", len(body) + 2) + body


def missing_scans():
    """Progressive files that end after each of their scans."""
    for name in ("jpeg/progressive", "edges/98x70_420_progressive", "edges/20x700_422_progressive",
                 "edges/50x50_440_progressive", "edges/7x9_444_progressive", "jpeg/cmyk_progressive"):
        pieces = segments((HERE / f"{name}.jpg").read_bytes())
        for n, scan in enumerate(marked(pieces, 0xDA), 1):
            yield f"{n}_scans_of_{pathlib.Path(name).stem}", b"".join(pieces[: scan + 1]) + b"\xff\xd9"


def component_names():
    file = (HERE / "edges/50x50_420.jpg").read_bytes()
    pieces = segments(file)
    (frame,), (scan,) = marked(pieces, 0xC0), marked(pieces, 0xDA)
    for name, ids in (("equal_ids", (1, 1, 1)), ("two_equal_ids", (1, 2, 2)), ("ids_as_rgb", (82, 71, 66))):
        changed = pieces[:]
        for i, number in enumerate(ids):
            changed[frame] = with_byte(changed[frame], 10 + 3 * i, number)
            changed[scan] = with_byte(changed[scan], 5 + 2 * i, number)
        yield name, b"".join(changed)
    for order in ((2, 1, 3), (1, 3, 2)):
        changed = pieces[:]
        for i, number in enumerate(order):
            changed[scan] = with_byte(changed[scan], 5 + 2 * i, number)
        yield "order_" + "".join(map(str, order)), b"".join(changed)


def streams_and_markers():
    file = (HERE / "jpeg/baseline_420.jpg").read_bytes()
    pieces = segments(file)
    tables = [piece for piece in pieces if piece[1] in (0xDB, 0xC4)]
    rest = [piece for piece in pieces if piece[1] not in (0xDB, 0xC4)]
    apart = [b"\xff\xd8", *tables, b"\xff\xd9"]
    yield "tables_apart", b"".join(apart + rest)
    yield "tables_apart_twice", b"".join(apart + apart + rest)
    yield "tables_apart_then_zero", b"".join(apart + [b"\0"] + rest)
    yield "tables_alone", b"".join(apart)
    scan = marked(pieces, 0xDA)[0]
    extra = {
        "second_start": b"\xff\xd8", "tem": b"\xff\x01", "res_02": b"\xff\x02\0\2", "jpg": b"\xff\xc8\0\2", "dhp": b"\xff\xde\0\2",
        "exp": b"\xff\xdf\0\2", "jpg0": b"\xff\xf0\0\2", "restart": b"\xff\xd3", "dnl": b"\xff\xdc\0\4\0\1", "zeros": bytes(9),
        "adobe_of_5": segment(0xEE, b"Adobe"), "adobe_of_7": segment(0xEE, b"Adobe\0\0"), "jfif_of_6": segment(0xE0, b"JFIF\0\1"),
        "jfif_of_7": segment(0xE0, b"JFIF\0\1\1"), "comment_of_length_0": b"\xff\xfe\0\0", "comment_of_length_1": b"\xff\xfe\0\1",
        "dac": segment(0xCC, b"\0\0"), "wide_factors": segment(0xDB, b"\x22" + bytes(128)),
        "bad_table_unused": segment(0xC4, b"\3\3" + bytes(15) + b"\1\2\3"),
    }
    for name, more in extra.items():
        yield f"{name}_in_header", b"".join(pieces[:1] + [more] + pieces[1:])
        yield f"{name}_at_the_end", b"".join(pieces[:-1] + [more] + pieces[-1:])
    yield "second_scan", b"".join(pieces[: scan + 1] + [pieces[scan]] + pieces[scan + 1 :])
    yield "all_ones_code", file.replace(tables[-1], segment(0xC4, tables[-1][4:5] + b"\2" + bytes(15) + b"\0\1"))


def codes():
    """Damage among the codes, but not such that they do not suffice for the last block: that is a cut file to us."""
    file = (HERE / "edges/90x100_444.jpg").read_bytes()
    # Near the end: elsewhere libjpeg-turbo leaves what its fast way made of the block before it saw the fill bytes.
    at = file.rindex(b"\xff\0")
    assert len(file) - at < 1500
    yield "fill_before_stuffed_zero", file[:at] + b"\xff\xff\xff" + file[at:]
    scan = file.index(b"\xff\xda") + 14
    for n in (0, 1, 2, 4, 5):
        place = scan + 200 + 331 * n
        yield f"flipped_{n}", with_byte(file, place, file[place] ^ 0x10)
    progressive = (HERE / "edges/90x100_444_progressive.jpg").read_bytes()
    for n in (0, 1, 2, 3, 4, 5, 8, 9, 10, 11):
        place = len(progressive) * (n + 4) // 17
        yield f"flipped_progressive_{n}", with_byte(progressive, place, progressive[place] ^ 0x10)


def restarts():
    for stem, progressive in (("restarts", False), ("progressive_restarts", True)):
        written = io.BytesIO()
        image = Image.open(HERE / "edges/50x50_444.jpg")
        image.save(written, "JPEG", quality=80, subsampling=0, progressive=progressive, restart_marker_blocks=5)
        file = written.getvalue()
        first = file.index(b"\xff\xda")
        marks = [i for i in range(first, len(file) - 1) if file[i] == 0xFF and 0xD0 <= file[i + 1] <= 0xD7]
        for number in range(8):
            yield f"{stem}_second_is_{number}", with_byte(file, marks[1] + 1, 0xD0 + number)
        yield f"{stem}_second_is_05", with_byte(file, marks[1] + 1, 5)
        yield f"{stem}_without_second", file[: marks[1]] + file[marks[1] + 2 :]
        yield f"{stem}_without_interval_1", file[: marks[0]] + file[marks[1] :]
        yield f"{stem}_without_part", file[: marks[1] - 9] + file[marks[1] :]
        yield f"{stem}_twice", file[: marks[2]] + file[marks[1] : marks[2]] + file[marks[2] :]


def steep():
    """Factors of which every product leaves 16 bits."""
    for name in ("jpeg/baseline_420", "edges/90x100_444"):
        pieces = segments((HERE / f"{name}.jpg").read_bytes())
        for high in (3, 60, 130, 255):
            tables = b"".join(bytes([0x10 + n]) + bytes([high, 7 + high // 2]) * 64 for n in range(2))
            changed = [segment(0xDB, tables) if piece[1] == 0xDB else piece for piece in pieces]
            yield f"steep_{high}_{pathlib.Path(name).name}", b"".join(changed)
        # The first coefficient alone is large: flat blocks, whose level wraps.
        tables = b"".join(bytes([n]) + b"\xff" + bytes(63) for n in range(2))
        yield f"level_{pathlib.Path(name).name}", b"".join(
            segment(0xDB, tables) if piece[1] == 0xDB else piece for piece in pieces
        )


def orientations():
    file = (HERE / "jpeg/baseline_422.jpg").read_bytes()

    def exif(kind, count, value, tail=b""):
        entry = struct.pack("<HHI", 0x112, kind, count) + value
        return b"II*\0\x08\0\0\0\1\0" + entry + bytes(4) + tail

    rational = exif(5, 1, struct.pack("<I", 26), struct.pack("<II", 12, 2))
    for name, blocks in {
        "of_two_values": [exif(3, 2, struct.pack("<HH", 6, 1))], "as_ratio": [rational], "as_text": [exif(2, 2, b"6\0\0\0")],
        "as_float": [exif(11, 1, struct.pack("<f", 6))], "in_two_segments": [rational[:12], rational[12:]],
        "beyond_block": [exif(3, 4, struct.pack("<I", 26))],
    }.items():
        more = b"".join(segment(0xE1, b"Exif\0\0" + block) for block in blocks)
        yield f"orientation_{name}", file[:2] + more + file[2:]


def seen(data):
    try:
        image = ImageOps.exif_transpose(Image.open(io.BytesIO(data), formats=["JPEG"])).convert("RGB")
        return [*image.size, zlib.crc32(image.tobytes())]
    except (OSError, SyntaxError, ValueError):
        return None


def main():
    folder, expected = HERE / "odd", {}
    folder.mkdir(exist_ok=True)
    for made in (missing_scans, component_names, streams_and_markers, codes, restarts, steep, orientations):
        for name, data in made():
            (folder / f"{name}.jpg").write_bytes(data)
            expected[name] = seen(data)
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


main()
