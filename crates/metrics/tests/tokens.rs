//! Tokens beside those of `pycocoevalcap`'s Java tokenizer (`scripts/make_metric_golden.py`).

use ocelli_metrics::tokens;
use proptest::prelude::*;

/// Captions that are cut otherwise: emoticons and telephone numbers are no tokens of their own here, a whole number and the
/// fraction behind it are two, and what captions hardly have (`5p.m.`, `v1.2`) is not worth a rule.
const DIFFERENT: &[&str] = &[
    ":-) ;) <3 <b>bold</b> &amp; \u{a9} \u{2122} \u{20ac} \u{a3}5 \u{a2} \u{e9} caf\u{e9} na\u{ef}ve \u{732b} \u{1f600} ",
    "t-shirt 1-2 2-3pm 5-year 1990-1995 555-1234 (555) 555-1234 12/25/2010 5x5 4x4 2' x 4'",
    "2/3 of 1 1/2",
    "at 5p.m. on",
    "v1.2",
    ":-D x",
    ":) x",
];

#[test]
fn captions_are_cut_as_the_reference_cuts_them() {
    let golden = include_str!("golden/tokens.tsv");
    let (mut wrong, mut known) = (Vec::new(), 0);
    for line in golden.lines() {
        let (text, want) = line.rsplit_once('\t').unwrap();
        let have = tokens(text).join(" ");
        match (have == want, DIFFERENT.contains(&text)) {
            (true, false) => {}
            (false, true) => known += 1,
            _ => wrong.push(format!("{text}\n  have {have}\n  want {want}")),
        }
    }
    assert!(golden.lines().count() > 300);
    assert!(wrong.is_empty() && known == DIFFERENT.len(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

proptest! {
    #[test]
    fn any_text_is_cut_into_lower_case_without_white_space(text in "\\PC{0,60}|[a-z.,' !?-]{0,40}") {
        for token in tokens(&text) {
            prop_assert!(!token.is_empty() && !token.contains(char::is_whitespace), "{token:?}");
            prop_assert!(![",", ".", "'", "-", ";"].contains(&&token[..]));
        }
    }
}
