//! One token a character. Ids: the characters `0..n`, then `<pad>` = n, then, if wanted, `<eot>` = n + 1.
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use serde::Deserialize;

use super::{Encoded, Tokenizer, TokenizerError, UnknownCharacters, UnknownPolicy, vocab};

/// The name of this tokenizer in saved files.
pub(super) const KIND: &str = "char";

/// One token a Unicode character (scalar value).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CharTokenizer {
    chars: Vec<char>,
    ids: HashMap<char, u32>,
    end_of_text: bool,
    unknown: UnknownPolicy,
}

impl CharTokenizer {
    /// Reads a vocabulary file: one character a line, or all of them on its only line. `end_of_text` adds
    /// that token (`data_config.loss=masked`).
    pub fn from_file(path: &Path, end_of_text: bool, unknown: UnknownPolicy) -> Result<Self, TokenizerError> {
        Ok(Self::of_distinct(vocab::read(path)?, end_of_text, unknown))
    }

    /// As [`from_file`](Self::from_file), from the file's content; `place` names it in errors.
    pub fn from_bytes(
        content: &[u8],
        place: &str,
        end_of_text: bool,
        unknown: UnknownPolicy,
    ) -> Result<Self, TokenizerError> {
        Ok(Self::of_distinct(vocab::parse(content, place)?, end_of_text, unknown))
    }

    /// A vocabulary of all the given characters, in the order of their code points.
    pub fn learn(
        characters: impl IntoIterator<Item = char>,
        end_of_text: bool,
        unknown: UnknownPolicy,
    ) -> Result<Self, TokenizerError> {
        let chars: BTreeSet<char> = characters.into_iter().collect();
        if chars.is_empty() {
            return Err(TokenizerError::Empty { place: "learning the vocabulary from the captions".into() });
        }
        Ok(Self::of_distinct(chars.into_iter().collect(), end_of_text, unknown))
    }

    /// `unknown` replaces the saved policy.
    pub(super) fn from_json(json: &str, unknown: Option<UnknownPolicy>) -> Result<Self, TokenizerError> {
        #[derive(Deserialize)]
        struct Saved {
            characters: String,
            end_of_text: bool,
            unknown: UnknownPolicy,
        }
        let saved: Saved =
            serde_json::from_str(json).map_err(|e| TokenizerError::Saved { detail: e.to_string() })?;
        let chars: Vec<char> = saved.characters.chars().collect();
        if chars.is_empty() {
            return Err(TokenizerError::Saved { detail: "it has no characters".into() });
        }
        vocab::distinct(&chars, "the saved tokenizer", "character")?;
        Ok(Self::of_distinct(chars, saved.end_of_text, unknown.unwrap_or(saved.unknown)))
    }

    fn of_distinct(chars: Vec<char>, end_of_text: bool, unknown: UnknownPolicy) -> Self {
        let ids = (0..).zip(&chars).map(|(id, &c)| (c, id)).collect();
        Self { chars, ids, end_of_text, unknown }
    }

    /// The characters, in the order of their ids.
    pub fn characters(&self) -> &[char] {
        &self.chars
    }

    /// What stands for an unknown character under [`UnknownPolicy::Replace`]; `None` drops it.
    fn stand_in(&self) -> Option<u32> {
        self.ids.get(&'?').or_else(|| self.ids.get(&' ')).copied()
    }

    fn count_unknown(&self, text: &str) -> usize {
        text.chars().filter(|&c| !self.knows(c)).count()
    }
}

impl Tokenizer for CharTokenizer {
    fn encode(&self, text: &str) -> Result<Encoded, UnknownCharacters> {
        let mut encoded = Encoded { ids: Vec::with_capacity(text.len()), replaced: 0 };
        for character in text.chars() {
            match (self.ids.get(&character), self.unknown) {
                (Some(&id), _) => encoded.ids.push(id),
                (None, UnknownPolicy::Replace) => {
                    encoded.ids.extend(self.stand_in());
                    encoded.replaced += 1;
                }
                (None, UnknownPolicy::Error) => {
                    return Err(UnknownCharacters { character, count: self.count_unknown(text) });
                }
            }
        }
        Ok(encoded)
    }

    fn decode(&self, ids: &[u32]) -> String {
        ids.iter().filter_map(|&id| self.chars.get(id as usize)).collect()
    }

    fn vocab_size(&self) -> usize {
        self.chars.len() + 1 + usize::from(self.end_of_text)
    }

    fn pad(&self) -> u32 {
        // A vocabulary has at most 0x110000 - 0x800 characters.
        self.chars.len() as u32
    }

