//! That every reader finds the contents that it was compiled to read: the plan is run on identities instead of
//! numbers. For state slots that is cheap at any size; for scratch memory it goes byte by byte.

use ocelli_ir::SlotId;
use ocelli_ir::plan::{Operand, Place, Plan};
use std::collections::HashMap;

/// Checks all readers of state slots. A slot holds one tensor at a time: until a launch writes it, what it held as the
/// program started, which its first reader names.
pub(super) fn slots(p: &Plan) -> Result<(), String> {
    let mut held = Held::default();
    for (i, l) in p.launches.iter().enumerate() {
        let who = || format!("launch {i} ({} in '{}')", l.op, l.scope);
        l.inputs.iter().try_for_each(|o| held.read(o, &who))?;
        l.outputs.iter().try_for_each(|o| held.write(o, &who))?;
    }
    p.outputs.iter().try_for_each(|(name, o)| held.read(o, &|| format!("output '{name}'")))
}

/// What each slot that was touched holds, and whether a launch wrote it.
#[derive(Default)]
struct Held(HashMap<SlotId, (u32, bool)>);

impl Held {
    fn read(&mut self, o: &Operand, who: &dyn Fn() -> String) -> Result<(), String> {
        let Place::State(slot) = o.place else { return Ok(()) };
        let (held, _) = *self.0.entry(slot).or_insert((o.contents, false));
        if held == o.contents { Ok(()) } else { Err(missing(&who(), o)) }
    }

    fn write(&mut self, o: &Operand, who: &dyn Fn() -> String) -> Result<(), String> {
        let Place::State(slot) = o.place else { return Ok(()) };
        match self.0.insert(slot, (o.contents, true)) {
            Some((held, false)) if held == o.contents => {
                Err(format!("{} writes {} after it was read", who(), o.ty()))
            }
            _ => Ok(()),
        }
    }
}

/// Checks all readers of scratch memory, byte by byte.
pub(super) fn arena(p: &Plan) -> Result<(), String> {
    let mut arena = vec![u32::MAX; p.arena_bytes];
    let finds = |o: &Operand, arena: &[u32]| {
        let (mut fine, size) = (true, o.dtype.size());
        if let Place::Arena(at) = o.place {
            o.view.for_each_run(|i, len| {
                // To the end in any case: so the compiler compares many at once.
                let held = &arena[at + i * size..][..len * size];
                fine &= held.iter().fold(true, |all, &held| all & (held == o.contents));
            });
        }
        fine
    };
    for (i, l) in p.launches.iter().enumerate() {
        if let Some(o) = l.inputs.iter().find(|o| !finds(o, &arena)) {
            return Err(missing(&format!("launch {i} ({} in '{}')", l.op, l.scope), o));
        }
        for o in &l.outputs {
            let size = o.dtype.size();
            if let Place::Arena(at) = o.place {
                o.view.for_each_run(|i, len| arena[at + i * size..][..len * size].fill(o.contents));
            }
        }
    }
    match p.outputs.iter().find(|(_, o)| !finds(o, &arena)) {
        Some((name, o)) => Err(missing(&format!("output '{name}'"), o)),
        None => Ok(()),
    }
}

fn missing(who: &str, o: &Operand) -> String {
    format!("{who} reads {} before it is written or after it was lost", o.ty())
}
