//! What the components of a JPEG file mean, and rows of them as red, green, blue: with the whole numbers of libjpeg
//! and, of CMYK, of Pillow.

use super::frame::Component;

/// What the components mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    Grey,
    /// Brightness and two differences of colour.
    Ycc,
    Rgb,
    /// Cyan, magenta, yellow, black: each 255 where no ink is, as Adobe has it.
    Cmyk,
    /// The first three as [`Colour::Ycc`], and black.
    Ycck,
}

impl Colour {
    /// From the number and names of the components, whether the file has a head of JFIF, and what Adobe's segment
    /// says, as libjpeg guesses.
    pub(super) fn of(components: &[Component], jfif: bool, adobe: Option<u8>) -> Self {
        match (components, adobe) {
            ([_], _) => Self::Grey,
            ([_, _, _], _) if jfif => Self::Ycc,
            ([_, _, _], Some(0)) => Self::Rgb,
            ([r, g, b], None) if [r.id, g.id, b.id] == *b"RGB" => Self::Rgb,
            ([_, _, _], _) => Self::Ycc,
            (_, None | Some(0)) => Self::Cmyk,
            _ => Self::Ycck,
        }
    }

    /// Writes one row of pixels. `rows` has as many rows as there are components, each as long as the row.
    #[inline(always)]
    pub(super) fn write(self, rows: &[&[u8]], out: &mut [u8]) {
        match (self, rows) {
            (_, [grey]) => {
                for (pixel, &x) in out.chunks_exact_mut(3).zip(*grey) {
                    pixel.fill(x);
                }
            }
            (Self::Rgb, [r, g, b]) => write(out, r, g, b, |r, g, b| [r, g, b]),
            (_, [y, cb, cr]) => write(out, y, cb, cr, from_ycc),
            (Self::Cmyk, [c, m, y, k]) => {
                write(out, c, m, y, |c, m, y| [c, m, y]);
                print(out, k);
            }
            (_, [y, cb, cr, k]) => {
                write(out, y, cb, cr, |y, cb, cr| {
                    let [r, g, b] = from_ycc(y, cb, cr);
                    [255 - r, 255 - g, 255 - b]
                });
                print(out, k);
            }
            _ => {}
        }
    }
}

/// Pixels that are converted together.
const RUN: usize = 32;

/// Converts three rows, and puts them together.
#[inline(always)]
fn write(out: &mut [u8], a: &[u8], b: &[u8], c: &[u8], convert: impl Fn(u8, u8, u8) -> [u8; 3]) {
    let ((a, a_rest), (b, b_rest), (c, c_rest)) = (a.as_chunks(), b.as_chunks(), c.as_chunks());
    let mut runs = out.chunks_mut(3 * RUN);
    for (((a, b), c), out) in a.iter().zip(b).zip(c).zip(&mut runs) {
        write_run(out, a, b, c, &convert);
    }
    if let Some(out) = runs.next() {
        let padded = |rest: &[u8]| {
            let mut run = [0; RUN];
            run[..rest.len()].copy_from_slice(rest);
            run
        };
        write_run(out, &padded(a_rest), &padded(b_rest), &padded(c_rest), &convert);
    }
}

/// Colour by colour: the compiler makes vector instructions of that.
#[inline(always)]
fn write_run(
    out: &mut [u8],
    a: &[u8; RUN],
    b: &[u8; RUN],
    c: &[u8; RUN],
    convert: &impl Fn(u8, u8, u8) -> [u8; 3],
) {
    let (mut reds, mut greens, mut blues) = ([0; RUN], [0; RUN], [0; RUN]);
    for i in 0..RUN {
        [reds[i], greens[i], blues[i]] = convert(a[i], b[i], c[i]);
    }
    for (((pixel, r), g), b) in out.chunks_exact_mut(3).zip(&reds).zip(&greens).zip(&blues) {
        (pixel[0], pixel[1], pixel[2]) = (*r, *g, *b);
    }
}

/// Bits behind the point of the factors below.
const POINT: u32 = 16;

const fn fixed(x: f64) -> i32 {
    (x * (1 << POINT) as f64 + 0.5) as i32
}

#[inline(always)]
fn from_ycc(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    let (y, cb, cr) = (i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128);
    let half = 1 << (POINT - 1);
    let r = y + ((fixed(1.402) * cr + half) >> POINT);
    let g = y + ((half - fixed(0.344_14) * cb - fixed(0.714_14) * cr) >> POINT);
    let b = y + ((fixed(1.772) * cb + half) >> POINT);
    [r.clamp(0, 255) as u8, g.clamp(0, 255) as u8, b.clamp(0, 255) as u8]
}

/// Colours of ink in `out`, on paper: black `k` goes over them.
#[inline(always)]
fn print(out: &mut [u8], k: &[u8]) {
    for (pixel, &k) in out.chunks_exact_mut(3).zip(k) {
        for x in pixel {
            let product = i32::from(255 - *x) * i32::from(k) + 128;
            *x = (i32::from(k) - ((product + (product >> 8)) >> 8)).clamp(0, 255) as u8;
        }
    }
}
