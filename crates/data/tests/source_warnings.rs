//! A picture that is used in spite of a flaw says so.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ocelli_data::source::csv::Csv;
use ocelli_data::source::{Source, TextOptions};

#[test]
fn a_csv_row_carries_the_warning_of_its_picture() {
    let picture = |name: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/01_broken_images");
        STANDARD.encode(std::fs::read(format!("{folder}/{name}")).unwrap())
    };
    let file = tempfile::NamedTempFile::new().unwrap();
    let rows = ["no_eoi.jpg", "progressive.jpg"].map(|name| format!("{},a dog\n", picture(name))).concat();
    std::fs::write(file.path(), format!("b64string_images,caption\n{rows}")).unwrap();
    let csv = Csv::open(file.path(), &TextOptions::default()).unwrap();
    assert_eq!([0, 1].map(|row| csv.pictured(row, 8).unwrap().warnings.no_end_marker), [true, false]);
}
