//! Which columns hold pictures and captions.

use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::schema::types::{SchemaDescriptor, Type};

use super::ParquetOptions;
use crate::source::table::Wish;

/// What a column of pictures holds; each with the number of its leaf column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// `struct<bytes, path>`, with the leaf of the paths.
    Struct(usize, Option<usize>),
    /// Bytes.
    Bytes(usize),
    /// Text: names of files, or base64.
    Text(usize),
}

impl Holds {
    /// The leaf that is read first.
    pub(super) fn leaf(&self) -> usize {
        let (Self::Struct(leaf, _) | Self::Bytes(leaf) | Self::Text(leaf)) = self;
        *leaf
    }

    /// For a person.
    pub(super) fn holds(&self) -> &'static str {
        match self {
            Self::Struct(..) => "pictures (bytes and path)",
            Self::Bytes(_) => "pictures (bytes)",
            Self::Text(_) => "names of picture files, or base64",
        }
    }
}

/// The columns that are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    pub(super) image_name: String,
    pub(super) image: Holds,
    pub(super) caption_name: String,
    /// Leaf column of the captions.
    pub(super) caption: usize,
}

/// The published presets' names, which stand for "not chosen" where the data have no such column.
const PUBLISHED: [&str; 2] = ["b64string_images", "caption"];
/// Usual names of a column with pictures.
const IMAGE: &[&str] = &[
    "image",
    "picture",
    "img",
    "jpg",
    "png",
    "image_path",
    "file_name",
    "filename",
    "path",
    "b64string_images",
];

/// Finds both columns. Those of an earlier shard are taken if there is one.
pub(super) fn find(
    schema: &SchemaDescriptor,
    options: &ParquetOptions,
    earlier: Option<&Columns>,
) -> Result<Columns, String> {
    let fields: Vec<&Type> = schema.root_schema().get_fields().iter().map(|field| &**field).collect();
    let names: Vec<String> = fields.iter().map(|field| field.name().to_owned()).collect();
    let given = |earlier: Option<&String>, chosen: &Option<String>, published: &str| {
        let chosen = earlier.or(chosen.as_ref()).cloned();
        chosen.filter(|name| name != published || names.contains(name))
    };
    let image = given(earlier.map(|c| &c.image_name), &options.image_col, PUBLISHED[0]);
    let image = match &image {
        Some(_) => {
            Wish { given: image.as_deref(), usual: IMAGE, key: "data_config.image_col" }.find(&names)?
        }
        None => only_picture(schema, &fields, &names)?,
    };
    let caption = given(earlier.map(|c| &c.caption_name), &options.caption_col, PUBLISHED[1]);
    let caption = Wish::caption(caption.as_deref()).find(&names)?;
    if image == caption {
        return Err(format!("picture and caption cannot both be the column `{}`", names[image]));
    }
    let wrong = |column: usize, wanted: &str| {
        format!("the column `{}` holds {}: {wanted} is wanted", names[column], describe(fields[column]))
    };
    Ok(Columns {
        image: holds(schema, image, fields[image]).ok_or_else(|| {
            wrong(image, "a picture as bytes, as struct<bytes, path>, or the name of a file")
        })?,
        caption: text(schema, caption).ok_or_else(|| wrong(caption, "text, or a list of texts"))?,
        image_name: names[image].clone(),
        caption_name: names[caption].clone(),
    })
}

/// The only column that can hold pictures; of several, and of columns of text, the first with a usual name.
fn only_picture(schema: &SchemaDescriptor, fields: &[&Type], names: &[String]) -> Result<usize, String> {
    let kind = |i: usize| holds(schema, i, fields[i]);
    let binary = |i: &usize| matches!(kind(*i), Some(Holds::Struct(..) | Holds::Bytes(_)));
    let mut all = (0..fields.len()).filter(binary);
    if let (Some(only), None) = (all.next(), all.next()) {
        return Ok(only);
    }
    let usual = |wanted: &dyn Fn(usize) -> bool| {
        let named =
            |name: &&str| (0..names.len()).find(|i| names[*i].eq_ignore_ascii_case(name) && wanted(*i));
        IMAGE.iter().find_map(named)
    };
    let found = usual(&|i| binary(&i)).or_else(|| usual(&|i| kind(i).is_some()));
    found.map_or_else(|| Wish { given: None, usual: IMAGE, key: "data_config.image_col" }.find(names), Ok)
}

/// What pictures a column can hold.
fn holds(schema: &SchemaDescriptor, column: usize, field: &Type) -> Option<Holds> {
    if field.is_primitive() {
        let leaf = leaves(schema, column).next()?;
        let flat = schema.column(leaf).max_rep_level() == 0;
        return bytes(field)
            .filter(|_| flat)
            .map(|text| if text { Holds::Text(leaf) } else { Holds::Bytes(leaf) });
    }
    let child = |name: &str| {
        leaves(schema, column).find(|leaf| {
            let column = schema.column(*leaf);
            let parts = column.path().parts();
            parts.len() == 2
                && parts[1] == name
                && column.max_rep_level() == 0
                && column.physical_type() == Physical::BYTE_ARRAY
        })
    };
    Some(Holds::Struct(child("bytes")?, child("path")))
}

/// The leaf with the text of a column of text, of lists of text, or of lists of structures with one text.
fn text(schema: &SchemaDescriptor, column: usize) -> Option<usize> {
    let is_bytes = |leaf: &usize| schema.column(*leaf).physical_type() == Physical::BYTE_ARRAY;
    let candidates: Vec<usize> = leaves(schema, column).filter(is_bytes).collect();
    let named = |leaf: &&usize| {
        let column = schema.column(**leaf);
        let name = column.path().parts().last().map(String::as_str);
        matches!(name, Some("raw" | "text" | "caption" | "sentence" | "value"))
    };
    let found = match candidates[..] {
        [only] => Some(only),
        _ => candidates.iter().find(named).copied(),
    }?;
    // Lists of lists have no one caption after the other.
    (schema.column(found).max_rep_level() <= 1).then_some(found)
}

/// The leaf columns of a column.
fn leaves(schema: &SchemaDescriptor, column: usize) -> impl Iterator<Item = usize> {
    (0..schema.num_columns()).filter(move |leaf| schema.get_column_root_idx(*leaf) == column)
}

/// Whether a column of bytes is text; `None` if it holds something else.
fn bytes(field: &Type) -> Option<bool> {
    if !field.is_primitive() || field.get_physical_type() != Physical::BYTE_ARRAY {
        return None;
    }
    let info = field.get_basic_info();
    let text = info.converted_type() == ConvertedType::UTF8
        || matches!(info.logical_type_ref(), Some(LogicalType::String));
    Some(text)
}

/// A type, for a person.
fn describe(field: &Type) -> String {
    let info = field.get_basic_info();
    let list = info.converted_type() == ConvertedType::LIST
        || (info.has_repetition() && info.repetition() == Repetition::REPEATED);
    if list {
        return "lists".into();
    }
    if field.is_primitive() {
        return match (field.get_physical_type(), bytes(field)) {
            (_, Some(true)) => "text".into(),
            (_, Some(false)) => "bytes".into(),
            _ if matches!(info.logical_type_ref(), Some(LogicalType::Unknown)) => "nothing but nulls".into(),
            (physical, None) => format!("{physical} values"),
        };
    }
    let parts: Vec<&str> = field.get_fields().iter().map(|f| f.name()).take(8).collect();
    format!("structures of {}", parts.join(", "))
}
