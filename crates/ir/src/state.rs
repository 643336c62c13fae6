//! Rule 1: everything that outlives a step is a slot of one `State`, at a fixed place outside every plan.

use crate::rng::Stream;
use crate::{DType, TensorType};
use std::collections::HashMap;

/// Index of a slot in its [`StateSpec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotId(pub u32);

/// What a slot is for: decides what a snapshot holds, what the optimiser touches, what `explain` sums up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlotKind {
    /// A trained weight.
    Parameter,
    /// An optimiser moment of a parameter.
    Moment,
    /// A step counter.
    Counter,
    /// The factor on the loss and what decides its next value; kept, but new training may start without it.
    LossScale,
    /// A setting that the host may change between steps: learning rate, seed.
    Setting,
    /// A sum over the batches of one step, empty between steps.
    Accumulator,
    /// Metrics of the last steps, read by the host when it likes.
    Ring,
    /// Keys and values of decoding.
    Cache,
    /// The numbers of an f32 slot, rounded to 16 bits. A program that writes that slot writes this one too, and so does the
    /// host, which never writes this one by itself.
    Rounded(SlotId),
}

impl SlotKind {
    /// True if a snapshot holds slots of this kind. Settings come from the configuration; rings and caches
    /// mean nothing in another process; accumulators are empty when a snapshot is taken; what is rounded follows.
    pub const fn in_snapshot(self) -> bool {
        matches!(self, Self::Parameter | Self::Moment | Self::Counter | Self::LossScale)
    }
}

/// How a slot starts. Random starts are keyed by (seed, slot name, element): they do not depend on what else
/// the model has, on order, or on the number of ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// All zeros.
    Zeros,
    /// All the same number.
    Constant(f64),
    /// Uniform on `[-bound, bound)`.
    Uniform {
        /// Half the width.
        bound: f64,
    },
    /// Normal with mean 0.
    Normal {
        /// Standard deviation.
        std: f64,
    },
}

/// One slot.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// Unique name; parameters carry the published names.
    pub name: String,
    /// Shape and dtype.
    pub ty: TensorType,
    /// What it is for.
    pub kind: SlotKind,
    /// How it starts.
    pub init: Init,
}

impl Slot {
    /// The starting bytes of the slot, little-endian, row-major.
    pub fn initial(&self, seed: u64) -> Vec<u8> {
        let mut bytes = vec![0; self.ty.bytes()];
        self.fill(seed, &mut bytes);
        bytes
    }

    /// Writes f32 numbers, little-endian, rounded to the slot's 16 bits, to the nearest with ties to even.
    fn round(&self, f32: &[u8], out: &mut [u8]) {
        for (x, out) in f32.chunks_exact(4).zip(out.chunks_exact_mut(2)) {
            let x = f32::from_le_bytes([x[0], x[1], x[2], x[3]]);
            out.copy_from_slice(&match self.ty.dtype {
                DType::F16 => half::f16::from_f32(x).to_le_bytes(),
                _ => half::bf16::from_f32(x).to_le_bytes(),
            });
        }
    }

    /// Writes the starting bytes of the slot, as [`initial`](Self::initial), into memory of its size.
    pub fn fill(&self, seed: u64, out: &mut [u8]) {
        let stream = Stream::new(seed, &self.name);
        let value = |i: usize| match self.init {
            Init::Zeros => 0.0,
            Init::Constant(x) => x,
            Init::Uniform { bound } => f64::from(stream.uniform_at(i as u64, bound)),
            Init::Normal { std } => f64::from(stream.normal_at(i as u64, std)),
        };
        for (i, out) in out.chunks_exact_mut(self.ty.dtype.size()).enumerate() {
            let x = value(i);
            match self.ty.dtype {
                DType::F32 => out.copy_from_slice(&(x as f32).to_le_bytes()),
                DType::U32 => out.copy_from_slice(&(x as u32).to_le_bytes()),
                DType::U8 => out[0] = x as u8,
                DType::Bf16 => out.copy_from_slice(&half::bf16::from_f64(x).to_le_bytes()),
                DType::F16 => out.copy_from_slice(&half::f16::from_f64(x).to_le_bytes()),
            }
        }
    }
}

