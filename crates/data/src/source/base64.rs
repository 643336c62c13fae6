//! Pictures written as base64, in the ways people write it: either alphabet, padding or none, broken into
//! lines, with a data-URI in front.
//!
//! Invariant: no character is dropped in silence, except white space and the padding at the end.

use super::name::is_address;
use crate::scratch::take;
use crate::text::{count, printable};
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

/// Padding is taken off before; bits left over in the last character are the picture decoder's matter.
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

/// Characters decoded at a time: whole fours.
const CHUNK: usize = 4096;

/// Decodes `text`; the error says what was found and where. Takes no memory but for what comes out.
pub(crate) fn decode(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = take(text.len() / 4 * 3 + 3);
    out.clear();
    each_part(text, |part| out.extend_from_slice(part))?;
    Ok(out)
}

/// The same, handing out the bytes part by part: equal bytes in equal parts, in whatever way they are written.
pub(crate) fn each_part(text: &[u8], mut each: impl FnMut(&[u8])) -> Result<(), String> {
    let mut at = data_uri(text)?;
    let (mut chunk, mut characters) = (Vec::with_capacity(CHUNK), 0);
    let mut bytes = [0; CHUNK / 4 * 3];
    let mut decoded = |chunk: &[u8]| {
        let length = ENGINE.decode_slice(chunk, &mut bytes).map_err(|e| e.to_string())?;
        each(&bytes[..length]);
        Ok::<_, String>(())
    };
    loop {
        // Most pictures are written without a break, or in lines; the others are looked through character by character.
        let plain = text.get(at..at + CHUNK);
        if plain.is_some_and(|plain| decoded(plain).is_ok()) {
            at += CHUNK;
        } else if let Some(end) = lines(text, at, &mut chunk)
            && decoded(&chunk).is_ok()
        {
            at = end;
        } else {
            at = base64_alone(text, at, &mut chunk)?;
            if chunk.len() < CHUNK {
                break;
            }
            decoded(&chunk)?;
        }
        characters += CHUNK;
    }
    if chunk.len() % 4 == 1 {
        let characters = count(characters + chunk.len(), "character");
        return Err(format!("{characters} cannot be base64: one is missing or too many"));
    }
    if chunk.is_empty() { Ok(()) } else { decoded(&chunk) }
}

/// Fills `chunk` with what stands between white space from `at` on, whatever it is; where that ends, if there is enough.
fn lines(text: &[u8], mut at: usize, chunk: &mut Vec<u8>) -> Option<usize> {
    chunk.clear();
    while chunk.len() < CHUNK {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let rest = &rest[..rest.len().min(CHUNK - chunk.len())];
        let line = rest.iter().position(|byte| is_space(*byte)).unwrap_or(rest.len());
        chunk.extend_from_slice(&rest[..line]);
        at += line.max(1);
    }
    Some(at)
}

/// Fills `chunk` with characters of base64 from `at` on, up to the padding or the end of the text; where that is.
fn base64_alone(text: &[u8], mut at: usize, chunk: &mut Vec<u8>) -> Result<usize, String> {
    chunk.clear();
    while let Some(&byte) = text.get(at).filter(|_| chunk.len() < CHUNK) {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' => chunk.push(byte),
            b'-' => chunk.push(b'+'),
            b'_' => chunk.push(b'/'),
            space if is_space(space) => {}
            b'=' if is_padding(&text[at..]) => break,
            _ => {
                let found = printable(&text[at..], 12);
                return Err(format!("no base64 at character {}: `{found}`", at + 1));
            }
        }
        at += 1;
    }
    Ok(at)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Endings of picture files.
const ENDINGS: [&str; 10] =
    [".jpg", ".jpeg", ".jpe", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".avif"];

/// True if `text` is the name of a picture file, or the address of one, where base64 should be.
pub(crate) fn names_a_file(text: &[u8]) -> bool {
    // A longer field is data.
    let Some(text) = std::str::from_utf8(text).ok().filter(|t| t.len() <= 4096) else { return false };
    // An address may go on: `photo.jpg?size=large`.
    let name = text.trim().split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// The address that `text` is, where base64 should be.
pub(crate) fn address(text: &[u8]) -> Option<&str> {
    std::str::from_utf8(text).ok().filter(|text| text.len() <= 4096 && is_address(text))
}

/// One or two `=`, and nothing behind them but white space.
fn is_padding(rest: &[u8]) -> bool {
    let signs = rest.iter().filter(|b| **b == b'=').count();
    signs <= 2 && rest.iter().all(|b| *b == b'=' || b.is_ascii_whitespace())
}

/// Where the data begin: 0, or behind the comma of `data:image/png;base64,`.
fn data_uri(text: &[u8]) -> Result<usize, String> {
    let lead = text.iter().take_while(|b| b.is_ascii_whitespace()).count();
    if !text[lead..].get(..5).is_some_and(|head| head.eq_ignore_ascii_case(b"data:")) {
        return Ok(0);
    }
    let comma = text.iter().take(256).position(|b| *b == b',').ok_or("a data URI without a comma")?;
    let head = text[..comma].trim_ascii_end().to_ascii_lowercase();
    if head.ends_with(b";base64") { Ok(comma + 1) } else { Err("a data URI that is not base64".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_what_people_write() {
        // "\xfb\xff\xfe!" in both alphabets.
        for text in [
            "+//+IQ==",
            "-__-IQ==",
            "+//+IQ",
            " +//+\r\nIQ=\n=\n",
            "data:image/png;base64,+//+IQ==",
            "DATA:;base64,-__-IQ",
        ] {
            assert_eq!(decode(text.as_bytes()).as_deref(), Ok(&b"\xfb\xff\xfe!"[..]), "{text:?}");
        }
        assert_eq!(decode(b""), Ok(vec![]));
        for len in [3070, 3071, 3072, 3073, 9999] {
            let bytes: Vec<u8> = (0..len).map(|i| (i * 7 + i / 256) as u8).collect();
            let text = base64::engine::general_purpose::STANDARD.encode(&bytes);
            assert_eq!(decode(text.as_bytes()), Ok(bytes), "{len}");
            assert!(decode(format!("{}A", &text[..text.len() / 4 * 4 - 4]).as_bytes()).is_err(), "{len}");
        }
    }

    #[test]
    fn names_of_files_are_known() {
        for name in
            ["cat.jpg", " images/a b/Cat.JPEG\n", "C:\\x.png", "https://x.y/photo.webp?size=large", "é.gif"]
        {
            assert!(names_a_file(name.as_bytes()), "{name}");
        }
        for other in ["", "AAAA", "@@@", "jpg", "cat.jpg.zip", &format!("{}.jpg", "A".repeat(5000))] {
            assert!(!names_a_file(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn drops_nothing_in_silence() {
        for text in
            ["@@@", "AAAA!AAA", "AAAA=AAA", "AA===", "AAAAA", "data:image/png,AAAA", "data:AAAA", "AA\u{e9}A"]
        {
            assert!(decode(text.as_bytes()).is_err(), "{text:?}");
        }
        let error = decode(b"AAAABB!!CC").unwrap_err();
        assert!(error.contains("character 7") && error.contains("!!CC"), "{error}");
    }
}
