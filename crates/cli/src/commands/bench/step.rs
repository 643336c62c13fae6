//! `ocelli bench step`: how long a training step takes, data aside.

use super::batches::{self, Turns};
use super::launches;
use crate::args::BenchStep as Args;
use crate::commands::explain::device::Peaks;
use crate::commands::{device, step_of};
use crate::output::{arrived, say, say_json, warn};
use ocelli_train::engine::{DeviceMemory, Engine};
use ocelli_train::groups;
use ocelli_train::memory::{self, Load};
use serde_json::{Value, json};

/// Groups of steps; the time of a step is that of its group, divided.
const GROUPS: usize = 10;

/// Times the training step.
pub fn step(args: &Args) -> anyhow::Result<()> {
    let resolved = step_of::config(&args.step)?;
    let (c, executor) = device::of(&resolved, &mut warn)?;
    let (setup, longest) = step_of::setup(&args.step, &c)?;
    let size = step_of::sized(&c, longest, args.size.batch, args.size.length)?;
    let (side, vocab, per_step) =
        (setup.model.picture_side(), setup.model.vocab_size(), c.trainer.grad_accum);
    let mut asked = c.clone();
    asked.trainer.train_batch_size = size.batch;
    let load = Load { vocab, text: size.text, lengths: 1, validates: false };
    let planned = memory::foresee(&asked, load, &setup, &*executor)?;
    let mut engine = Engine::new(executor.clone(), setup, c.trainer.seed)?;
    engine.adopt(planned);
    engine.set_lr(c.trainer.lr)?;
    groups::notes(&c, engine.spec())?.iter().for_each(|line| warn(&format!("note: {line}")));
    let about = engine.describe_step(size)?;
    if !args.json {
        warn(&format!("note: {about}"));
    }
    let batches = batches::all(size, side, vocab);
    let mut turns = Turns::new(&batches, per_step, &engine)?;
    turns.steps(&mut engine, batches::WARM_UP)?;
    let warmed = engine.crossed();
    let (all, groups) = (args.steps as usize, (args.steps as usize).min(GROUPS));
    let mut ms = (0..groups)
        .map(|i| turns.steps(&mut engine, (i + 1) * all / groups - i * all / groups))
        .collect::<Result<Vec<_>, _>>()?;
    // Indices are as narrow as a batch lets them be: it is known once the steps are taken.
    let crossed = engine.crossed().zip(warmed).map(|(now, then)| (now - then) / all.max(1) as u64);
    let attempts = engine.attempts()?;
    let loss = engine.metrics(attempts - 1, attempts)?.first().map_or(f32::NAN, |m| m.loss());
    ms.sort_by(f64::total_cmp);
    let (least, median, most) = (ms[0], ms[ms.len() / 2], ms[ms.len() - 1]);
    let images = (size.batch * per_step) as f64 / median * 1e3;
    let peak = peak_bytes();
    let device = engine.device_memory()?;
    let programs = engine.step_programs(size)?;
    let timed =
        if args.launches { Some((engine.time_launches(&batches[0])?, Peaks::on(&*executor)?)) } else { None };
    if args.json {
        say_json(&json!({
            "step": about, "programs": launches::objects(&programs, timed.as_ref()), "batch": size.batch, "length": size.text, "grad_accum": per_step, "steps": all,
            "ms": {"median": median, "min": least, "max": most}, "images_per_s": images, "loss": loss,
            "bus_bytes_a_step": crossed, "peak_memory_bytes": peak, "device_memory": device.as_ref().map(of_device),
            "tuning": engine.tuning(), "roofline": timed.as_ref().map(|timed| timed.1.object()),
        }));
    } else {
        let bus =
            crossed.map_or_else(String::new, |n| format!("; {:.2} MB a step cross the bus", n as f64 / 1e6));
        let memory = match (&device, peak) {
            (Some(device), _) => format!("; {}", device_words(device)),
            (None, Some(peak)) => format!("; peak memory {:.0} MB", peak as f64 / 1e6),
            (None, None) => String::new(),
        };
        say(&format!(
            "{median:.2} ms a step (median of {} groups, {least:.2} to {most:.2}), {images:.0} images/s{bus}{memory}",
            ms.len()
        ));
        for line in timed.iter().flat_map(|timed| launches::lines(&programs, timed)) {
            say(&line);
        }
    }
    arrived()
}

/// A device's memory: what the plans say, and what the device says.
fn of_device(m: &DeviceMemory) -> Value {
    json!({
        "state_bytes": m.state, "arena_bytes": m.programs.arena, "work_bytes": m.programs.work,
        "own_bytes": m.programs.own, "used_on_device_bytes": m.room.total - m.room.free,
        "total_on_device_bytes": m.room.total,
    })
}

/// The same for a person. What the device has in use is that of all processes.
fn device_words(m: &DeviceMemory) -> String {
    let mb = |bytes: usize| format!("{:.0} MB", bytes as f64 / 1e6);
    format!(
        "device memory {} (state {}, scratch {}, workspaces and inputs {}); {} in use on the device in all",
        mb(m.state + m.programs.bytes()),
        mb(m.state),
        mb(m.programs.arena),
        mb(m.programs.work + m.programs.own),
        mb(m.room.total - m.room.free)
    )
}

/// The most memory that this process has had, if the system says.
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}
