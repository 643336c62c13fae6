//! Finding, choosing and removing snapshots in folders, and over the runs of a config.
mod snapshot_support;

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, SystemTime},
};

use ocelli_train::{
    run_dir::{RUN_FILE, RunDir, RunDirError, latest_run_with},
    snapshot::{
        Meta, Search, Snapshot, SnapshotError, SnapshotName, Verdict, latest, latest_that, list, prune, save,
    },
};
use snapshot_support::*;
use tempfile::tempdir;

const MID: &str = "01_0000150_snapshot.safetensors";
const END: &str = "01_snapshot.safetensors";
const OLD: &str = "00_snapshot.safetensors";

fn save_as(dir: &Path, name: &str, step: u64, change: impl FnOnce(&mut Meta)) -> PathBuf {
    let mut meta = meta(step);
    change(&mut meta);
    let path = dir.join(name);
    save(&path, &Snapshot { meta, ..small(step, 8) }).unwrap();
    path
}

/// The newest whole snapshot of the runs under `root` that fits.
fn newest_of(
    root: &Path,
    snapshot_dir: &Path,
    judge: &dyn Fn(&Meta) -> Result<(), String>,
) -> Result<Search, RunDirError> {
    latest_run_with(root, "tiny", snapshot_dir, &|_| true, judge)
}

