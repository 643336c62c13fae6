//! How a source whose captions are text files is read: tables, and folders of pictures.

use super::delimiter::Delimiter;
use super::encoding::Encoding;
use crate::image::DecodeOptions;

/// What quotation marks in a table mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quoting {
    /// As in CSV: a field that begins with one goes to the next single one, whatever is between.
    #[default]
    Minimal,
    /// They stand for themselves; each line is a record.
    None,
}

/// Columns, dialect and encoding, and how pictures are decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Name of the column with the pictures, in a folder's metadata with their file names; `None`: the usual ones
    /// (`b64string_images`, `image` and the like; `file_name`).
    pub image_col: Option<String>,
    /// Name of the column with the captions; `None`: the usual ones (`caption`, `text` and the like).
    pub caption_col: Option<String>,
    /// What stands between the fields of a table.
    pub delimiter: Delimiter,
    /// What quotation marks in a table mean.
    pub quoting: Quoting,
    /// The encoding of tables, lines of JSON and `.txt` files.
    pub encoding: Encoding,
    /// How pictures are decoded.
    pub decode: DecodeOptions,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self {
            image_col: None,
            caption_col: None,
            delimiter: Delimiter::COMMA,
            quoting: Quoting::Minimal,
            encoding: Encoding::UTF_8,
            decode: DecodeOptions::default(),
        }
    }
}
