//! How long ways to compute one thing take on the device, apart from all else.

use crate::driver::{Driven, DriverFault, Event, Graph, Stream};

/// Launches that are timed as one: what the clock and the host take is spread over them.
const LAUNCHES: usize = 16;
/// Microseconds that a series of launches is long enough for.
const ENOUGH: f32 = 250.0;
/// Series that are timed; the fastest counts.
const SERIES: usize = 3;
/// A way that takes so many times as long as the fastest at first is out.
const HOPELESS: f32 = 2.5;
/// What a way must be faster by than one before it: less may be noise.
const CLEARLY: f64 = 0.98;

/// Queues way number `.0` on copy number `.1` of its operands.
pub type Queue<'a> = dyn Fn(usize, usize) -> Result<(), String> + 'a;

/// The fastest of `ways` and its microseconds; a later one only if it is clearly faster. Ways that fail are passed
/// over; none if all do.
pub fn fastest(stream: &Stream, ways: usize, queue: &Queue<'_>) -> Option<(usize, f64)> {
    let mut best: Option<(usize, f64)> = None;
    let mut least = f32::INFINITY;
    for way in 0..ways {
        // The first launch may load code, the second shows how long a series must be.
        let Ok(alone) = once(stream, way, queue).and_then(|_| once(stream, way, queue)) else { continue };
        if alone > HOPELESS * least {
            continue;
        }
        least = least.min(alone);
        let launches = ((ENOUGH / alone.max(0.1)).ceil() as usize).clamp(2, LAUNCHES);
        let Ok(us) = series(stream, way, launches, queue) else { continue };
        if best.is_none_or(|(_, other)| us < CLEARLY * other) {
            best = Some((way, us));
        }
    }
    best
}

/// Why a way cannot be timed: whatever it is, another way is taken.
struct Failed;

impl From<DriverFault> for Failed {
    fn from(_: DriverFault) -> Self {
        Self
    }
}

/// Microseconds of one launch, the host's part included.
fn once(stream: &Stream, way: usize, queue: &Queue<'_>) -> Result<f32, Failed> {
    timed(stream, || queue(way, 0).map_err(|_| Failed))
}

/// Microseconds of a launch in a series, each on the next copy of the operands.
fn series(stream: &Stream, way: usize, launches: usize, queue: &Queue<'_>) -> Result<f64, Failed> {
    let graph = Graph::record(stream, || (0..launches).try_for_each(|i| queue(way, i).map_err(|_| Failed)))?;
    // SAFETY: the caller keeps all memory that `queue` uses until it returns, and `timed` waits for the device.
    let launch = || unsafe { graph.launch(stream) }.map_err(Failed::from);
    timed(stream, launch)?;
    let mut least = f32::INFINITY;
    for _ in 0..SERIES {
        least = least.min(timed(stream, launch)?);
    }
    Ok(f64::from(least) / launches as f64)
}

/// Microseconds on the device of what `queue` queues.
fn timed(stream: &Stream, queue: impl FnOnce() -> Result<(), Failed>) -> Result<f32, Failed> {
    let [start, end] = [Event::new(stream.context())?, Event::new(stream.context())?];
    start.record(stream)?;
    let queued = queue();
    end.record(stream)?;
    end.synchronize()?;
    queued?;
    let ms: Driven<f32> = end.since(&start);
    Ok(ms? * 1e3)
}
