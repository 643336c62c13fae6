#!/usr/bin/env python3
"""Draws the three pictures of images/inputs.csv. They are the project's own: nothing is taken from elsewhere.

    python -m venv venv && venv/bin/pip install pillow
    venv/bin/python scripts/make_inputs.py

Each scene is drawn at four times its size and scaled down, which makes its edges smooth.
"""

import base64
import csv
import io
import math
import pathlib
import random

from PIL import Image, ImageDraw, ImageFilter

WIDTH, HEIGHT, SCALE = 160, 120, 4


def canvas(top, bottom, horizon=HEIGHT):
    """A picture whose colour runs from `top` to `bottom` at the row `horizon`."""
    image = Image.new("RGB", (WIDTH * SCALE, HEIGHT * SCALE))
    draw = ImageDraw.Draw(image)
    for y in range(HEIGHT * SCALE):
        t = min(y / (horizon * SCALE), 1.0)
        draw.line([(0, y), (WIDTH * SCALE, y)], fill=tuple(round(a + (b - a) * t) for a, b in zip(top, bottom)))
    return image, draw


def scaled(points):
    return [(x * SCALE, y * SCALE) for x, y in points]


def box(x0, y0, x1, y1):
    return [x0 * SCALE, y0 * SCALE, x1 * SCALE, y1 * SCALE]


def cloud(draw, x, y):
    for dx, dy, r in [(-9, 2, 6), (0, -2, 9), (9, 1, 7), (16, 3, 4)]:
        draw.ellipse(box(x + dx - r, y + dy - r * 0.7, x + dx + r, y + dy + r * 0.7), fill=(250, 251, 253))


def barn(rng):
    image, draw = canvas((92, 160, 226), (196, 226, 246), 80)
    cloud(draw, 32, 22)
    cloud(draw, 118, 34)
    hill = [(x, 84 - 16 * math.sin(math.pi * x / WIDTH)) for x in range(WIDTH + 1)]
    draw.polygon(scaled(hill + [(WIDTH, HEIGHT), (0, HEIGHT)]), fill=(86, 152, 62))
    for _ in range(900):
        x, y = rng.uniform(0, WIDTH), rng.uniform(72, HEIGHT)
        if y > 85 - 16 * math.sin(math.pi * x / WIDTH):
            green = rng.randint(120, 178)
            draw.line(scaled([(x, y), (x + rng.uniform(-1, 1), y - 2.4)]), fill=(green - 58, green, 48), width=2)
    draw.polygon(scaled([(52, 76), (52, 50), (60, 38), (76, 30), (92, 38), (100, 50), (100, 76)]), fill=(176, 36, 32))
    draw.polygon(scaled([(48, 52), (58, 37), (76, 27), (94, 37), (104, 52), (100, 52), (91, 40), (76, 31), (61, 40), (52, 52)]),
                 fill=(92, 84, 82))
    for x in range(56, 100, 5):
        draw.line(scaled([(x, 52), (x, 76)]), fill=(150, 28, 26), width=2)
    draw.rectangle(box(67, 57, 85, 76), fill=(240, 236, 228))
    draw.rectangle(box(69, 59, 83, 76), fill=(140, 26, 26))
    draw.line(scaled([(69, 59), (83, 76)]), fill=(240, 236, 228), width=6)
    draw.line(scaled([(83, 59), (69, 76)]), fill=(240, 236, 228), width=6)
    draw.rectangle(box(71, 40, 81, 49), fill=(240, 236, 228))
    draw.rectangle(box(73, 42, 79, 47), fill=(52, 56, 70))
    draw.rectangle(box(128, 66, 132, 84), fill=(96, 66, 40))
    draw.ellipse(box(115, 40, 145, 72), fill=(44, 104, 48))
    draw.ellipse(box(119, 42, 137, 60), fill=(62, 126, 58))
    return image


