//! What a layer is built in: the graph, the state that its parameters live in, and whether dropout acts.

use ocelli_ir::dropout::Dropout;
use ocelli_ir::ops::DropoutOp;
use ocelli_ir::{Graph, GraphError, Init, Slot, SlotId, SlotKind, StateSpec, TensorType, Value};

/// The values that key dropout (rule 6).
#[derive(Clone, Copy, Debug)]
pub struct DropoutKeys {
    /// u32 `[2]`: the run's seed, low word first.
    pub seed: Value,
    /// u32 `[]`: the optimiser step.
    pub step: Value,
    /// u32 `[B]`: the place of each sample in the whole data stream.
    pub samples: Value,
}

/// What the program is for.
#[derive(Clone, Copy, Debug)]
pub enum Mode {
    /// Dropout acts, under these keys.
    Train(DropoutKeys),
    /// Dropout is off.
    Eval,
}

/// A graph under construction, with the state its parameters live in.
#[derive(Debug)]
pub struct Context<'a> {
    /// The graph.
    pub g: &'a mut Graph,
    /// The slots; parameters are added as layers ask for them.
    pub state: &'a mut StateSpec,
    /// Training or not.
    pub mode: Mode,
    /// The parameters used so far: slot and value.
    pub parameters: Vec<(SlotId, Value)>,
}

impl<'a> Context<'a> {
    /// A context without parameters yet.
    pub fn new(g: &'a mut Graph, state: &'a mut StateSpec, mode: Mode) -> Self {
        Self { g, state, mode, parameters: vec![] }
    }

    /// Builds what `f` adds inside the module `name`.
    pub fn scoped<T>(&mut self, name: impl AsRef<str>, f: impl FnOnce(&mut Self) -> T) -> T {
        self.g.enter(name.as_ref());
        let out = f(self);
        self.g.leave();
        out
    }

    /// The parameter `name` of the current module, f32. Asking twice gives the same value: tied weights.
    ///
    /// # Errors
    /// If the state has a slot of that name with another shape.
    #[track_caller]
    pub fn param(&mut self, name: &str, shape: &[usize], init: Init) -> Result<Value, GraphError> {
        let name =
            if self.g.scope().is_empty() { name.to_string() } else { format!("{}.{name}", self.g.scope()) };
        let slot = Slot { name, ty: TensorType::f32(shape.to_vec()), kind: SlotKind::Parameter, init };
        let id = self.state.declare(slot).map_err(|m| self.g.error("parameter", m))?;
        if let Some((_, value)) = self.parameters.iter().find(|(slot, _)| *slot == id) {
            return Ok(*value);
        }
        let value = self.g.read(self.state, id);
        self.parameters.push((id, value));
        Ok(value)
    }

    /// Dropout with probability `p` at the module `name` of the current path; nothing when not training.
    /// `x` is `[B, .., C]`.
    ///
    /// # Errors
    /// If the batch of `x` is not that of the keys.
    #[track_caller]
    pub fn dropout(&mut self, x: Value, p: f64, name: &str) -> Result<Value, GraphError> {
        match (self.mode, self.dropout_at(p, name)) {
            (Mode::Train(keys), Some(dropout)) => {
                self.g.one(DropoutOp { dropout }, &[x, keys.seed, keys.step, keys.samples])
            }
            _ => Ok(x),
        }
    }

    /// The dropout of a module `name` of the current path; none when not training or `p` is 0.
    pub fn dropout_at(&self, p: f64, name: &str) -> Option<Dropout> {
        let path = format!("{}.{name}", self.g.scope());
        matches!(self.mode, Mode::Train(_)).then(|| Dropout::new(p, &path)).flatten()
    }
}
