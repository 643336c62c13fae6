//! Times a source: opening it, then reading rows in shuffled order on one thread, beside decoding alone.
//!
//! usage: `cargo run --release -p ocelli-data --example time_source -- csv|folder|parquet PATH [ROWS]`

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use ocelli_data::scan::ContentStats;
use ocelli_data::source::csv::Csv;
use ocelli_data::source::folder::Folder;
use ocelli_data::source::parquet::{Parquet, ParquetOptions};
use ocelli_data::source::{Source, SplitNames, TextOptions};
use ocelli_data::split::split;

fn open(kind: &str, path: &Path) -> Result<Arc<dyn Source>, Box<dyn Error>> {
    let names = SplitNames::default();
    Ok(match kind {
        "csv" => Arc::new(Csv::open(path, &TextOptions::default())?),
        "folder" => Arc::new(Folder::open(path, &names, &TextOptions::default())?.train),
        "parquet" => Arc::new(Parquet::open(path, &names, &ParquetOptions::default())?.train),
        other => return Err(format!("no such kind: {other}").into()),
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (Some(kind), Some(path)) = (args.first(), args.get(1)) else {
        return Err("usage: time_source csv|folder|parquet PATH [ROWS]".into());
    };
    let start = Instant::now();
    let source = open(kind, Path::new(path))?;
    println!("{}: opened in {:.2} s", source.describe(), start.elapsed().as_secs_f64());
    let start = Instant::now();
    let stats = ContentStats::scan(&*source);
    println!("captions of {} rows in {:.2} s", stats.scanned, start.elapsed().as_secs_f64());
    let order: Vec<usize> = split(source.len(), 1.0, 1)?.train.iter().collect();
    let rows = args.get(2).map_or(Ok(order.len()), |n| n.parse())?.min(order.len());
    for pass in ["first", "second"] {
        let start = Instant::now();
        let good = order[..rows].iter().filter(|row| source.pictured(**row, 96).is_ok()).count();
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{pass} pass: {good} of {rows} rows in {seconds:.2} s, {:.3} ms a row",
            1e3 * seconds / rows as f64
        );
    }
    Ok(())
}
