//! Scores beside those of the reference packages (`scripts/make_metric_golden.py`), from raw captions on.

use ocelli_metrics::{Pair, Scores};
use proptest::prelude::*;
use serde_json::Value;

/// The largest difference that is borne.
const BOUND: f64 = 1e-6;

/// A case: its name, its pairs as texts, and the figures of the reference packages.
struct Case {
    name: String,
    texts: Vec<(String, Vec<String>)>,
    want: Vec<f64>,
}

fn cases() -> Vec<Case> {
    let golden: Vec<Value> = serde_json::from_str(include_str!("golden/scores.json")).unwrap();
    let text = |v: &Value| v.as_str().unwrap().to_owned();
    let pair = |p: &Value| {
        (text(&p["candidate"]), p["references"].as_array().unwrap().iter().map(text).collect::<Vec<_>>())
    };
    let case = |c: &Value| {
        let others = ["cider", "rouge_l", "meteor_exact"].map(|key| &c[key]);
        Case {
            name: text(&c["name"]),
            texts: c["pairs"].as_array().unwrap().iter().map(pair).collect(),
            want: c["bleu"].as_array().unwrap().iter().chain(others).map(|v| v.as_f64().unwrap()).collect(),
        }
    };
    golden.iter().map(case).collect()
}

fn pairs(texts: &[(String, Vec<String>)]) -> Vec<Pair> {
    texts.iter().map(|(candidate, references)| Pair::new(candidate, references)).collect()
}

/// BLEU-1..4, CIDEr, ROUGE-L, METEOR.
fn figures(pairs: &[Pair]) -> Vec<f64> {
    let s = Scores::of(pairs);
    s.bleu.into_iter().chain([s.cider, s.rouge_l, s.meteor_exact]).collect()
}

#[test]
fn scores_are_the_reference_packages() {
    let cases = cases();
    assert_eq!(cases.len(), 5);
    for case in cases {
        for (i, (have, want)) in figures(&pairs(&case.texts)).iter().zip(&case.want).enumerate() {
            assert!((have - want).abs() <= BOUND, "{}: figure {i} is {have}, want {want}", case.name);
        }
    }
}

/// One word less in one of 120 candidates is seen in every figure.
#[test]
fn each_bound_can_fail() {
    let mut case = cases().remove(0);
    let (candidate, _) = &mut case.texts[0];
    *candidate = candidate.rsplit_once(' ').unwrap().0.to_owned();
    for (i, (have, want)) in figures(&pairs(&case.texts)).iter().zip(&case.want).enumerate() {
        assert!((have - want).abs() > BOUND, "figure {i}");
    }
}

#[test]
fn captions_equal_to_a_reference_score_most() {
    let texts: Vec<(String, Vec<String>)> =
        cases().remove(0).texts.into_iter().map(|(_, refs)| (refs[0].clone(), refs[..1].to_vec())).collect();
    let s = Scores::of(&pairs(&texts));
    assert_eq!((s.exact_match, s.rouge_l), (1.0, 1.0));
    assert!(s.bleu.iter().all(|b| (b - 1.0).abs() < 1e-9) && (s.cider - 10.0).abs() < 1e-9, "{s:?}");
    assert!(s.meteor_exact > 0.99 && s.meteor_exact < 1.0);
}

#[test]
fn a_match_is_exact_and_of_any_reference() {
    let share = |texts: &[(&str, &[&str])]| {
        let pairs: Vec<Pair> = texts.iter().map(|(c, r)| Pair::new(c, r)).collect();
        ocelli_metrics::exact_match(&pairs)
    };
    assert_eq!(share(&[("a cat ", &["a dog", "a cat"]), ("A cat", &["a cat"])]), 0.5);
    assert_eq!(share(&[("", &[]), ("", &[""])]), 0.5);
}

#[test]
fn nothing_scores_nothing_and_is_no_nan() {
    for texts in [
        vec![],
        vec![(String::new(), vec![])],
        vec![("a".into(), vec![])],
        vec![("!".into(), vec!["a".into()])],
    ] {
        let s = Scores::of(&pairs(&texts));
        assert!(figures(&pairs(&texts)).iter().all(|x| x.abs() < 1e-5), "{texts:?}: {s:?}");
    }
}

fn caption() -> impl Strategy<Value = String> {
    prop::collection::vec("a|b|c|the|cat|dog|[a-z]{1,3}|[.,!']", 0..9).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn any_captions_score_within_the_range_and_their_order_does_not_matter(
        texts in prop::collection::vec((caption(), prop::collection::vec(caption(), 0..4)), 0..8),
    ) {
        let mut pairs = pairs(&texts);
        let have = figures(&pairs);
        for (i, x) in have.iter().enumerate() {
            let most = if i == 4 { 10.0 } else { 1.0 };
            prop_assert!((0.0..=most + 1e-6).contains(x), "figure {i} is {x}");
        }
        pairs.reverse();
        for (a, b) in figures(&pairs).iter().zip(&have) {
            prop_assert!((a - b).abs() < 1e-12);
        }
        prop_assert_eq!(figures(&pairs), figures(&pairs));
    }
}