fn names(dir: &Path) -> HashSet<String> {
    fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

fn cut(path: &Path) {
    let bytes = fs::read(path).unwrap();
    fs::write(path, &bytes[..bytes.len() - 50]).unwrap();
}

#[test]
fn a_damaged_newest_is_refused_by_name_and_the_next_is_taken() {
    let dir = tempdir().unwrap();
    let older = saved(dir.path(), MID, 150).0;
    let newer = saved(dir.path(), END, 200).0;
    for (name, text) in [
        (".02_snapshot.safetensors.ocelli-77-0.tmp", "half"),
        ("02_snapshot.safetensors.tmp", "half"),
        ("best.pt", "x"),
        ("notes.txt", "x"),
        ("model.safetensors", "x"),
    ] {
        fs::write(dir.path().join(name), text).unwrap();
    }
    // Written later, yet older by its name.
    let oldest = saved(dir.path(), OLD, 100).0;
    assert_eq!(latest(dir.path()).unwrap().found.unwrap().path, newer);

    cut(&newer);
    let search = latest(dir.path()).unwrap();
    let found = search.found.unwrap();
    assert_eq!((&found.path, found.meta.optim_step), (&older, 150));
    assert_eq!(search.refused.len(), 1);
    let text = search.refused[0].to_string();
    for part in [END, "bytes wanted", "bytes found"] {
        assert!(text.contains(part), "{part} not in {text}");
    }
    let (name, asked) = list(dir.path()).unwrap().swap_remove(0);
    assert_eq!(name, SnapshotName::end_of_epoch(1));
    assert!(ocelli_train::snapshot::load(&asked).is_err(), "asked for outright, a damaged one is an error");

    cut(&older);
    cut(&oldest);
    let search = latest(dir.path()).unwrap();
    assert!(search.found.is_none() && search.refused.len() == 3);
}

#[test]
fn empty_and_absent_folders_have_no_latest() {
    let dir = tempdir().unwrap();
    for dir in [dir.path(), &dir.path().join("absent")] {
        let search = latest(dir).unwrap();
        assert!(search.found.is_none() && search.refused.is_empty());
    }
    let file = dir.path().join("file");
    fs::write(&file, "x").unwrap();
    assert!(matches!(latest(&file), Err(SnapshotError::Read { .. })));
}

#[test]
fn a_newest_that_diverged_stops_and_names_an_earlier_one() {
    let dir = tempdir().unwrap();
    let older = saved(dir.path(), OLD, 100).0;
    cut(&saved(dir.path(), MID, 150).0);
    let (newest, bytes) = saved(dir.path(), END, 200);
    fs::write(&newest, with_first_float(&bytes, f32::NAN)).unwrap();
    let text = latest(dir.path()).unwrap_err().to_string();
    for part in [END, "`big` holds NaN", older.to_str().unwrap()] {
        assert!(text.contains(part), "{part} not in {text}");
    }
}

#[test]
fn a_folder_is_listed_newest_first() {
    let dir = tempdir().unwrap();
    assert!(list(dir.path()).unwrap().is_empty() && list(&dir.path().join("absent")).unwrap().is_empty());
    for (name, step) in [(MID, 150), (OLD, 100), (END, 200)] {
        saved(dir.path(), name, step);
    }
    fs::write(dir.path().join("best.pt"), "x").unwrap();
    let names: Vec<String> = list(dir.path()).unwrap().iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(names, [END, MID, OLD]);
}

#[test]
fn what_does_not_fit_is_passed_over_and_said_once_for_each_reason() {
    let dir = tempdir().unwrap();
    let fits = saved(dir.path(), OLD, 100).0;
    for (name, step) in [(MID, 150), ("01_0000160_snapshot.safetensors", 160), (END, 200)] {
        save_as(dir.path(), name, step, |m| m.seed = step.min(160));
    }
    // Of one that does not fit nothing is read but its header.
    let bytes = fs::read(dir.path().join(MID)).unwrap();
    fs::write(dir.path().join(MID), with_first_float(&bytes, f32::NAN)).unwrap();
    let judge = |meta: &Meta| match meta.seed {
        150 => Verdict::Differs("too old".into()),
        160 => Verdict::Differs("another seed".into()),
        _ => Verdict::Fits,
    };
    let search = latest_that(dir.path(), |_| true, judge).unwrap();
    assert_eq!(search.found.unwrap().path, fits);
    let lines: Vec<String> = search.passed.iter().map(ToString::to_string).collect();
    let at = |name: &str| dir.path().join(name).display().to_string();
    assert_eq!(
        lines,
        [format!("{} (and 1 older there): another seed", at(END)), format!("{}: too old", at(MID))]
    );
}

#[test]
fn pruning_keeps_the_newest_other_runs_and_other_files() {
    let dir = tempdir().unwrap();
    let paths: Vec<PathBuf> =
        (0..5).map(|i| saved(dir.path(), &format!("{i:02}_snapshot.safetensors"), i).0).collect();
    let other = save_as(dir.path(), "00_0000001_snapshot.safetensors", 1, |m| m.run_id = "run-2".into());
    fs::write(dir.path().join("notes.txt"), "x").unwrap();
    assert_eq!(prune(dir.path(), 2, "run-1").unwrap(), paths[..3]);
    assert!(other.exists() && dir.path().join("notes.txt").exists());
    assert_eq!(prune(dir.path(), 2, "run-1").unwrap(), Vec::<PathBuf>::new());
    assert_eq!(prune(dir.path(), 0, "run-1").unwrap(), paths[3..4]);
    assert!(paths[4].exists());
}

#[test]
fn pruning_never_removes_the_newest_whole_one() {
    let dir = tempdir().unwrap();
    let paths: Vec<PathBuf> =
        (0..4).map(|i| saved(dir.path(), &format!("{i:02}_snapshot.safetensors"), i).0).collect();
    // The two that would be kept are damaged in their data, one of them past what a quick look sees.
    for path in &paths[2..] {
        let bytes = fs::read(path).unwrap();
        fs::write(path, with_first_float(&bytes, 99.0)).unwrap();
    }
    assert_eq!(prune(dir.path(), 2, "run-1").unwrap(), paths[..1]);
    assert_eq!(latest(dir.path()).unwrap().found.unwrap().path, paths[1]);
    let bytes = fs::read(&paths[1]).unwrap();
    fs::write(&paths[1], with_first_float(&bytes, 99.0)).unwrap();
    assert!(prune(dir.path(), 1, "run-1").unwrap().is_empty(), "nothing whole: nothing goes");
}

#[test]
fn a_shared_folder_is_searched_by_config() {
    let dir = tempdir().unwrap();
    let mine = saved(dir.path(), OLD, 100).0;
    save_as(dir.path(), END, 200, |m| m.config_name = "other".into());
    let of_tiny = |m: &Meta| if m.config_name == "tiny" { Verdict::Fits } else { Verdict::Other };
    let search = latest_that(dir.path(), |_| true, of_tiny).unwrap();
    assert_eq!(search.found.unwrap().path, mine);
    assert!(search.refused.is_empty());
}

#[test]
fn runs_of_the_same_second_get_folders_of_their_own() {
    let root = tempdir().unwrap();
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    let create = || RunDir::create(root.path(), "tiny", Path::new("snapshots"), 0, now).unwrap();
    let created: Vec<RunDir> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(create)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let ids: HashSet<&str> = created.iter().map(|r| r.info().run_id.as_str()).collect();
    let paths: HashSet<&Path> = created.iter().map(RunDir::path).collect();
    assert_eq!((ids.len(), paths.len()), (8, 8));
    let mut names: Vec<String> = names(root.path()).into_iter().collect();
    names.sort();
    assert!(
        names[0].starts_with("tiny-2027011") && names[0].len() == "tiny-20270115-080000".len(),
        "{names:?}"
    );
    assert_eq!(names[7], format!("{}-8", names[0]));
    assert!(names.iter().all(|name| RunDir::open(&root.path().join(name)).is_some()));
    created[0].write_whole("config.yaml", b"a: 1\n").unwrap();
    assert_eq!(fs::read(created[0].path().join("config.yaml")).unwrap(), b"a: 1\n");
}

#[test]
fn a_run_folder_that_cannot_be_made_is_an_error_with_its_path() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "x").unwrap();
    let error = RunDir::create(&file, "tiny", Path::new("s"), 0, SystemTime::now()).unwrap_err();
    assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
}

