//! Finding a configuration: in `--config-path`, as a file, or among the presets built into the program.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::{ConfigErrors, Problem, ProblemKind};
use crate::keys::index;
use crate::node::{Origin, printable};
use crate::resolve::{Author, Resolved, load_from};
use crate::slots::Slots;
use crate::{suggest, typed, yaml};

/// Larger files are no configuration.
const MAX_BYTES: u64 = 1 << 20;

/// Files of a folder named in a message.
const SHOWN: usize = 5;

/// Presets that the program holds, so that it needs no files beside it.
const PRESETS: [(&str, &str); 5] = [
    ("shapes", include_str!("../../../configs/shapes.yaml")),
    ("shapes_long", include_str!("../../../configs/shapes_long.yaml")),
    ("shapes_smol", include_str!("../../../configs/shapes_smol.yaml")),
    ("coco_train", include_str!("../../../configs/coco_train.yaml")),
    ("csv_train", include_str!("../../../configs/csv_train.yaml")),
];

/// Names of the built-in presets.
pub const PRESET_NAMES: [&str; 5] = [PRESETS[0].0, PRESETS[1].0, PRESETS[2].0, PRESETS[3].0, PRESETS[4].0];

/// What the command line asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// `--config-name`: a preset or a file; `None`: the preset `shapes`.
    pub name: Option<String>,
    /// `--config-path`: a folder that is searched first.
    pub path: Option<PathBuf>,
    /// `key=value` and its kin, in order.
    pub overrides: Vec<String>,
}

/// Finds, reads and checks a configuration. Relative paths in it are relative to the working directory.
///
/// # Errors
/// Every problem found, those of the file before those of the overrides.
pub fn load(request: &Request) -> Result<Resolved, ConfigErrors> {
    let name = request.name.as_deref().unwrap_or(PRESET_NAMES[0]);
    let found = find(name, request.path.as_deref()).map_err(|what| {
        ConfigErrors::from(Problem {
            origin: Origin::Default,
            key: None,
            kind: ProblemKind::Unreadable(what),
        })
    })?;
    let author = if found.preset.is_some() { Author::Program } else { Author::User };
    let mut resolved = load_from(&found.label, &found.text, &request.overrides, author)?;
    resolved.notices.extend(found.notice);
    if let Some(preset) = found.preset {
        resolved.name = preset.into();
    }
    Ok(resolved)
}

/// True if `request` names a file of the user's own, no preset, and the file sets `key`. One that cannot be read sets
/// nothing: [`load`] says why.
pub fn own_file_sets(request: &Request, key: &str) -> bool {
    let Some(Ok(found)) = request.name.as_deref().map(|name| find(name, request.path.as_deref())) else {
        return false;
    };
    let root = yaml::parse(&found.label.as_str().into(), &found.text);
    let (None, Ok(root), Some(slot)) = (found.preset, root, index(key)) else { return false };
    let mut slots = Slots::new();
    slots.fill(root, &mut Vec::new());
    slots.set[slot].is_some()
}

struct Found {
    label: String,
    text: String,
    preset: Option<&'static str>,
    notice: Option<String>,
}

fn find(name: &str, folder: Option<&Path>) -> Result<Found, String> {
    if let Some(folder) = folder
        && let Some(file) = in_folder(name, folder)?
    {
        return read(&file);
    }
    let bare = name.strip_suffix(".yaml").unwrap_or(name);
    let preset = PRESETS.iter().find(|(known, _)| *known == bare);
    // `shapes` is the preset even beside a folder of that name; `shapes.yaml` is the file if there is one.
    let file = Path::new(name);
    if file.is_file() && (preset.is_none() || bare != name) {
        return read(file);
    }
    match preset {
        Some((known, text)) => Ok(Found {
            label: format!("built-in {known}.yaml"),
            text: (*text).into(),
            preset: Some(known),
            notice: folder.map(|f| format!("{} has no {name}: the built-in preset is used", shown(f))),
        }),
        None => Err(is_folder(name, folder).unwrap_or_else(|| not_found(name, folder))),
    }
}

/// What is said of a name that is a folder's: which file of it to name, and how.
fn is_folder(name: &str, above: Option<&Path>) -> Option<String> {
    let below = above.map(|above| above.join(name));
    let folder = [below, Some(PathBuf::from(name))].into_iter().flatten().find(|path| path.is_dir())?;
    let entries = std::fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok);
    let mut stems: Vec<String> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "yaml" || end == "yml") && path.is_file())
        .filter_map(|path| Some(printable(path.file_stem()?.to_str()?)))
        .collect();
    stems.sort();
    let (shown, more) = (shown(&folder), stems.len().saturating_sub(SHOWN));
    let Some(first) = stems.first() else {
        return Some(format!(
            "--config-name {shown}: a folder, and it holds no .yaml file; name a file, or a preset ({})",
            typed::list(&PRESET_NAMES, "and")
        ));
    };
    let listed = stems[..stems.len() - more].join(", ");
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!(
        "--config-name {shown}: a folder, and one of its files is wanted ({listed}{more}): --config-path {shown} \
         --config-name {first}"
    ))
}

/// `NAME`, `NAME.yaml` or `NAME.yml` in the folder.
fn in_folder(name: &str, folder: &Path) -> Result<Option<PathBuf>, String> {
    if !folder.is_dir() {
        return Err(format!("--config-path {}: there is no such folder", shown(folder)));
    }
    let candidates = [name.to_owned(), format!("{name}.yaml"), format!("{name}.yml")];
    Ok(candidates.iter().map(|candidate| folder.join(candidate)).find(|path| path.is_file()))
}

fn not_found(name: &str, folder: Option<&Path>) -> String {
    let place = match folder {
        Some(folder) => format!("neither {} nor the presets have a configuration", shown(folder)),
        None => "there is no preset and no file".into(),
    };
    let files = [format!("{name}.yaml"), format!("{name}.yml")];
    let file = files.iter().find(|file| Path::new(file).is_file()).map(|file| printable(file));
    let near = file.or_else(|| suggest::word(name, &PRESET_NAMES).map(Into::into));
    let near = near.map(|near| format!("; did you mean {near}?"));
    let presets = typed::list(&PRESET_NAMES, "and");
    format!("{place} {}{}; presets: {presets}", printable(name), near.unwrap_or_default())
}

fn read(path: &Path) -> Result<Found, String> {
    let label = path.to_string_lossy().into_owned();
    let failed = |what: String| format!("{}: {what}", printable(&label));
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|e| failed(format!("cannot be read: {e}")))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(failed(format!("larger than {MAX_BYTES} bytes: this is no configuration")));
    }
    let text = String::from_utf8(bytes)
        .map_err(|e| failed(format!("not UTF-8 text: byte {} is not", e.utf8_error().valid_up_to() + 1)))?;
    Ok(Found { label, text, preset: None, notice: None })
}

fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy())
}
