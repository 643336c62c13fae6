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
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let (b, snapshot, picture) = trained(&[]);
    let run = |more: &[&str]| b.run(&[&["caption", "--snapshot", &snapshot, &picture], more].concat());
    for (more, says) in [
        (&["--top-k", "3"][..], "--temperature"),
        (&["--top-k", "3", "--temperature", "0"], "--temperature"),
        (&["--threads", "18446744073709551615"], "from 1 to 1024"),
        (&["--threads", "1025"], "from 1 to 1024"),
        (&["--temperature=-1"], "a temperature is a number of at least 0"),
        (&["--temperature", "-1"], "a temperature is a number of at least 0"),
        (&["--temperature", "-1e-3"], "a temperature is a number of at least 0"),
        (&["--top-k", "-5", "--temperature", "1"], "a whole number of at least 1"),
        (&["--seed", "-5"], "a whole number of at least 0"),
        (&["--max-length", "-5"], "a whole number of at least 1"),
    ] {
        let said = run(more).mentions(&["error: ", says]);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{more:?}");
    }
    run(&["--top-k", "3"]).mentions(&["Usage: ocelli caption"]);
    // Seven characters leave none to add in three, nor in seven; in eight they leave one.
    run(&["--prompt", "big red", "--max-length", "3"]).refused(&["7 characters", "at most 3"]);
    run(&["--prompt", "big red", "--max-length", "7"]).refused(&["7 characters", "at most 7"]);
    run(&["--prompt", "big red", "--max-length", "8"]).done();
}

#[test]
fn no_temperature_overflows() {
    let (b, snapshot, picture) = trained(&[]);
    let run = |temperature: &str| -> serde_json::Value {
        let args = ["caption", "--json", "--snapshot", &snapshot, "--temperature", temperature, &picture];
        serde_json::from_str(&b.run(&args).done().out).unwrap()
    };
    let cold = run("1e-308");
    assert_eq!(cold["caption"], run("0")["caption"]);
    // The only character that can be drawn has the probability 1.
    assert_eq!(cold["log_probability"].as_f64(), Some(0.0));
    // The hottest takes any with the same probability.
    let hot = run("1e308");
    let each = hot["log_probability"].as_f64().unwrap() / hot["tokens"].as_f64().unwrap().max(1.0);
    assert!(each.is_finite() && each < -1.0, "{hot}");
}

#[test]
fn a_closed_output_ends_quietly() {
    let (b, snapshot, picture) = trained(&[]);
    let caption = ["caption", "--snapshot", &snapshot, &picture, &picture];
    let print = ["train", "--print-config"];
    for args in [&caption[..], &print, &["config"], &["config", "lr"], &["--help"]] {
        for stderr in [false, true] {
            assert_eq!(b.unread(args, stderr).done().err, "", "{args:?}");
        }
    }
    assert_eq!(b.unread(&["config", "nonsense"], true).code, Some(1));
}

/// What was asked for did not arrive, and nobody chose that.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let (b, snapshot, picture) = trained(&[]);
    let caption = ["caption", "--snapshot", &snapshot, &picture];
    for args in [&caption[..], &["config"], &["train", "--print-config"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let said = support::said(b.command(args).stdout(full).output().unwrap());
        said.refused(&["error: cannot write to standard output"]);
    }
}

#[test]
fn a_bad_picture_has_a_json_line_in_its_place() {
    let (b, snapshot, picture) = trained(&[]);
    std::fs::write(b.path("page.jpg"), "<!doctype html><p>not found").unwrap();
    let said = b.run(&["caption", "--json", "--snapshot", &snapshot, "page.jpg", &picture, "missing.png"]);
    let lines: Vec<serde_json::Value> = said.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    said.refused(&["2 of 3 pictures could not be captioned"]);
    let images: Vec<&str> = lines.iter().map(|l| l["image"].as_str().unwrap()).collect();
    assert_eq!(images, ["page.jpg", picture.as_str(), "missing.png"]);
    assert_eq!(lines[0]["error"]["reason"], "not_an_image");
    assert!(lines[0]["error"]["detail"].as_str().unwrap().contains("<!doctype"), "{}", lines[0]);
    assert!(lines[1]["caption"].is_string() && lines[1].get("error").is_none());
    assert_eq!(lines[2]["error"]["reason"], "read_error");
    b.run(&["caption", "--snapshot", &snapshot, "missing.png"])
        .refused(&["1 of 1 picture could not be captioned"]);
}

/// More pictures than fit side by side, with a bad one among them: the captions come in order, and each is what it
/// would be had the bad one been good.
#[test]
fn many_pictures_are_captioned_in_order() {
    let (b, snapshot, picture) = trained(&[]);
    let run = |images: &[&str]| -> Vec<serde_json::Value> {
        let args = ["caption", "--json", "--temperature", "1.5", "--snapshot", &snapshot];
        let out = b.run(&[&args[..], images].concat()).out;
        out.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
    };
    let good = run(&[picture.as_str(); 40]);
    let mut images = [picture.as_str(); 40];
    images[3] = "missing.png";
    images[33] = "missing.png";
    let mixed = run(&images);
    assert_eq!((good.len(), mixed.len()), (40, 40));
    for (i, (a, b)) in good.iter().zip(&mixed).enumerate() {
        assert_eq!(b["image"], images[i]);
        assert!(
            if i % 30 == 3 { b.get("error").is_some() } else { a["caption"] == b["caption"] },
            "{i}: {b}"
        );
    }
    assert!((1..40).any(|i| good[i]["caption"] != good[0]["caption"]));
}

/// The first captions are there while later pictures are still to be read.
#[cfg(unix)]
#[test]
fn captions_come_before_the_last_picture_is_read() {
    use std::io::{BufRead, BufReader};
    let (b, snapshot, picture) = trained(&[]);
    // A pipe: opening it waits for a writer.
    let late = b.path("late.jpg");
    assert!(std::process::Command::new("mkfifo").arg(&late).status().unwrap().success());
    let mut args = vec!["caption", "--snapshot", &snapshot];
    args.extend([picture.as_str(); 20]);
    args.push(late.to_str().unwrap());
    let mut child = b.command(&args).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert!(line.contains("barn.jpg: "), "{line}");
    std::fs::write(&late, std::fs::read(&picture).unwrap()).unwrap();
    assert!(child.wait().unwrap().success());
}