#[test]
fn latest_over_runs_is_the_one_saved_last_of_that_config() {
    let root = tempdir().unwrap();
    let shared = tempdir().unwrap();
    let run = |config: &str, dir: &Path| {
        RunDir::create(root.path(), config, dir, 0, SystemTime::now()).unwrap().snapshot_dir()
    };
    let relative = Path::new("snapshots");
    let newest = || newest_of(root.path(), relative, &|_| Ok(())).unwrap().found.map(|f| f.path);
    let (first, second, other) = (run("tiny", relative), run("tiny", relative), run("other", relative));
    assert_eq!(newest(), None);
    save_as(&other, END, 900, |m| m.config_name = "other".into());
    let far = saved(&first, END, 900).0;
    thread::sleep(Duration::from_millis(5));
    // Fewer steps, but saved later: that is the run that somebody wants to go on with.
    let near = saved(&second, OLD, 10).0;
    assert_eq!(newest(), Some(near.clone()));
    // A folder whose run.json is lost still has its snapshots, which say whose they are.
    fs::remove_file(second.parent().unwrap().join(RUN_FILE)).unwrap();
    assert_eq!(newest(), Some(near.clone()));
    fs::remove_dir_all(second.parent().unwrap()).unwrap();
    assert_eq!(newest(), Some(far.clone()));
    // An absolute folder, known from a run or from the config alone.
    thread::sleep(Duration::from_millis(5));
    let absolute = saved(shared.path(), OLD, 1).0;
    let found = newest_of(root.path(), shared.path(), &|_| Ok(())).unwrap().found.unwrap();
    assert_eq!(found.path, absolute);
    // A run has a folder of its own in it, so that runs that share it overwrite nothing.
    let own = run("tiny", shared.path());
    assert_eq!(own.parent(), Some(shared.path()));
    thread::sleep(Duration::from_millis(5));
    let absolute = saved(&own, OLD, 1).0;
    assert_eq!(newest(), Some(absolute.clone()));
    let found = newest_of(root.path(), shared.path(), &|_| Ok(())).unwrap().found.unwrap();
    assert_eq!(found.path, absolute);
    // Damaged: the next, with a warning.
    cut(&absolute);
    let search = newest_of(root.path(), relative, &|_| Ok(())).unwrap();
    assert_eq!((search.found.unwrap().path, search.refused.len()), (far, 1));
}

#[test]
fn only_the_newest_run_can_stop_by_having_diverged() {
    let root = tempdir().unwrap();
    let relative = Path::new("snapshots");
    let run = || RunDir::create(root.path(), "tiny", relative, 0, SystemTime::now()).unwrap().snapshot_dir();
    let (first, second) = (run(), run());
    let (path, bytes) = saved(&first, OLD, 1);
    fs::write(&path, with_first_float(&bytes, f32::NAN)).unwrap();
    thread::sleep(Duration::from_millis(5));
    let (good, _) = saved(&second, OLD, 1);
    let newest = || newest_of(root.path(), relative, &|_| Ok(()));
    assert_eq!(newest().unwrap().found.unwrap().path, good);
    thread::sleep(Duration::from_millis(5));
    let (path, bytes) = saved(&first, END, 2);
    fs::remove_file(first.join(OLD)).unwrap();
    fs::write(&path, with_first_float(&bytes, f32::NAN)).unwrap();
    let error = newest().unwrap_err();
    assert!(matches!(error, RunDirError::Snapshot(SnapshotError::NonFinite { .. })), "{error}");
    assert!(error.to_string().contains(good.to_str().unwrap()), "{error} should name the other run's");
}

#[test]
fn an_older_run_that_fits_is_found_behind_newer_ones_that_do_not() {
    let root = tempdir().unwrap();
    let relative = Path::new("snapshots");
    let run = || RunDir::create(root.path(), "tiny", relative, 0, SystemTime::now()).unwrap().snapshot_dir();
    let pause = || thread::sleep(Duration::from_millis(5));
    let other = |m: &mut Meta| m.source_fingerprint = "other".into();
    let oldest = save_as(&run(), OLD, 1, other);
    pause();
    let fits = saved(&run(), OLD, 1).0;
    pause();
    let (newer, newest) = (run(), run());
    save_as(&newer, OLD, 1, other);
    pause();
    save_as(&newest, END, 2, other);
    let judge = |m: &Meta| if m.source_fingerprint == "other" { Err("other data".into()) } else { Ok(()) };
    let search = newest_of(root.path(), relative, &judge).unwrap();
    assert_eq!(search.found.unwrap().path, fits);
    let passed: Vec<PathBuf> = search.passed.iter().map(|p| p.path.clone()).collect();
    // Older than the one found: not worth a word.
    assert_eq!(passed, [newest.join(END), newer.join(OLD)]);
    fs::remove_file(&fits).unwrap();
    let search = newest_of(root.path(), relative, &judge).unwrap();
    assert!(search.found.is_none());
    assert_eq!(search.passed.last().unwrap().path, oldest);
}
