//! Finds the wanted columns in the header, or says what the header has.

use std::path::Path;

use csv::ByteRecord;

use super::{Columns, CsvOptions};
use crate::source::SourceError;

/// A name further from the wanted one than this is no suggestion (1 is equal, 0 has nothing in common).
const NEAR: f64 = 0.7;

/// Finds both columns.
pub(super) fn find(path: &Path, header: &ByteRecord, options: &CsvOptions) -> Result<Columns, SourceError> {
    let names = names(path, header)?;
    let find = |wanted: &str, key| find_one(&names, wanted, key, options.delimiter);
    let caption = || find(&options.caption_col, "data_config.caption_col");
    let columns = find(&options.image_col, "data_config.image_col")
        .and_then(|image| Ok(Columns { image, caption: caption()?, count: names.len() }))
        .map_err(|found| SourceError::Column { path: path.to_path_buf(), found })?;
    if columns.image == columns.caption {
        let found = format!("picture and caption cannot both be the column `{}`", options.image_col);
        return Err(SourceError::Column { path: path.to_path_buf(), found });
    }
    Ok(columns)
}

fn names(path: &Path, header: &ByteRecord) -> Result<Vec<String>, SourceError> {
    let name = |field: &[u8]| String::from_utf8(field.to_vec()).map(|n| n.trim().to_string());
    header.iter().map(name).collect::<Result<_, _>>().map_err(|e| {
        let found = format!("the header is not UTF-8 ({e}): save the file as UTF-8");
        SourceError::Column { path: path.to_path_buf(), found }
    })
}

fn find_one(names: &[String], wanted: &str, key: &str, delimiter: u8) -> Result<usize, String> {
    let mut places = (0..names.len()).filter(|i| names[*i] == wanted);
    match (places.next(), places.next()) {
        (Some(place), None) => Ok(place),
        (Some(a), Some(b)) => {
            Err(format!("the column `{wanted}` is there twice, as number {} and {}", a + 1, b + 1))
        }
        _ => Err(format!(
            "no column `{wanted}` ({key}): the header has {}{}",
            list(names),
            hint(names, wanted, delimiter)
        )),
    }
}

/// The header's names, shortened: without a header line, the first row stands there with its picture.
fn list(names: &[String]) -> String {
    const MOST: usize = 12;
    let short = |name: &String| match name.char_indices().nth(40) {
        Some((end, _)) => format!("`{}...` ({} characters)", &name[..end], name.chars().count()),
        None => format!("`{name}`"),
    };
    let mut shown: Vec<String> = names.iter().take(MOST).map(short).collect();
    if names.len() > MOST {
        shown.push(format!("and {} more", names.len() - MOST));
    }
    shown.join(", ")
}

fn hint(names: &[String], wanted: &str, delimiter: u8) -> String {
    let score = |name: &String| strsim::jaro_winkler(&name.to_lowercase(), &wanted.to_lowercase());
    let nearest = names.iter().filter(|n| n.len() <= 200).max_by(|a, b| score(a).total_cmp(&score(b)));
    let other = [',', ';', '\t', '|'].into_iter().filter(|c| *c != char::from(delimiter));
    if let ([only], Some(c)) = (names, other.clone().find(|c| names[0].contains(*c))) {
        let count = only.split(c).count();
        return format!(
            ". The fields seem to be divided by {c:?} ({count} of them), not {:?}",
            char::from(delimiter)
        );
    }
    match nearest {
        Some(name) if score(name) >= NEAR => format!(". Did you mean `{name}`?"),
        _ if names.iter().any(|n| n.len() > 200) => ". The first line must name the columns".into(),
        _ => String::new(),
    }
}
