//! The cache of decoded pictures: what is read of it is what the source says, and nothing else is ever used.

mod image_common;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ocelli_data::cache::{CacheError, Cached, Opened, Place, Wish, open};
use ocelli_data::image::DecodeOptions;
use ocelli_data::source::folder::Folder;
use ocelli_data::source::{BadSample, Sample, Source, SplitNames, TextOptions};
use proptest::prelude::*;
use tempfile::TempDir;

const SIZE: usize = 8;

/// A folder of pictures of every kind: whole, cut, empty, without caption, several captions of one, and one that is not there.
fn made() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut lines = String::new();
    let mut line =
        |name: &str, text: &str| lines += &format!("{{\"file_name\":{name:?},\"text\":{text:?}}}\n");
    for (i, name) in image_common::SAMPLES.iter().enumerate() {
        let (bytes, file) = (image_common::read(name), format!("{i:02}.img.{}", &name[name.len() - 3..]));
        let keep = if i % 7 == 3 { bytes.len() / 2 } else { bytes.len() };
        std::fs::write(dir.path().join(&file), &bytes[..keep]).unwrap();
        line(&file, if i % 11 == 5 { "" } else { "a café" });
        if i % 5 == 0 {
            line(&file, "once more");
        }
    }
    line("not_there.png", "lost");
    std::fs::write(dir.path().join("metadata.jsonl"), lines).unwrap();
    dir
}

fn source(dir: &Path) -> Arc<dyn Source> {
    let splits = Folder::open(dir, &SplitNames::default(), &TextOptions::default());
    Arc::new(splits.unwrap_or_else(|e| panic!("{e}")).train)
}

fn wish(file: &Path) -> Wish {
    let decode = DecodeOptions::default();
    Wish { place: Place::File(file.into()), size: SIZE, decode, make: true }
}

type Row = Result<(Sample, Vec<u8>), BadSample>;

fn row(source: &dyn Source, row: usize) -> Row {
    let mut pixels = vec![7; SIZE * SIZE * 3];
    source.read(row, SIZE, &mut pixels).map(|sample| (sample, pixels))
}

fn rows(source: &dyn Source) -> Vec<Row> {
    (0..source.len()).map(|i| row(source, i)).collect()
}

fn cached(opened: Opened) -> (Arc<dyn Source>, Arc<Cached>) {
    (opened.source, opened.cache.expect("there is a cache"))
}

/// A whole cache of `dir`, and what the source says of its rows.
fn whole(dir: &Path) -> (TempDir, PathBuf, Vec<Row>) {
    let beside = tempfile::tempdir().unwrap();
    let file = beside.path().join("x.pictures");
    let (_, cache) = cached(open(source(dir), &wish(&file)).unwrap());
    assert!(!cache.is_whole() && !file.exists());
    assert!(cache.complete(3, &mut |_| true) && cache.is_whole());
    (beside, file, rows(&*source(dir)))
}

#[test]
fn rows_are_equal_while_it_is_made_and_when_it_is_there() {
    let dir = made();
    let (plain, beside) = (source(dir.path()), tempfile::tempdir().unwrap());
    let (want, file) = (rows(&*plain), beside.path().join("deep/x.pictures"));
    assert!(want.iter().any(Result::is_err) && want.iter().filter(|r| r.is_ok()).count() > 20);
    let (making, cache) = cached(open(plain.clone(), &wish(&file)).unwrap());
    // Every other row, then all of them, from eight threads.
    (0..want.len()).step_by(2).for_each(|i| assert_eq!(row(&*making, i), want[i], "row {i}"));
    std::thread::scope(|scope| {
        for t in 0..8 {
            let (making, want) = (&making, &want);
            scope.spawn(move || {
                for i in 0..want.len() {
                    let i = (i * 7 + t * 5) % want.len();
                    assert_eq!(row(&**making, i), want[i], "row {i}");
                }
            });
        }
    });
    // Pictures whose captions are all empty are still unread.
    assert!(cache.complete(0, &mut |_| true));
    assert_eq!(rows(&*making), want);
    let (ready, cache) = cached(open(plain.clone(), &wish(&file)).unwrap());
    assert!(cache.is_whole() && cache.missing() == 0 && cache.complete(0, &mut |_| false));
    assert_eq!(rows(&*ready), want);
    // It is read, not the source: of pictures that are gone meanwhile the cache has the pixels.
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let lasting = |r: &&Row| r.as_ref().map_or_else(|bad| bad.reason != "missing_file", |_| true);
    let now = rows(&*ready);
    assert_eq!(now.iter().filter(lasting).count(), want.iter().filter(lasting).count());
    assert_eq!(cache.trouble(), None);
    let bytes = SIZE * SIZE * 3;
    let mut all = vec![1; cache.pictures() * bytes];
    let there = cache.read_pictures(0, &mut all);
    for (i, want) in want.iter().enumerate() {
        let picture = plain.groups().map_or(i, |g| g.picture_of(i));
        if let Ok((_, pixels)) = want {
            assert!(there[picture] && all[picture * bytes..][..bytes] == pixels[..], "picture {picture}");
        }
    }
    assert!(there.iter().any(|there| !there));
}

