//! `ocelli caption`, through the real binary.

mod support;

use support::Bench;

/// A trained tiny model, its snapshot, and a picture to caption.
fn trained(args: &[&str]) -> (Bench, String, String) {
    let b = Bench::new();
    b.train(&[&["trainer_config.max_iters=3"], args].concat()).done();
    let snapshot = b.snapshots()[0].to_str().unwrap().to_string();
    let picture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pictures/barn.jpg").to_string();
    (b, snapshot, picture)
}

#[test]
fn captions_by_file_folder_and_run() {
    let (b, snapshot, picture) = trained(&[]);
    let plain = b.run(&["caption", "--snapshot", &snapshot, &picture]).done().out;
    assert_eq!(plain.lines().count(), 1);
    let run = b.run_folder();
    for place in [run.join("snapshots"), run] {
        assert_eq!(b.run(&["caption", "--snapshot", place.to_str().unwrap(), &picture]).done().out, plain);
    }
}

#[test]
fn json_lines_and_several_pictures() {
    let (b, snapshot, picture) = trained(&[]);
    let args = ["caption", "--json", "--max-length", "9", "--snapshot", &snapshot, &picture, &picture];
    let out = b.run(&args).done().out;
    let lines: Vec<serde_json::Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["caption"], lines[1]["caption"]);
    assert_eq!(lines[0]["image"], picture.as_str());
    assert!(lines[0]["tokens"].as_u64().unwrap() <= 9);
    assert!(lines[0]["log_probability"].as_f64().unwrap() < 0.0);
}

#[test]
fn sampling_is_repeatable_and_follows_its_seed() {
    let (b, snapshot, picture) = trained(&[]);
    let run = |seed: &str| {
        let args = [
            "caption",
            "--snapshot",
            &snapshot,
            "--temperature",
            "1.5",
            "--top-k",
            "5",
            "--seed",
            seed,
            &picture,
        ];
        b.run(&args).done().out
    };
    assert_eq!(run("1"), run("1"));
    assert!((2..6).any(|s| run(&s.to_string()) != run("1")));
}

#[test]
fn a_prompt_begins_the_caption() {
    let (b, snapshot, picture) = trained(&[]);
    let out = b.run(&["caption", "--snapshot", &snapshot, "--prompt", "big red", &picture]).done().out;
    assert!(out.starts_with("big red"), "{out}");
    b.run(&["caption", "--snapshot", &snapshot, "--prompt", "\u{1F600}", &picture]).refused(&["--prompt"]);
}

#[test]
fn what_cannot_be_captioned_is_named_and_the_rest_is_done() {
    let (b, snapshot, picture) = trained(&[]);
    std::fs::write(b.path("page.jpg"), "<!doctype html><p>not found").unwrap();
    let said = b.run(&["caption", "--snapshot", &snapshot, "missing.png", &picture, "page.jpg"]);
    let out = said.out.clone();
    said.refused(&["missing.png", "page.jpg", "not_an_image", "2 of 3"]);
    assert!(out.contains("barn.jpg: "), "{out}");
    let hostile = b.path("hostile.pt");
    std::fs::write(&hostile, b"\x80\x02c__builtin__\neval\n").unwrap();
    b.run(&["caption", "--snapshot", hostile.to_str().unwrap(), &picture]).refused(&["pt_to_safetensors"]);
    b.run(&["caption", "--snapshot", "nowhere", &picture]).refused(&["nowhere"]);
    assert_eq!(b.run(&["caption", "--snapshot", &snapshot]).code, Some(2));
    let args = ["caption", "--snapshot", &snapshot, "--top-k", "3", &picture];
    let said = b.run(&args).mentions(&["--temperature"]);
    assert_eq!(said.code, Some(2));
    let args = ["caption", "--snapshot", &snapshot, "--threads", "18446744073709551615", &picture];
    assert_eq!(b.run(&args).code, Some(2));
    let args = ["caption", "--snapshot", &snapshot, "--prompt", "big red", "--max-length", "3", &picture];
    b.run(&args).refused(&["7 characters", "at most 3"]);
    let args = ["caption", "--snapshot", &snapshot, "--temperature=-1", &picture];
    assert_eq!(b.run(&args).code, Some(2));
}
