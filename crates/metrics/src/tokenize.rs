//! Captions into tokens as the field's scores expect them: the Penn treebank's rules, lower case, no punctuation.
//!
//! The reference package runs Stanford's PTBTokenizer (CoreNLP 3.4.1), a Java program, and drops its punctuation. These
//! are its rules as far as captions need them: contractions, abbreviations, numbers, hyphens, brackets, symbols. A caption
//! is cut as if it stood alone; the Java program also looks at the caption that follows in its file. Where the two
//! differ is in the crate's tests.

use regex::Regex;
use std::sync::LazyLock;

/// What a token is; of several rules that hold at one place the first one counts.
const RULES: &str = r#"(?xi)
    https?://[^\s]*[^\s.,!?] | www\.[^\s]*[^\s.,!?] | [\w.+-]+@[\w-]+(\.[\w-]+)*
  | </?[a-z][^<>\s]*>                               # a tag, such as <person>
  | &(amp|lt|gt|quot|nbsp);
  | \b(cannot|gonna|gotta|gimme|lemme|wanna)\b | ['’]t(is|was)\b | \bmore['’]n\b | \by['’][\p{L}]+
  | [\p{L}]*n['’]t\b                                # isn't
  | ''                                              # closes a quotation
  | ['’]n['’]                                       # rock 'n' roll
  | ['’](s|m|d|ll|re|ve|em|cause|til|n|[0-9]0s|[0-9]{2})\b
  | \b(mrs?|ms|messrs|mme|mlle|dr|st|jr|sr|esq|prof|rev|hon|gov|gens?|sen|reps?|pres|supt|insp|msgr|atty|brig|capt|cmdr
      |col|cpl|lt|lieut|maj|pvt|sgt|adm|wm|jos|inc|corp?|ltd|bros|plc|univ|assn|asst|assoc|dept|intl|natl|elec|mfg|bhd
      |bancorp|sys|ave|blvd|rd|ct|sq|bldg|ste|ft|mt|rt|vs|etc|est|cf|al|ca|tel|ext|no|ph\.d|co
      |jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|mon|tues?|wed|thurs?|thu|fri
      |ala|ariz|calif|colo|conn|dak|fla|ga|ind|kans|ky|md|mich|minn|mo|mont|neb|nev|okla|penn|tenn|va|vt|wisc?|wyo)\.\B
  | \b([a-z]\.){2,}-[a-z]+ | \b([a-z]\.)+\B         # U.S.-made, a.m., J.
  | \b(?-i:[A-Z]+(&[A-Z]+)+)\b                      # B&W
  | \bc\+\+ | \bc\#
  | ma['’]am\b | [a-z]['’]mon\b | n?e['’]er\b | \bol['’] | nat['’]l\b | \b[dol]['’][\p{L}]+
  | \#[a-z][\w]* | @[a-z_][\w]*
  | (us|[a-z])?\$
  | [-+]?\p{Nd}+([.,:]\p{Nd}+)+(-[\p{L}]+)?         # 1,000 and 10:30
  | [\p{L}\p{M}\p{Nd}]+([-/_][\p{L}\p{M}\p{Nd}]+)+  # two-year-old, black/white
  | [-+]\p{Nd}+\b
  | [\p{L}\p{M}\p{Nd}]+([.!?]\p{L}[\p{L}\p{M}\p{Nd}]*)*
  | [!?]{2,} | \*{2,} | <{2,} | >{2,} | _+ | \^_\^
  | [^\s]
"#;

static TOKEN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(RULES).expect("the rules are a constant, and tested"));

/// The tokens of a caption, in lower case and without punctuation (`. , : ; ! ? - --` and quotes; several `!` or `?` in a
/// row stay, as do brackets, as `-lrb-`, `-rrb-` and so on).
///
/// ```
/// assert_eq!(ocelli_metrics::tokens("A man's dog isn't here."), ["a", "man", "'s", "dog", "is", "n't", "here"]);
/// ```
pub fn tokens(caption: &str) -> Vec<String> {
    let mut out = Vec::new();
    for found in TOKEN.find_iter(caption) {
        let lower = found.as_str().to_lowercase().replace('’', "'");
        // A number follows what stands for the word "number".
        let number = || caption[found.end()..].trim_start().starts_with(|c: char| c.is_ascii_digit());
        match &lower[..] {
            "no." if !number() => out.push("no".to_owned()),
            token => push(token, &mut out),
        }
    }
    out
}

/// Adds what a match stands for.
fn push(token: &str, out: &mut Vec<String>) {
    let parts: &[&str] = match token {
        "(" => &["-lrb-"],
        ")" => &["-rrb-"],
        "[" => &["-lsb-"],
        "]" => &["-rsb-"],
        "{" => &["-lcb-"],
        "}" => &["-rcb-"],
        "cannot" => &["can", "not"],
        "gonna" => &["gon", "na"],
        "gotta" => &["got", "ta"],
        "gimme" => &["gim", "me"],
        "lemme" => &["lem", "me"],
        "wanna" => &["wan", "na"],
        "'tis" => &["'t", "is"],
        "'twas" => &["'t", "was"],
        "more'n" => &["more", "'n"],
        "&amp;" => &["&"],
        "&lt;" => &["<"],
        "&gt;" => &[">"],
        "£" => &["#"],
        "€" => &["$"],
        "¢" => &["cents"],
        "½" => &["1/2"],
        "¼" => &["1/4"],
        "¾" => &["3/4"],
        _ if is_dropped(token) => &[],
        _ => return out.extend(split(token).map(str::to_owned)),
    };
    out.extend(parts.iter().map(|&part| part.to_owned()));
}

/// Tokens that scores leave out, and characters that the Java program does not know.
fn is_dropped(token: &str) -> bool {
    let mut chars = token.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => {
            ".,:;!?-'\"`‘’“”«»‹›–—…\u{200b}\u{fe0f}".contains(c) || (c > '\u{ffff}' && !c.is_alphanumeric())
        }
        _ => matches!(token, "''" | "&quot;" | "&nbsp;"),
    }
}

/// `isn't` is `is` and `n't`, `y'all` is `y'` and `all`, `us$` stays.
fn split(token: &str) -> impl Iterator<Item = &str> {
    let at = match token {
        _ if token.ends_with("n't") => token.len() - 3,
        _ if token.starts_with("y'") => 2,
        _ => token.len(),
    };
    let (a, b) = token.split_at(at);
    [a, b].into_iter().filter(|part| !part.is_empty())
}