#[test]
fn what_was_made_of_other_data_or_in_another_way_is_made_anew() {
    let dir = made();
    let (_beside, file, _) = whole(dir.path());
    let is_ready = |wish: &Wish| cached(open(source(dir.path()), wish).unwrap()).1.is_whole();
    assert!(is_ready(&wish(&file)));
    let larger = Wish { size: SIZE + 1, ..wish(&file) };
    let dropped = DecodeOptions { alpha: ocelli_data::image::AlphaMode::Drop, ..DecodeOptions::default() };
    let other = Wish { decode: dropped, ..wish(&file) };
    assert!(!is_ready(&larger) && !is_ready(&other) && is_ready(&wish(&file)));
    // None is made where none is wanted.
    assert!(open(source(dir.path()), &Wish { make: false, ..larger }).unwrap().cache.is_none());
    // A picture of the same length, changed since.
    let picture = dir.path().join("00.img.jpg");
    let changed = File::options().append(true).open(&picture).unwrap();
    changed.set_modified(SystemTime::now() + Duration::from_secs(5)).unwrap();
    assert!(!is_ready(&wish(&file)));
    let (_, cache) = cached(open(source(dir.path()), &wish(&file)).unwrap());
    assert!(cache.complete(0, &mut |_| true) && is_ready(&wish(&file)));
}

#[test]
fn another_file_is_never_overwritten() {
    let (dir, beside) = (made(), tempfile::tempdir().unwrap());
    for (name, bytes) in [("notes.txt", &b"my notes"[..]), ("empty", b""), ("long.bin", &[b'x'; 9000])] {
        let file = beside.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        let error = open(source(dir.path()), &wish(&file)).err().expect("refused");
        assert!(matches!(error, CacheError::Foreign { .. }), "{error}");
        assert_eq!(std::fs::read(&file).unwrap(), bytes);
    }
    assert_eq!(std::fs::read_dir(beside.path()).unwrap().count(), 3);
}

#[test]
fn one_that_is_given_up_leaves_nothing() {
    let (dir, beside) = (made(), tempfile::tempdir().unwrap());
    let file = beside.path().join("x.pictures");
    let (making, cache) = cached(open(source(dir.path()), &wish(&file)).unwrap());
    let _ = row(&*making, 0);
    let mut left = 3;
    assert!(!cache.complete(0, &mut |_| {
        left -= 1;
        left > 0
    }));
    drop((making, cache));
    assert_eq!(std::fs::read_dir(beside.path()).unwrap().count(), 0);
}

#[test]
fn a_cut_file_is_not_used() {
    let dir = made();
    let (_beside, file, want) = whole(dir.path());
    let bytes = std::fs::read(&file).unwrap();
    for cut in (0..bytes.len()).step_by(997).chain([1, 15, 16, 4095, 4096, bytes.len() - 1]) {
        std::fs::write(&file, &bytes[..cut]).unwrap();
        match open(source(dir.path()), &wish(&file)) {
            Err(CacheError::Foreign { .. }) => assert!(cut < 16, "{cut}"),
            Err(e) => panic!("{e}"),
            Ok(opened) => {
                let (now, cache) = cached(opened);
                assert!(!cache.is_whole(), "cut at {cut}");
                assert_eq!(row(&*now, 1), want[1]);
            }
        }
    }
    // Cut while it is open.
    std::fs::write(&file, &bytes).unwrap();
    let (now, cache) = cached(open(source(dir.path()), &wish(&file)).unwrap());
    File::options().write(true).open(&file).unwrap().set_len(5000).unwrap();
    assert_eq!(rows(&*now), want);
    assert!(
        cache.trouble().is_some_and(|found| found.contains("Remove the file")) && cache.trouble().is_none()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn no_changed_byte_is_ever_used(at: prop::sample::Index, bit in 0u8..8) {
        thread_local!(static MADE: (TempDir, TempDir, PathBuf, Vec<Row>) = {
            let dir = made();
            let (beside, file, want) = whole(dir.path());
            (dir, beside, file, want)
        });
        MADE.with(|(dir, _, file, want)| {
            let mut disk = File::options().read(true).write(true).open(file).unwrap();
            let at = at.index(disk.metadata().unwrap().len() as usize) as u64;
            let mut byte = [0];
            let mut flip = |disk: &mut File| {
                disk.seek(SeekFrom::Start(at)).unwrap();
                disk.read_exact(&mut byte).unwrap();
                byte[0] ^= 1 << bit;
                disk.seek(SeekFrom::Start(at)).unwrap();
                disk.write_all(&byte).unwrap();
            };
            flip(&mut disk);
            if let Ok(opened) = open(source(dir.path()), &Wish { make: false, ..wish(file) }) {
                assert_eq!(&rows(&*opened.source), want, "bit {bit} of byte {at}");
            }
            flip(&mut disk);
        });
    }
}
