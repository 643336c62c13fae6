//! Words in messages.

/// A number with its noun: `1 row`, `2 rows`.
pub fn count(n: impl TryInto<u64>, noun: &str) -> String {
    match n.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn one_is_singular() {
        assert_eq!([0_u64, 1, 2].map(|n| count(n, "row")), ["0 rows", "1 row", "2 rows"]);
    }
}
