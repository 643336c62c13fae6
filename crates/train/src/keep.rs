//! Which cache of decoded pictures a configuration asks for (`data_config.cache`).

use crate::error::TrainError;
use crate::settings;
use crate::sources::Sources;
use ocelli_config::Config;
use ocelli_data::cache::{self, Cached, Opened, Place, Wish, folder};
use ocelli_data::source::Source;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Puts caches before the sources, as far as the configuration wants them; what is said of them goes to the notes. Without
/// `make`, only those that are there.
///
/// # Errors
/// If a place that was named cannot hold one.
pub fn keep(c: &Config, sources: &mut Sources, make: bool) -> Result<Vec<Arc<Cached>>, TrainError> {
    let place = match c.data.cache.as_str() {
        "off" => return Ok(vec![]),
        "auto" => match folder() {
            Some(folder) => Place::Automatic(folder),
            None => return Ok(vec![]),
        },
        named => Place::named(named),
    };
    let mut caches = Vec::new();
    let validation = of_validation(&place);
    for (source, place) in [(Some(&mut sources.train), place), (sources.validation.as_mut(), validation)] {
        let Some(source) = source else { continue };
        let wish = Wish { make, ..wish(c, place) };
        let Opened { source: kept, cache, note } = cache::open(source.clone(), &wish)?;
        *source = kept;
        caches.extend(cache);
        sources.notes.extend(note);
    }
    Ok(caches)
}

/// The cache of one split, in a file that was named.
///
/// # Errors
/// If it cannot be there.
pub(crate) fn in_file(c: &Config, source: Arc<dyn Source>, file: PathBuf) -> Result<Opened, TrainError> {
    Ok(cache::open(source, &wish(c, Place::File(file)))?)
}

fn wish(c: &Config, place: Place) -> Wish {
    Wish { place, size: c.model.img_size, decode: settings::decoding(c), make: true }
}

/// Where the cache of a split to validate on is: beside a file that was named for the other.
fn of_validation(place: &Place) -> Place {
    match place {
        Place::File(file) => Place::File(beside(file)),
        other => other.clone(),
    }
}

/// `data-validation.bin` for `data.bin`.
pub(crate) fn beside(file: &Path) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let end = file.extension().map(|end| format!(".{}", end.to_string_lossy())).unwrap_or_default();
    file.with_file_name(format!("{stem}-validation{end}"))
}
