//! Groups of weights and recomputation through the real binary.

mod support;

use support::{Bench, tensors, with};

const SHORT: [&str; 2] = ["trainer_config.max_iters=4", "trainer_config.lr=0.01"];

fn snapshot(more: &[&str], said: &[&str]) -> std::collections::BTreeMap<String, Vec<u8>> {
    let b = Bench::new();
    b.train(&with(&SHORT, more)).done().mentions(said);
    tensors(b.snapshots().last().unwrap())
}

#[test]
fn frozen_weights_stay_and_have_no_moments() {
    let all = snapshot(&[], &[]);
    let initial = snapshot(
        &["trainer_config.freeze='vision_encoder.*,decoder.lm_head.*'", "trainer_config.max_iters=1"],
        &[],
    );
    let frozen = snapshot(&["trainer_config.freeze=vision_encoder.*"], &["not trained: ", "numbers)"]);
    let vision: Vec<&String> = frozen.keys().filter(|n| n.starts_with("vision_encoder.")).collect();
    assert!(
        vision.len() > 5 && vision.iter().all(|n| !n.ends_with(".adam_m") && !n.ends_with(".adam_v")),
        "{vision:?}"
    );
    assert!(vision.iter().all(|n| frozen[*n] == initial[*n]));
    assert!(
        vision.iter().any(|n| frozen[*n] != all[*n]) && all.contains_key("vision_encoder.cls_token.adam_m")
    );
}

#[test]
fn rates_of_their_own_act_and_are_said() {
    let all = snapshot(&[], &[]);
    let slow = snapshot(
        &["trainer_config.lr_groups='*.lm_head.*=1e-4, decoder.*=0.02'"],
        &["learning rate 0.0001 for *.lm_head.*: 2 of", "learning rate 0.02 for decoder.*: "],
    );
    assert!(all["decoder.lm_head.weight"] != slow["decoder.lm_head.weight"]);
}

#[test]
fn patterns_that_fit_nothing_or_everything_are_refused() {
    let b = Bench::new();
    b.train(&["trainer_config.freeze=vison.*"]).refused(&[
        "trainer_config.freeze",
        "no weight's name fits 'vison.*'",
        "decoder.*",
        "vision_encoder.*",
    ]);
    b.train(&["trainer_config.lr_groups=x=1"]).refused(&["trainer_config.lr_groups", "'x'"]);
    b.train(&["trainer_config.lr_groups=decoder.*=fast"])
        .refused(&["trainer_config.lr_groups: 'fast' is no learning rate"]);
    b.train(&["trainer_config.freeze=*"])
        .refused(&["error: trainer_config.freeze leaves no weight to train"]);
    b.train(&["trainer_config.lr_groups='decoder.*=1e-3,decoder.lm_head.*=1e-4'"]).refused(&[
        "error: trainer_config.lr_groups: 'decoder.lm_head.*' acts on no weight",
        "are taken before it, by 'decoder.*'",
        "the narrower one first",
    ]);
    b.train(&["trainer_config.freeze=decoder.*", "trainer_config.lr_groups=decoder.lm_head.*=1e-4"])
        .refused(&["'decoder.lm_head.*' acts on no weight", "by 'decoder.*'"]);
    b.train(&["trainer_config.lr_groups='decoder.*=1e-3,decoder.*=1e-4'"])
        .refused(&["'decoder.*' acts on no weight"]);
    assert!(!b.path("runs").exists());
    for look in [&["explain", "--vocab", "30"][..], &["bench", "step", "--vocab", "30"]] {
        let frozen = [look, &["trainer_config.freeze=nix.*"]].concat();
        b.run(&frozen).refused(&["trainer_config.freeze: no weight's name fits 'nix.*'"]);
    }
}

#[test]
fn recomputation_changes_no_bit() {
    let dropout = "model_config.dropout=0.1";
    assert!(snapshot(&[dropout], &[]) == snapshot(&[dropout, "trainer_config.recompute=true"], &[]));
}