/// The slots of a state, shared by all programs that work on it. Slots are only ever added.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StateSpec {
    slots: Vec<Slot>,
    by_name: HashMap<String, SlotId>,
}

impl StateSpec {
    /// The slot named `slot.name`, added if new.
    ///
    /// # Errors
    /// If a slot of that name exists with another type or kind: two programs disagree about the state.
    pub fn declare(&mut self, slot: Slot) -> Result<SlotId, String> {
        if let Some(&id) = self.by_name.get(&slot.name) {
            let have = &self.slots[id.0 as usize];
            if have.ty != slot.ty || have.kind != slot.kind {
                return Err(format!(
                    "state slot '{}' is {} {:?} already, and cannot also be {} {:?}",
                    slot.name, have.ty, have.kind, slot.ty, slot.kind
                ));
            }
            return Ok(id);
        }
        let id = SlotId(self.slots.len() as u32);
        self.by_name.insert(slot.name.clone(), id);
        self.slots.push(slot);
        Ok(id)
    }

    /// The slot of an id.
    pub fn get(&self, id: SlotId) -> &Slot {
        &self.slots[id.0 as usize]
    }

    /// The id of a name.
    pub fn find(&self, name: &str) -> Option<SlotId> {
        self.by_name.get(name).copied()
    }

    /// The first of these slots that `other` has not, or has at another place or of another type.
    pub fn first_missing(&self, other: &Self) -> Option<&Slot> {
        let same = |(a, b): (&Slot, &Slot)| a.name == b.name && a.ty == b.ty;
        let equal = self.slots.iter().zip(&other.slots).take_while(|&pair| same(pair)).count();
        self.slots.get(equal)
    }

    /// The slots that hold another one's numbers rounded.
    pub fn rounded(&self, of: SlotId) -> impl Iterator<Item = (SlotId, &Slot)> {
        self.iter().filter(move |(_, s)| s.kind == SlotKind::Rounded(of))
    }

    /// Writes the starting bytes of a slot into memory of its size.
    pub fn fill(&self, slot: &Slot, seed: u64, out: &mut [u8]) {
        match slot.kind {
            SlotKind::Rounded(of) => slot.round(&self.get(of).initial(seed), out),
            _ => slot.fill(seed, out),
        }
    }

    /// What the host writes with `bytes` of a slot: those slots that hold it rounded, with their bytes.
    ///
    /// # Errors
    /// If the slot holds another one's numbers, or has another size.
    pub fn writes(&self, id: SlotId, bytes: &[u8]) -> Result<Vec<(SlotId, Vec<u8>)>, String> {
        let slot = self.get(id);
        if let SlotKind::Rounded(of) = slot.kind {
            return Err(format!("slot '{}' follows from '{}': write that", slot.name, self.get(of).name));
        }
        if bytes.len() != slot.ty.bytes() {
            return Err(format!("slot '{}' holds {} bytes, got {}", slot.name, slot.ty.bytes(), bytes.len()));
        }
        let rounded = |(id, to): (SlotId, &Slot)| {
            let mut out = vec![0; to.ty.bytes()];
            to.round(bytes, &mut out);
            (id, out)
        };
        Ok(self.rounded(id).map(rounded).collect())
    }

    /// All slots with their ids, in the order of declaration.
    pub fn iter(&self) -> impl Iterator<Item = (SlotId, &Slot)> {
        self.slots.iter().enumerate().map(|(i, s)| (SlotId(i as u32), s))
    }

    /// Number of slots.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// True without slots.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Bytes of all slots of the kinds that `keep` accepts.
    pub fn bytes(&self, keep: impl Fn(SlotKind) -> bool) -> usize {
        self.slots.iter().filter(|s| keep(s.kind)).map(|s| s.ty.bytes()).sum()
    }
}
