//! A record without end is refused with its line.

use super::{Ask, Pictures, Table, TextOptions};
use crate::memory::room;

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

/// Rows of a table with a record of 20 MB, asking for memory with `ask`: number, line, and caption or what is wrong.
fn rows_with(ask: Ask, end: &str) -> Result<Vec<(usize, u64, String)>, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    let long = format!("\"{}\n{end}", "x".repeat(20_000_000));
    std::fs::write(&path, format!("a,b\r\n1,2\r\n\r\n{long},long\r\n3,4\n")).unwrap();
    let mut table = Table::open(&path, &TextOptions::default()).unwrap();
    table.ask = ask;
    let mut rows = vec![];
    let read = table.records(NAMES, |row, record| {
        rows.push(match record {
            Ok(record) => (row, record.line, String::from_utf8_lossy(&record.fields[1]).into_owned()),
            Err(long) => (row, long.line, long.found),
        });
        Ok(())
    });
    read.map(|_| rows).map_err(|e| e.to_string())
}

#[test]
fn a_record_without_memory_is_passed_over() {
    let all = [(0, 2, "2".to_owned()), (1, 4, "long".to_owned()), (2, 6, "4".to_owned())];
    assert_eq!(rows_with(room, "\"").unwrap(), all);
    // There is enough for the record, and not for one that grows.
    let whole: Ask = |bytes| if bytes < 30_000_000 { Ok(()) } else { room(u64::MAX) };
    assert_eq!(rows_with(whole, "\"").unwrap(), all);
    let none: Ask = |_| room(u64::MAX);
    let rows = rows_with(none, "\"").unwrap();
    assert!((&rows[0], &rows[2]) == (&all[0], &all[2]) && rows.len() == 3, "{rows:?}");
    assert!(rows[1].1 == 4 && rows[1].2.starts_with("a record of 20000009 bytes: "), "{:?}", rows[1]);
    let open = rows_with(none, "").unwrap_err();
    assert!(open.contains("line 4 (row 1): a quotation mark is opened and never closed"), "{open}");
}
