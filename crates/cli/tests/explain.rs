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
        .mentions(&["ms a step (median of 5 groups,", "images/s"]);
    let trained = run(&b, &["train"], &[]).done();
    let explained = run(&b, &["explain"], &[]).out;
    assert_eq!(hash(&explained), hash(&timed.err));
    assert_eq!(hash(&explained), hash(&trained.out));
}

/// The megabytes in front of or behind some words.
fn megabytes(text: &str, before: &str, after: &str) -> String {
    let rest = &text[text.find(before).unwrap_or_else(|| panic!("no '{before}' in {text}")) + before.len()..];
    rest[..rest.find(after).unwrap()].rsplit(' ').next().unwrap().to_string()
}

#[test]
fn the_state_is_that_of_a_run_with_room_for_captions() {
    let b = Bench::new();
    for accum in ["trainer_config.grad_accum=1", "trainer_config.grad_accum=2"] {
        let wide = [accum, "trainer_config.eval_batch_size=64"];
        let explained = run(&b, &["explain", "--vocab", "30"], &wide).done();
        let explained = explained.mentions(&["keys and values of captions"]).out;
        let timed = run(&b, &["bench", "step", "--steps", "1", "--vocab", "30"], &wide).done().err;
        let all = megabytes(&timed, "weights, ", " MB state in all");
        assert_eq!(megabytes(&explained, "; in all ", " MB"), all);
        let sizes = ["--vocab", "30", "--batch", "4,8", "--json"];
        let said = run(&b, &["explain"], &[&sizes[..], &wide].concat()).done();
        let v: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let bytes = v["sizes"][0]["state_bytes"].as_f64().unwrap();
        assert_eq!(format!("{:.1}", bytes / 1e6), all);
    }
}

#[test]
fn a_device_of_a_data_sheet_follows_the_keys() {
    let b = Bench::new();
    let vocab = ["--vocab", "30"];
    let cuda = ["--vocab", "30", "trainer_config.device=cuda"];
    run(&b, &["explain"], &cuda).refused(&["trainer_config.device=cuda", "--device h200"]);
    for (device, plain, tf32) in
        [("h200", "66.90", "494.70"), ("h100", "66.90", "494.70"), ("a100", "19.50", "156.00")]
    {
        let of =
            |more: &[&str]| run(&b, &["explain", "--device", device], &[&vocab[..], more].concat()).done();
        of(&["trainer_config.tf32=false"]).mentions(&[
            &format!("products {plain} TFLOP/s in 32 bits"),
            "(16-bit products on tensor cores)",
        ]);
        of(&[]).mentions(&[&format!("products {tf32} TFLOP/s in 32 bits"), "(TF32 and"]);
        of(&["trainer_config.device=cuda"]).mentions(&["by its data sheet"]);
    }
}

#[test]
fn each_program_of_a_step_is_timed_and_named() {
    let b = Bench::new();
    for (accum, runs) in
        [("trainer_config.grad_accum=3", vec![3, 1]), ("trainer_config.grad_accum=1", vec![1])]
    {
        let explained = run(&b, &["explain", "--json", "--vocab", "30"], &[accum]).done();
        let explained: serde_json::Value = serde_json::from_str(&explained.out).unwrap();
        let of = |more: &[&str]| {
            let first = ["bench", "step", "--steps", "1", "--vocab", "30"];
            run(&b, &[&first, more].concat(), &[accum]).done()
        };
        let said = of(&["--json", "--launches"]);
        let v: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let programs = v["programs"].as_array().unwrap();
        assert_eq!(programs.len(), runs.len());
        for ((p, e), runs) in programs.iter().zip(explained["programs"].as_array().unwrap()).zip(runs) {
            assert_eq!((&p["name"], &p["hash"]), (&e["name"], &e["hash"]));
            assert_eq!(p["runs_a_step"], runs);
            assert_eq!(p["launches"].as_array().unwrap().len(), e["launches"].as_array().unwrap().len());
            let hash = p["hash"].as_str().unwrap();
            assert!(v["step"].as_str().unwrap().contains(hash), "{v}");
            of(&["--launches"]).mentions(&[
                &format!("{hash}, {} times a step: ", p["runs_a_step"]),
                "at most, this machine, measured just now: products",
                "% of it the floor, all",
            ]);
            // What launches do is what the plan says, by launch and by op; the floor is of this machine's rates.
            let sum = |key: &str, of: &mut dyn Iterator<Item = &serde_json::Value>| {
                of.map(|l| l[key].as_f64().unwrap()).sum::<f64>()
            };
            let (launches, ops) = (p["launches"].as_array().unwrap(), p["by_op"].as_object().unwrap());
            for key in ["flops", "bytes"] {
                assert_eq!(sum(key, &mut launches.iter()), e[key].as_f64().unwrap());
                assert_eq!(sum(key, &mut ops.values()), e[key].as_f64().unwrap());
            }
            for l in launches {
                let least = l["bytes"].as_f64().unwrap() / v["roofline"]["bytes"].as_f64().unwrap();
                assert!(l["floor_seconds"].as_f64().unwrap() >= least, "{l}");
            }
        }
        let bare: serde_json::Value = serde_json::from_str(&of(&["--json"]).out).unwrap();
        assert_eq!(bare["programs"][0]["hash"], programs[0]["hash"]);
        assert!(bare["programs"][0]["launches"].is_null());
    }
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
    let plain = run(&b, &["explain"], &["trainer_config.compile=false"]).done();
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
    let said = run(&b, &["explain", "--graph", "forward", "--json"], &vocab).done();
    let v: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&v["graphs"][0]["pass"], v["graphs"].as_array().unwrap().len()), (&"forward".into(), 1));
    assert!(v["graphs"][0]["graph"].as_str().unwrap().contains("matmul"), "{v}");
    let both = run(&b, &["explain", "--graph", "forward", "--launches"], &vocab);
    assert_eq!(both.mentions(&["--graph", "--launches", "cannot be used with"]).code, Some(2));
    run(&b, &["explain", "--graph", "fusion"], &vocab)
        .refused(&["--graph fusion", "there are forward, row_slice"]);
    run(&b, &["explain", "--length", "100000"], &vocab)
        .refused(&["--length 100000", "model_config.max_positions"]);
    assert_eq!(run(&b, &["explain", "--batch", "0"], &vocab).mentions(&["from 1 to"]).code, Some(2));
    run(&b, &["bench", "step"], &["model_config.n_head=3"]).refused(&["n_head"]);
}