    fn end_of_text(&self) -> Option<u32> {
        self.end_of_text.then(|| self.pad() + 1)
    }

    fn knows(&self, character: char) -> bool {
        self.ids.contains_key(&character)
    }

    fn to_json(&self) -> String {
        let characters: String = self.chars.iter().collect();
        serde_json::json!({
            "kind": KIND,
            "characters": characters,
            "end_of_text": self.end_of_text,
            "unknown": self.unknown,
        })
        .to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tokenizer::from_json;

    fn learnt(text: &str, eot: bool, unknown: UnknownPolicy) -> CharTokenizer {
        CharTokenizer::learn(text.chars(), eot, unknown).unwrap()
    }

    #[test]
    fn ids_are_characters_then_pad_then_end() {
        let t = learnt("cab", true, UnknownPolicy::Error);
        assert_eq!(t.encode("abc").unwrap().ids, [0, 1, 2]);
        assert_eq!((t.pad(), t.end_of_text(), t.vocab_size()), (3, Some(4), 5));
        let t = learnt("cab", false, UnknownPolicy::Error);
        assert_eq!((t.pad(), t.end_of_text(), t.vocab_size()), (3, None, 4));
        assert_eq!(t.decode(&[0, 3, 2, 4, 1, u32::MAX]), "acb");
    }

    #[test]
    fn a_file_of_77_gives_pad_77() {
        let file: String = (0..77u8).map(|i| format!("{}\n", char::from(b' ' + i))).collect();
        let t = CharTokenizer::from_bytes(file.as_bytes(), "v", false, UnknownPolicy::Error).unwrap();
        assert_eq!((t.pad(), t.vocab_size()), (77, 78));
        let t = CharTokenizer::from_bytes(file.as_bytes(), "v", true, UnknownPolicy::Error).unwrap();
        assert_eq!((t.pad(), t.end_of_text(), t.vocab_size()), (77, Some(78), 79));
    }

    #[test]
    fn the_text_pad_is_five_characters() {
        let t = learnt("a <pad>", true, UnknownPolicy::Error);
        let ids = t.encode("a <pad>").unwrap().ids;
        assert!(ids.len() == 7 && !ids.contains(&t.pad()));
        assert_eq!(t.decode(&ids), "a <pad>");
    }

    #[test]
    fn unknown_characters() {
        let t = learnt("ab", true, UnknownPolicy::Error);
        let error = t.encode("aébéc").unwrap_err();
        assert_eq!(error, UnknownCharacters { character: 'é', count: 3 });
        assert!(error.to_string().starts_with("'é' (U+00E9) is not in the vocabulary (3 unknown"));
        let replaced = |vocabulary, text| {
            let t = learnt(vocabulary, true, UnknownPolicy::Replace);
            let e = t.encode(text).unwrap();
            (t.decode(&e.ids), e.replaced)
        };
        assert_eq!(replaced("ab? ", "aéb"), ("a?b".into(), 1));
        assert_eq!(replaced("ab ", "aéb"), ("a b".into(), 1));
        assert_eq!(replaced("ab", "aéb"), ("ab".into(), 1));
        assert_eq!(replaced("ab", "éé"), (String::new(), 2));
    }

    #[test]
    fn hostile_saved_tokenizers() {
        for json in [
            "",
            "[]",
            "{}",
            r#"{"kind":"bpe"}"#,
            r#"{"kind":"char"}"#,
            r#"{"kind":"char","characters":"aa","end_of_text":true,"unknown":"error"}"#,
            r#"{"kind":"char","characters":"","end_of_text":true,"unknown":"error"}"#,
            r#"{"kind":"char","characters":"a","end_of_text":1,"unknown":"error"}"#,
        ] {
            assert!(from_json(json).is_err(), "{json}");
        }
        assert!(CharTokenizer::learn([], true, UnknownPolicy::Error).is_err());
    }

    proptest! {
        #[test]
        fn round_trip(text in ".{1,60}", eot: bool, replace: bool) {
            let policy = if replace { UnknownPolicy::Replace } else { UnknownPolicy::Error };
            let t = learnt(&text, eot, policy);
            let ids = t.encode(&text).unwrap().ids;
            prop_assert_eq!(t.decode(&ids), text.clone());
            prop_assert!(ids.iter().all(|&id| id < t.pad()));
            let back = from_json(&t.to_json()).unwrap();
            prop_assert_eq!(back.to_json(), t.to_json());
            prop_assert_eq!(back.encode(&text).unwrap().ids, ids);
            prop_assert_eq!(back.vocab_size(), t.vocab_size());
        }
    }
}
