//! `ocelli bench ladder` through the real binary, on the CPU.

mod support;

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use support::{Bench, TINY};

/// A short ladder. bf16 by name: on the CPU `auto` trains in 32 bits.
fn climb(b: &Bench, more: &[&str]) -> support::Said {
    let first = ["bench", "ladder", "--vocab", "30", "--length", "12", "--steps", "2", "--rounds", "3"];
    let cpu = ["trainer_config.device=cpu", "trainer_config.amp_dtype=bf16"];
    b.run(&[&first, TINY, &cpu, more].concat())
}

fn written(b: &Bench) -> Value {
    serde_json::from_str(&std::fs::read_to_string(b.path("ladder/ladder.json")).unwrap()).unwrap()
}

/// The published order; what each is on a CPU.
const RUNGS: [(&str, &str); 11] = [
    ("start", "measured"),
    ("workers", "not_here"),
    ("pinned_memory", "gpu_only"),
    ("cuda_graph", "gpu_only"),
    ("prefetch", "gpu_only"),
    ("tf32", "gpu_only"),
    ("amp", "measured"),
    ("compile", "gpu_only"),
    ("flash_attention", ""),
    ("autotune", "gpu_only"),
    ("data_parallel", "not_here"),
];

#[test]
fn a_ladder_has_the_published_order_and_its_figures_are_whole() {
    let b = Bench::new();
    let said =
        climb(&b, &[]).done().mentions(&["rung 1 of 17: everything off", "ETA ", "all but mixed precision"]);
    let v = written(&b);
    assert_eq!((&v["schema"], &v["version"]), (&"ocelli-ladder".into(), &1.into()));
    assert_eq!(v["machine"]["device"], "cpu");
    assert_eq!((&v["settings"]["batch"], &v["settings"]["rounds"]), (&4.into(), &3.into()));
    let rungs = v["rungs"].as_array().unwrap();
    for (rung, (name, status)) in rungs.iter().zip(RUNGS) {
        assert_eq!(rung["name"], name);
        assert!(status.is_empty() || rung["status"] == status, "{rung}");
        assert_eq!(rung["status"] == "measured", rung["figures"].is_object(), "{rung}");
        assert_eq!(rung["status"] == "measured", rung["why"].is_null(), "{rung}");
    }
    assert_eq!(rungs.len(), RUNGS.len());
    let (start, amp) = (&rungs[0]["figures"], &rungs[6]["figures"]);
    for f in [start, amp] {
        assert!(f["ms"].as_f64().unwrap() > 0.0);
        assert_eq!(f["turns"].as_array().unwrap().len(), 3);
        let steps: Vec<u64> =
            f["loss"].as_array().unwrap().iter().map(|l| l["step"].as_u64().unwrap()).collect();
        assert_eq!(steps, [6, 8, 10]);
    }
    assert!(start["against"].is_null());
    assert_eq!(
        (&amp["against"]["name"], amp["against"]["turns"].as_array().unwrap().len()),
        (&"start".into(), 3)
    );
    let loss = |f: &Value| f["loss"][2]["loss"].as_f64().unwrap();
    assert!(
        (loss(start) / loss(amp) - 1.0).abs() < 0.02,
        "the same model: {} and {}",
        loss(start),
        loss(amp)
    );
    assert!(amp["memory"]["scratch"].as_u64() < start["memory"]["scratch"].as_u64());
    let without = v["without"].as_array().unwrap();
    assert!(without.iter().any(|r| r["name"] == "amp" && r["figures"]["against"]["name"] == "all"));
    let page = std::fs::read_to_string(b.path("ladder/ladder.html")).unwrap();
    assert!(page.contains("<svg") && page.ends_with("</html>\n"));
    for outside in ["http", "src=", "href=", "url(", "@import"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert_eq!(std::fs::read_dir(b.path("ladder")).unwrap().count(), 2);
    assert!(said.out.contains("written: ladder.json and ladder.html in ladder"));
}

#[test]
fn the_steps_of_a_ladder_are_those_that_bench_step_times_and_train_takes() {
    let b = Bench::new();
    let cpu = ["trainer_config.device=cpu", "trainer_config.max_iters=2"];
    b.run(&[&["bench", "ladder", "--steps", "1", "--rounds", "1"], TINY, &cpu].concat()).done();
    let start = &written(&b)["rungs"][0];
    let plan = start["figures"]["plan"][0].as_str().unwrap();
    let keys: Vec<&str> = start["keys"].as_array().unwrap().iter().map(|k| k.as_str().unwrap()).collect();
    let same = [TINY, &cpu, &keys].concat();
    let said = b.run(&[&["bench", "step", "--steps", "1", "--json"], &same[..]].concat()).done();
    let program = &serde_json::from_str::<Value>(&said.out).unwrap()["programs"][0];
    assert_eq!(format!("{} {}", program["name"].as_str().unwrap(), program["hash"].as_str().unwrap()), plan);
    b.run(&[&["train"], &same[..]].concat()).done().mentions(&[&format!("plan {plan}: ")]);
}

#[test]
fn a_rung_that_is_refused_is_reported_and_the_ladder_goes_on() {
    let b = Bench::new();
    // Asks for what is not there as soon as the rung switches its key on.
    let said = climb(&b, &["--json", "trainer_config.use_wandb=${trainer_config.use_amp}"]).done();
    let said = said.mentions(&["left out: ", "use_wandb"]);
    let v: Value = serde_json::from_str(said.out.trim()).unwrap();
    assert_eq!(v, written(&b));
    let amp = &v["rungs"][6];
    assert_eq!((&amp["name"], &amp["status"]), (&"amp".into(), &"refused".into()));
    assert!(amp["why"].as_str().unwrap().contains("use_wandb") && amp["figures"].is_null(), "{amp}");
    assert!(
        v["rungs"][9]["keys"].as_array().unwrap().contains(&"trainer_config.use_amp=false".into()),
        "{v}"
    );
    assert_eq!(v["rungs"][0]["status"], "measured");
    assert!(!v["without"].as_array().unwrap().iter().any(|r| r["name"] == "amp"));
}

#[test]
fn what_cannot_be_is_said_before_anything_is_measured() {
    let b = Bench::new();
    climb(&b, &["trainer_config.tf32=true"])
        .refused(&["trainer_config.tf32", "the ladder switches this key"]);
    std::fs::create_dir_all(b.path("there/ladder.json")).unwrap();
    climb(&b, &["--out", "there"]).refused(&["--out", "ladder.json is a folder"]);
    std::fs::write(b.path("file"), "").unwrap();
    climb(&b, &["--out", "file"]).refused(&["--out"]);
    climb(&b, &["trainer_config.zero=1"]).refused(&["zero"]);
    assert!(!b.path("ladder/ladder.json").exists() && !b.path("ladder/ladder.html").exists());
}

#[test]
#[cfg(unix)]
fn an_interrupted_ladder_leaves_no_file() {
    let b = Bench::new();
    let args = ["bench", "ladder", "--vocab", "30", "--length", "12", "--steps", "50", "--rounds", "1000"];
    let mut child = b.command(&[&args, TINY].concat()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("rung 1") {
        assert!(lines.read_line(&mut said).unwrap() > 0, "{said}");
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    lines.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{said}");
    assert!(said.contains("interrupted: nothing was written"), "{said}");
    assert_eq!(std::fs::read_dir(b.path("ladder")).unwrap().count(), 0);
}
