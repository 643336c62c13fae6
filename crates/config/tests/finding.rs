//! Where a configuration is looked for, and what a file that is none is told.

use std::fs;
use std::path::Path;

use ocelli_config::{Request, Resolved, load};

fn from(folder: Option<&Path>, name: &str) -> Result<Resolved, String> {
    let request =
        Request { name: Some(name.into()), path: folder.map(Path::to_path_buf), overrides: Vec::new() };
    load(&request).map_err(|e| e.to_string())
}

#[test]
fn the_folder_comes_first_and_the_presets_last() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("shapes.yaml"), "trainer_config:\n  max_iters: 7\n").unwrap();
    fs::write(folder.path().join("mine.yml"), "trainer_config:\n  max_iters: 8\n").unwrap();
    let steps = |r: Resolved| r.config.trainer.max_iters;
    assert_eq!(steps(from(Some(folder.path()), "shapes").unwrap()), Some(7));
    assert_eq!(steps(from(Some(folder.path()), "mine").unwrap()), Some(8));
    assert_eq!(steps(from(Some(folder.path()), "mine.yml").unwrap()), Some(8));
    let preset = from(Some(folder.path()), "csv_train").unwrap();
    assert_eq!(preset.config.trainer.max_iters, Some(100));
    let notice = format!("{} has no csv_train: the built-in preset is used", folder.path().display());
    assert!(preset.notices.contains(&notice), "{:?}", preset.notices);
}

#[test]
fn a_path_is_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("my run!.yaml");
    fs::write(&file, "\u{feff}trainer_config:\n  max_iters: 9\n").unwrap();
    let resolved = from(None, file.to_str().unwrap()).unwrap();
    assert_eq!((resolved.name.as_str(), resolved.config.trainer.max_iters), ("my_run_", Some(9)));
}

#[test]
fn what_is_not_there_is_said_with_what_is() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(
        from(None, "shaps").unwrap_err(),
        "there is no preset and no file shaps; did you mean shapes?; \
         presets: shapes, shapes_long, shapes_smol, coco_train and csv_train"
    );
    let shown = folder.path().display();
    assert_eq!(
        from(Some(folder.path()), "x").unwrap_err(),
        format!(
            "neither {shown} nor the presets have a configuration x; \
             presets: shapes, shapes_long, shapes_smol, coco_train and csv_train"
        )
    );
    let mine = folder.path().join("mine");
    fs::write(mine.with_extension("yaml"), "").unwrap();
    let error = from(None, mine.to_str().unwrap()).unwrap_err();
    assert!(error.contains(&format!("did you mean {}.yaml?", mine.display())), "{error}");
    let gone = folder.path().join("gone");
    assert_eq!(
        from(Some(&gone), "x").unwrap_err(),
        format!("--config-path {}: there is no such folder", gone.display())
    );
}

#[test]
fn what_is_no_text_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let large = folder.path().join("large.yaml");
    fs::write(&large, vec![b'#'; (1 << 20) + 1]).unwrap();
    let error = from(None, large.to_str().unwrap()).unwrap_err();
    assert_eq!(error, format!("{}: larger than 1048576 bytes: this is no configuration", large.display()));
    let binary = folder.path().join("binary.yaml");
    fs::write(&binary, b"model_config:\n  n_embd: \xff\n").unwrap();
    let error = from(None, binary.to_str().unwrap()).unwrap_err();
    assert_eq!(error, format!("{}: not UTF-8 text: byte 25 is not", binary.display()));
}
