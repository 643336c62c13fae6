//! Configuration: YAML presets and files, overrides in Hydra's grammar, one typed [`Config`].
//!
//! The way of a value: text ([`load`] finds it) -> nodes with positions -> one slot per key of the table
//! ([`KEYS`]) -> overrides -> `${...}` -> type and range -> checks across keys -> [`Config`].
//! Invariants: a value has exactly one meaning, given by the table; whatever is wrong is reported, all of it
//! at once, with its place; nothing that has no effect is accepted in silence. No input makes it panic.

mod capability;
mod choices;
mod defaults;
mod error;
mod groups;
mod help;
mod interpolate;
mod json;
mod keys;
mod limits;
mod node;
mod overrides;
mod preset;
mod print;
mod resolve;
mod sizes;
mod slots;
mod suggest;
mod typed;
mod types;
mod unread;
mod yaml;

pub use choices::{
    Alpha, AmpDtype, AmpResidual, Architecture, CaptionChoice, Dataset, Device, Loss, LrSchedule, Optimizer,
    Padding, Pixels, ProfilerMode, Quoting, Residual, Shuffle, Unknown,
};
pub use error::{ConfigErrors, Problem, ProblemKind};
pub use groups::Pattern;
pub use help::{all_help, help, hint};
pub use keys::{EXACT_STEPS, GROUPS, Interval, KEYS, Key, Kind, Status};
pub use node::Origin;
pub use overrides::{literal, sweep};
pub use preset::{PRESET_NAMES, Request, load, own_file_sets};
pub use resolve::{Resolved, load_stored, load_text};
pub use types::{Config, DataConfig, LoadStrategy, ModelConfig, Switch, TrainerConfig, Workers};
