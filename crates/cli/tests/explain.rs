//! `ocelli explain` and `ocelli bench step` through the real binary.

mod support;

use support::Bench;

/// A model small enough to compile in no time, with a vocabulary of its own.
const SMALL: [&str; 10] = [
    "model_config.img_size=16",
    "model_config.patch_size=8",
    "model_config.num_blks=2",
    "model_config.n_layer=2",
    "model_config.n_embd=16",
    "model_config.image_embed_dim=16",
    "model_config.n_head=2",
    "trainer_config.train_batch_size=4",
    "trainer_config.max_iters=3",
    "trainer_config.warmup_iters=0",
];

fn run(b: &Bench, first: &[&str], more: &[&str]) -> support::Said {
    b.run(&[first, &SMALL, more].concat())
}

fn hash(text: &str) -> String {
    let at = text.find("plan ").unwrap_or_else(|| panic!("no plan in {text}"));
    let words: Vec<&str> = text[at..].split([' ', ':']).collect();
    words.iter().find(|w| w.len() == 16 && w.chars().all(|c| c.is_ascii_hexdigit())).unwrap().to_string()
}

#[test]
fn the_step_explained_timed_and_trained_is_one() {
    let b = Bench::new();
    let explained = run(&b, &["explain"], &[]).done();
    explained.mentions(&[
        "roofline of this machine, measured just now: products",
        "state: weights ",
        "program train[B=4,T=",
        "row_slice",
        "autodiff",
        "simplify",
        "by op",
        "matmul",
        "longest launches",
        "scratch memory: ",
    ]);
    let timed = run(&b, &["bench", "step", "--steps", "5"], &[])
        .done()
        .mentions(&["ms a step (median of 5,", "images/s"]);
    let trained = run(&b, &["train"], &[]).done();
    let explained = run(&b, &["explain"], &[]).out;
    assert_eq!(hash(&explained), hash(&timed.err));
    assert_eq!(hash(&explained), hash(&trained.out));
}

#[test]
fn as_json_it_adds_up() {
    let b = Bench::new();
    let more = ["--json", "--vocab", "30", "--length", "9", "--batch", "3", "--device", "h200"];
    let said = run(&b, &["explain"], &[&more[..], &["trainer_config.grad_accum=2"]].concat()).done();
    let v: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((v["batch"].as_u64(), v["length"].as_u64()), (Some(3), Some(9)));
    let programs = v["programs"].as_array().unwrap();
    assert_eq!(programs.len(), 2);
    assert_eq!(programs[0]["name"], "accumulate[B=3,T=9]");
    for p in programs {
        let launches = p["launches"].as_array().unwrap();
        let sum: u64 = launches.iter().map(|l| l["flops"].as_u64().unwrap()).sum();
        assert_eq!(p["flops"].as_u64().unwrap(), sum);
        let live: Vec<u64> =
            p["scratch_in_use"].as_array().unwrap().iter().map(|x| x.as_u64().unwrap()).collect();
        assert_eq!(live.len(), launches.len());
        assert!(live.iter().all(|x| *x <= p["scratch_bytes"].as_u64().unwrap()));
    }
    let weights = v["state"].as_array().unwrap().iter().filter(|s| s["kind"] == "Parameter");
    assert!(weights.count() > 20);
}

#[test]
fn what_compile_fuses_is_named_and_trained() {
    let b = Bench::new();
    let fused = ["trainer_config.compile=true", "model_config.dropout=0.1", "model_config.blk_dropout=0.1"];
    let names = ["  fuse ", "fused dropout+add", "fused matmul+gelu"];
    let explained = run(&b, &["explain"], &fused).done().mentions(&names);
    let trained = run(&b, &["train"], &fused).done();
    assert_eq!(hash(&explained.out), hash(&trained.out));
    assert!(!trained.err.contains("without effect"), "{}", trained.err);
    let plain = run(&b, &["explain"], &[]).done();
    assert!(!plain.out.contains("fuse"), "{}", plain.out);
}

#[test]
fn memory_of_several_sizes_at_once() {
    let b = Bench::new();
    let many = ["--vocab", "30", "--batch", "2,16", "--length", "4,9", "--dtype", "f32,fp16"];
    let table = run(&b, &["explain"], &many).done().mentions(&["batch", "length", "scratch", "fp16"]);
    assert_eq!(table.out.trim().lines().count(), 10, "{}", table.out);
    let said = run(&b, &["explain", "--json", "--device", "h200"], &many).done();
    let v: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let sizes = v["sizes"].as_array().unwrap();
    assert_eq!(sizes.len(), 8);
    let of = |batch: u64, length: u64, dtype: &str| {
        let found =
            sizes.iter().find(|s| s["batch"] == batch && s["length"] == length && s["dtype"] == dtype);
        found.unwrap()["scratch_bytes"].as_u64().unwrap()
    };
    assert!(of(2, 4, "f32") < of(2, 9, "f32") && of(2, 9, "f32") < of(16, 9, "f32"));
    assert!(of(16, 9, "fp16") < of(16, 9, "f32"));
    // One of them alone says the same.
    let alone = ["--json", "--vocab", "30", "--batch", "16", "--length", "9", "--dtype", "fp16"];
    let said = run(&b, &["explain", "--device", "h200"], &alone).done();
    let one: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(one["programs"][0]["scratch_bytes"].as_u64(), Some(of(16, 9, "fp16")));
    run(&b, &["explain", "--launches"], &many).refused(&["--launches", "one --batch"]);
    run(&b, &["explain"], &["--vocab", "30", "--length", "4,100000"]).refused(&["--length 100000"]);
}

#[test]
fn graphs_of_passes_and_what_cannot_be() {
    let b = Bench::new();
    let vocab = ["--vocab", "30"];
    let half = ["trainer_config.use_amp=true", "trainer_config.amp_dtype=bf16"];
    run(&b, &["explain", "--graph", "precision"], &[&vocab[..], &half].concat()).done().mentions(&[
        "program train[B=4,T=",
        "behind precision:",
        "bf16[",
        "= cast(",
    ]);
    run(&b, &["explain", "--graph", "fusion"], &vocab)
        .refused(&["--graph fusion", "there are forward, row_slice"]);
    run(&b, &["explain", "--length", "100000"], &vocab)
        .refused(&["--length 100000", "model_config.max_positions"]);
    assert_eq!(run(&b, &["explain", "--batch", "0"], &vocab).mentions(&["from 1 to"]).code, Some(2));
    run(&b, &["bench", "step"], &["model_config.n_head=3"]).refused(&["n_head"]);
}
