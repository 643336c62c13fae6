//! Draws a scene at any size. Edges are smooth: a pixel's share of a shape follows from the distance of its
//! centre to the edge, which is known exactly, so no sampling is needed.

use std::f64::consts::{FRAC_PI_2, TAU};

use ocelli_ir::rng::Stream;

use super::{Colour, Object, Place, Scene, Shape, Size};

/// Half the side of an object's cell, in units of the picture's side.
const CELL: f64 = 0.25;

/// Radius that an object reaches at most, in the same unit, before its own size varies.
const BIG: f64 = 0.195;
const SMALL: f64 = 0.105;

/// What stays free at the border of a cell: a pixel at a picture size of 32.
const MARGIN: f64 = 0.033;

/// The picture of `scene` into `pixels`: `size x size` of them, RGB, row by row.
pub(super) fn draw(scene: &Scene, stream: &mut Stream, size: usize, pixels: &mut [u8]) {
    background(stream, size, pixels);
    for object in &scene.objects {
        let figure = Figure::new(object, stream);
        figure.paint(pixels, size);
    }
}

/// A light, soft slope of colour, another in each picture.
fn background(stream: &mut Stream, size: usize, pixels: &mut [u8]) {
    let base = 214.0 + 26.0 * stream.unit();
    let tint = [(); 3].map(|()| base + 14.0 * (stream.unit() - 0.5));
    let angle = TAU * stream.unit();
    let (across, down) = (angle.cos(), angle.sin());
    let at = |i: usize| (i as f64 + 0.5) / size as f64 - 0.5;
    for (i, pixel) in pixels.chunks_exact_mut(3).enumerate() {
        let slope = 14.0 * (across * at(i % size) + down * at(i / size));
        pixel.copy_from_slice(&tint.map(|c| (c + slope + 0.5) as u8));
    }
}

/// An object with its exact place, size and colour; lengths in units of the picture's side.
struct Figure {
    shape: Shape,
    x: f64,
    y: f64,
    radius: f64,
    colour: [f64; 3],
}

impl Figure {
    fn new(object: &Object, stream: &mut Stream) -> Self {
        let largest = match object.size {
            Size::Small => SMALL,
            Size::Big => BIG,
        };
        let radius = largest * (0.9 + 0.1 * stream.unit());
        let room = CELL - MARGIN - radius;
        let (column, row) = match object.place {
            Place::TopLeft => (0.25, 0.25),
            Place::TopRight => (0.75, 0.25),
            Place::BottomLeft => (0.25, 0.75),
            Place::BottomRight => (0.75, 0.75),
        };
        let x = column + room * (2.0 * stream.unit() - 1.0);
        let y = row + room * (2.0 * stream.unit() - 1.0);
        let colour = rgb(object.colour).map(|c| c + 16.0 * (stream.unit() - 0.5));
        Self { shape: object.shape, x, y, radius, colour }
    }

    /// Mixes the figure into the pixels that it covers.
    fn paint(&self, pixels: &mut [u8], size: usize) {
        let scale = size as f64;
        let span = |centre: f64| {
            let first = ((centre - self.radius) * scale - 1.0).max(0.0) as usize;
            first..(((centre + self.radius) * scale + 2.0) as usize).min(size)
        };
        for y in span(self.y) {
            for x in span(self.x) {
                let dx = (x as f64 + 0.5) / scale - self.x;
                let dy = (y as f64 + 0.5) / scale - self.y;
                let distance = edge_distance(self.shape, dx / self.radius, dy / self.radius) * self.radius;
                let share = (0.5 - distance * scale).clamp(0.0, 1.0);
                let offset = (y * size + x) * 3;
                for (pixel, colour) in pixels[offset..offset + 3].iter_mut().zip(self.colour) {
                    let mixed = f64::from(*pixel) * (1.0 - share) + colour * share;
                    *pixel = (mixed + 0.5).clamp(0.0, 255.0) as u8;
                }
            }
        }
    }
}

/// Distance of a point to the edge of a shape that reaches to radius 1; negative inside.
fn edge_distance(shape: Shape, x: f64, y: f64) -> f64 {
    /// Half the side of a square of about the disc's area.
    const SQUARE: f64 = 0.86;
    /// From a triangle's middle to its sides: its corners are twice as far. It reaches as far up as down
    /// when its middle lies lower by a quarter of its height.
    const TRIANGLE: f64 = 0.57;
    const MIDDLE: f64 = TRIANGLE / 2.0;
    match shape {
        Shape::Circle => x.hypot(y) - 1.0,
        Shape::Square => x.abs().max(y.abs()) - SQUARE,
        // Inside of a triangle: on the inner side of all three lines.
        Shape::Triangle => {
            let [a, b, c] = lines(x, y - MIDDLE, [0.0, 1.0, 2.0].map(|i| FRAC_PI_2 + i * TAU / 3.0));
            // Sharp corners would fray beyond their tips: the frame cuts that off.
            let frame = (x.abs() - TRIANGLE * 3f64.sqrt()).max(y.abs() - 1.5 * TRIANGLE);
            (a.max(b).max(c) - TRIANGLE).max(frame)
        }
        // Inside of a star: on the inner side of at least four of the five lines through its points.
        Shape::Star => {
            let turn = TAU / 5.0;
            let mut d = lines(x, y, [0.0, 1.0, 2.0, 3.0, 4.0].map(|i| i * turn - FRAC_PI_2));
            d.sort_by(f64::total_cmp);
            // The lines of a star of radius 1 pass the centre at cos(72 degrees).
            (d[3] - turn.cos()).max(x.hypot(y) - 1.0)
        }
    }
}

/// For each direction, how far the point lies in it.
fn lines<const N: usize>(x: f64, y: f64, directions: [f64; N]) -> [f64; N] {
    directions.map(|angle| x * angle.cos() + y * angle.sin())
}

/// Colours that stay apart on a light ground, also when small.
fn rgb(colour: Colour) -> [f64; 3] {
    match colour {
        Colour::Red => [216.0, 28.0, 36.0],
        Colour::Orange => [246.0, 130.0, 16.0],
        Colour::Yellow => [238.0, 210.0, 10.0],
        Colour::Green => [30.0, 150.0, 60.0],
        Colour::Blue => [36.0, 80.0, 220.0],
        Colour::Purple => [124.0, 40.0, 160.0],
        Colour::Pink => [250.0, 110.0, 180.0],
        Colour::Black => [24.0, 24.0, 28.0],
    }
}
