//! A record without end is refused with its line.

use super::{Pictures, Table, TextOptions};

const NAMES: Pictures = Pictures { column: 0, base64: false };

/// Why a table of `text` whose records may have 1,000 bytes is refused.
fn refusal(text: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    std::fs::write(&path, text).unwrap();
    let mut table = Table::open(&path, &TextOptions::default()).unwrap();
    table.limit = 1_000;
    table.records(NAMES, |_, _| Ok(())).unwrap_err().to_string()
}

#[test]
fn a_record_without_end_names_its_line_and_row() {
    // The buffer of the parser is filled once without a look at the limit.
    let long = "x\n".repeat(100_000);
    let found = refusal(&format!("a,b\n1,2\r\n\"3\n\",4\n\n\n5,\"{long}"));
    assert!(
        found.contains("t.csv: line 7 (row 2): a record of more than 1000 bytes: is a quotation"),
        "{found}"
    );
    let found = refusal(&format!("a,b\n\"{long}"));
    assert!(found.contains("line 2 (row 0): a record"), "{found}");
}

#[test]
fn a_header_without_end_is_on_line_1() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    std::fs::write(&path, "a,b\n1,2\n").unwrap();
    let mut table = Table::open(&path, &TextOptions::default()).unwrap();
    table.limit = 1_000;
    std::fs::write(&path, format!("\"a,b\n{}", "1,2\n".repeat(100_000))).unwrap();
    let found = table.header().unwrap_err().to_string();
    assert!(found.contains("t.csv: line 1: a record of more than 1000 bytes"), "{found}");
}