def boat(rng):
    image, draw = canvas((70, 56, 120), (250, 160, 84), 70)
    draw.ellipse(box(98, 46, 130, 78), fill=(255, 226, 140))
    for y in range(70 * SCALE, HEIGHT * SCALE):
        t = (y / SCALE - 70) / (HEIGHT - 70)
        draw.line([(0, y), (WIDTH * SCALE, y)], fill=(round(190 - 150 * t), round(112 - 70 * t), round(96 - 4 * t)))
    for _ in range(170):
        y = rng.uniform(71, HEIGHT)
        spread = 4 + (y - 70) * 0.4
        x, length = rng.gauss(114, spread), rng.uniform(2, 9)
        draw.line(scaled([(x, y), (x + length, y)]), fill=(255, rng.randint(186, 226), 130), width=3)
    for _ in range(150):
        x, y = rng.uniform(0, WIDTH), rng.uniform(72, HEIGHT)
        draw.line(scaled([(x, y), (x + rng.uniform(3, 10), y)]), fill=(60, 44, 92), width=2)
    draw.polygon(scaled([(30, 84), (82, 84), (74, 95), (40, 95)]), fill=(70, 36, 30))
    draw.polygon(scaled([(30, 84), (82, 84), (80, 87), (32, 87)]), fill=(226, 208, 190))
    draw.line(scaled([(56, 84), (56, 24)]), fill=(60, 40, 34), width=6)
    draw.polygon(scaled([(58, 26), (58, 80), (84, 80)]), fill=(246, 236, 222))
    draw.polygon(scaled([(54, 32), (54, 80), (34, 80)]), fill=(226, 206, 194))
    for x, y in [(126, 26), (136, 20), (22, 18)]:
        draw.arc(box(x - 5, y - 2, x, y + 3), 190, 340, fill=(44, 34, 60), width=4)
        draw.arc(box(x, y - 2, x + 5, y + 3), 200, 350, fill=(44, 34, 60), width=4)
    return image


def plant(rng):
    image, draw = canvas((238, 226, 204), (222, 204, 178))
    draw.rectangle(box(96, 8, 146, 66), fill=(250, 250, 246))
    draw.rectangle(box(100, 12, 142, 62), fill=(168, 210, 238))
    draw.line(scaled([(121, 12), (121, 62)]), fill=(250, 250, 246), width=10)
    draw.line(scaled([(100, 37), (142, 37)]), fill=(250, 250, 246), width=10)
    draw.polygon(scaled([(0, 88), (WIDTH, 88), (WIDTH, HEIGHT), (0, HEIGHT)]), fill=(150, 98, 58))
    for _ in range(60):
        x, y = rng.uniform(-20, WIDTH), rng.uniform(89, HEIGHT)
        brown = rng.randint(-14, 14)
        draw.line(scaled([(x, y), (x + rng.uniform(20, 60), y)]), fill=(146 + brown, 94 + brown, 54 + brown), width=2)
    draw.ellipse(box(40, 98, 96, 107), fill=(112, 70, 40))
    for angle, length in [(-62, 40), (-38, 50), (-15, 56), (8, 58), (30, 52), (54, 44), (74, 32), (-80, 28)]:
        a = math.radians(angle)
        tip = (64 + length * math.sin(a), 72 - length * math.cos(a))
        side = (4.5 * math.cos(a), 4.5 * math.sin(a))
        middle = ((64 + tip[0]) / 2, (72 + tip[1]) / 2)
        leaf = [(64, 72), (middle[0] + side[0], middle[1] + side[1]), tip, (middle[0] - side[0], middle[1] - side[1])]
        green = rng.randint(108, 150)
        draw.polygon(scaled(leaf), fill=(40, green, 56))
        draw.line(scaled([(64, 72), tip]), fill=(120, green + 50, 96), width=3)
    draw.polygon(scaled([(46, 74), (82, 74), (77, 102), (51, 102)]), fill=(196, 98, 58))
    draw.rectangle(box(43, 69, 85, 77), fill=(212, 114, 70))
    draw.polygon(scaled([(46, 77), (82, 77), (81, 80), (46, 80)]), fill=(166, 78, 44))
    draw.ellipse(box(108, 84, 130, 90), fill=(240, 240, 240))
    draw.polygon(scaled([(108, 87), (130, 87), (127, 103), (111, 103)]), fill=(226, 230, 236))
    draw.arc(box(125, 89, 137, 99), 280, 100, fill=(226, 230, 236), width=8)
    draw.ellipse(box(110, 85, 128, 89), fill=(92, 56, 36))
    return image


SCENES = [
    (barn, "A red barn stands on a green hill under a blue sky."),
    (boat, "A sailing boat on calm water at sunset."),
    (plant, "A potted plant and a cup of coffee on a wooden table."),
]


def jpeg(image):
    image = image.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS).filter(ImageFilter.GaussianBlur(0.3))
    out = io.BytesIO()
    image.save(out, "JPEG", quality=85, optimize=True)
    return out.getvalue()


def main():
    path = pathlib.Path(__file__).parent.parent / "images/inputs.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["b64string_images", "caption"])
        for scene, caption in SCENES:
            picture = jpeg(scene(random.Random(7)))
            writer.writerow([base64.b64encode(picture).decode(), caption])


if __name__ == "__main__":
    main()
