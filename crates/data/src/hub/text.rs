//! Small pieces of text: sizes for people, and other people's words made harmless.

/// A number of bytes for a person: exact below 10 kB, else with three digits.
pub(super) fn size(bytes: u64) -> String {
    let units = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 10_000 {
        return format!("{bytes} bytes");
    }
    let mut value = bytes as f64 / 1e3;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1e3;
        unit += 1;
    }
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$} {}", units[unit])
}

/// A server's own words: one short line without control characters, which could steer a terminal.
pub(super) fn harmless(text: &str) -> String {
    const LONGEST: usize = 200;
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST).collect();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits() {
        let cases = [
            (0, "0 bytes"),
            (9_999, "9999 bytes"),
            (10_000, "10.0 kB"),
            (999_499, "999 kB"),
            (999_999, "1.00 MB"),
            (54_321_000, "54.3 MB"),
            (1_234_567_890, "1.23 GB"),
            (u64::MAX, "18.4 EB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn words_of_servers_do_not_steer_terminals() {
        assert_eq!(harmless("a\u{1b}[31m\r\nb"), "a [31m b");
        assert_eq!(harmless(&"x".repeat(1000)).len(), 200);
    }
}
