"""Writes the parquet files of tests/parquet, in the layouts that image sets come in.

usage: python make_parquet_fixtures.py     (needs numpy, pillow, pyarrow)

Every set has the same rows: picture i is a flat 8x8 PNG of the grey level 10 * i, its caption is `picture i`.
"""
import base64, io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

OUT = Path(__file__).parent / "parquet"
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def png(i):
    buf = io.BytesIO()
    Image.fromarray(np.full((8, 8, 3), 10 * i, np.uint8)).save(buf, "PNG")
    return buf.getvalue()


def captions(ids):
    return [f"picture {i}" for i in ids]


def images(ids):
    return pa.array([{"bytes": png(i), "path": f"{i}.png"} for i in ids], IMAGE)


def table(ids, image=None, **more):
    return pa.table({"image": images(ids) if image is None else image, "caption": pa.array(captions(ids), pa.string()), "url": ["x"] * len(ids), **more})


def write(name, table, **options):
    path = OUT / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **{"row_group_size": 4, **options})


def main():
    ten = range(10)
    # Compressions, encodings, page versions, with and without an index of pages.
    for codec in ("none", "snappy", "zstd", "gzip", "lz4", "brotli"):
        write(f"codec/{codec}.parquet", table(ten), compression=codec)
    write("codec/plain.parquet", table(ten), compression="none", use_dictionary=False)
    write("codec/v2.parquet", table(ten), data_page_version="2.0", use_dictionary=False)
    write("codec/v2_none.parquet", table(ten), compression="none", data_page_version="2.0", use_dictionary=False)
    delta = dict(use_dictionary=False, column_encoding={"image.bytes": "DELTA_LENGTH_BYTE_ARRAY", "caption": "DELTA_BYTE_ARRAY"})
    write("codec/delta.parquet", table(ten).select(["image", "caption"]), **delta)
    paged = dict(row_group_size=10, write_page_index=True, data_page_size=100, write_batch_size=3)
    write("codec/index.parquet", table(ten), **paged)
    write("codec/index_none.parquet", table(ten), compression="none", use_dictionary=False, **paged)

    # Ways to hold a picture.
    write("image/binary.parquet", table(ten, pa.array([png(i) for i in ten], pa.binary())))
    write("image/large_binary.parquet", table(ten, pa.array([png(i) for i in ten], pa.large_binary())))
    write("image/base64.parquet", table(ten, pa.array([base64.b64encode(png(i)).decode() for i in ten])))
    write("image/path.parquet", table(ten, pa.array([f"files/{i}.png" for i in ten])))
    mixed = [{"bytes": png(i), "path": None} if i % 2 else {"bytes": None, "path": f"files/{i}.png"} for i in ten]
    mixed[6], mixed[8] = None, {"bytes": None, "path": "../../../Cargo.toml"}
    write("image/mixed.parquet", table(ten, pa.array(mixed, IMAGE)))
    for i in ten:
        if i != 4:
            (OUT / "image/files").mkdir(parents=True, exist_ok=True)
            (OUT / f"image/files/{i}.png").write_bytes(png(i))

    # Ways to hold captions.
    def with_captions(array, name="caption"):
        return pa.table({"image": images(ten), name: array})

    lists = [[f"picture {i}", "", f"again {i}"][: i % 4] for i in ten]
    write("caption/list.parquet", with_captions(pa.array(lists, pa.list_(pa.string())), "captions"))
    raw = [[{"raw": f"picture {i}", "sentid": i, "tokens": "x"}, {"raw": f"again {i}", "sentid": -i, "tokens": "y"}] for i in ten]
    write("caption/list_struct.parquet", with_captions(pa.array(raw), "sentences"))
    write("caption/nulls.parquet", with_captions(pa.array([None if i % 3 == 0 else f"picture {i}" for i in ten])))
    write("caption/binary.parquet", with_captions(pa.array([f"picture {i}".encode() for i in ten], pa.binary())))
    latin = [b"picture", b"caf\xe9"] + [b"x"] * 8
    write("caption/latin.parquet", with_captions(pa.array(latin, pa.binary())))
    write("caption/number.parquet", with_captions(pa.array(list(ten))))
    write("caption/none.parquet", with_captions(pa.array([None] * 10, pa.string())))
    nested = pa.array([[[f"picture {i}"]] for i in ten])
    write("caption/nested.parquet", with_captions(nested))

    # Columns.
    two = {"thumb": images(ten), "image": images(ten), "caption": captions(ten)}
    write("columns/two.parquet", pa.table(two))
    write("columns/lists.parquet", pa.table({"image": pa.array([[png(i)] for i in ten]), "caption": captions(ten)}))
    write("columns/pixels.parquet", pa.table({"image": pa.array([[[1, 2]]] * 10), "caption": captions(ten)}))
    write("columns/other.parquet", pa.table({"jpeg": pa.array([png(i) for i in ten]), "words": captions(ten)}))
    write("columns/no_rows.parquet", table(range(0)))

    # A few bytes that would be 200 MiB: as a picture, and as a caption.
    zeros = bytes(200 << 20)
    bomb = table([0, 1], pa.array([{"bytes": zeros, "path": None}, {"bytes": png(1), "path": None}], IMAGE))
    write("hostile/picture_bomb.parquet", bomb, row_group_size=1, compression="zstd", use_dictionary=False)
    bomb = pa.table({"image": images([0]), "caption": pa.array([zeros], pa.binary())})
    write("hostile/caption_bomb.parquet", bomb, compression="zstd", use_dictionary=False)
    # One row with 20 million nulls for captions.
    nulls = pa.ListArray.from_arrays(pa.array([0, 20_000_000], pa.int32()), pa.nulls(20_000_000, pa.string()))
    write("hostile/null_bomb.parquet", pa.table({"image": images([0]), "caption": nulls}))

    # A checksum for each page, and a page for each row.
    write("checksums.parquet", table(range(6)), row_group_size=6, compression="none", use_dictionary=False,
          data_page_size=1, write_batch_size=1, write_page_checksum=True)

    # Shards and splits.
    for split, first, n, of in (("train", 0, 7, 3), ("validation", 7, 2, 1), ("test", 9, 1, 1)):
        ids = np.array_split(np.arange(first, first + n), of)
        for k, part in enumerate(ids):
            write(f"sharded/data/{split}-{k:05d}-of-{of:05d}-0a1b2c.parquet", table(part.tolist()), row_group_size=2)
            write(f"folders/default/{split}/{k:04d}.parquet", table(part.tolist()))


main()
