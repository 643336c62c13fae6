//! Groups of weights by name (`trainer_config.freeze`, `trainer_config.lr_groups`).

use crate::types::TrainerConfig;

/// Names of weights: `*` stands for any characters, also none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// The pattern as it was written.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// True if it stands for this name.
    pub fn matches(&self, name: &str) -> bool {
        let parts: Vec<&str> = self.0.split('*').collect();
        let [first, middle @ .., last] = &parts[..] else { return self.0 == name };
        let Some(mut rest) = name.strip_prefix(first) else { return false };
        for part in middle {
            let Some(at) = rest.find(part) else { return false };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(last)
    }

    fn new(text: &str) -> Result<Self, String> {
        let text = text.trim();
        match text.chars().find(|c| c.is_whitespace() || *c == '=') {
            _ if text.is_empty() => Err("a pattern is empty: patterns are divided by commas".into()),
            Some(c) => Err(format!("the pattern '{text}' has a {c:?}, which no weight's name has")),
            None => Ok(Self(text.into())),
        }
    }
}

impl TrainerConfig {
    /// The weights that are not trained.
    ///
    /// # Errors
    /// If the key's text is no list of patterns.
    pub fn frozen(&self) -> Result<Vec<Pattern>, String> {
        self.freeze.iter().flat_map(|list| list.split(',')).map(Pattern::new).collect()
    }

    /// Weights with learning rates of their own; the first pattern that fits counts.
    ///
    /// # Errors
    /// If the key's text is no list of `pattern=rate`.
    pub fn rates(&self) -> Result<Vec<(Pattern, f64)>, String> {
        let one = |text: &str| {
            let (pattern, rate) = text
                .split_once('=')
                .ok_or_else(|| format!("'{}' is not of the form pattern=rate", text.trim()))?;
            match rate.trim().parse::<f64>() {
                Ok(lr) if lr > 0.0 && (lr as f32) > 0.0 && (lr as f32).is_finite() => {
                    Ok((Pattern::new(pattern)?, lr))
                }
                _ => Err(format!(
                    "'{}' is no learning rate above 0; to keep weights as they are use trainer_config.freeze",
                    rate.trim()
                )),
            }
        };
        self.lr_groups.iter().flat_map(|list| list.split(',')).map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stand_for_names() {
        let fits = |pattern: &str, name: &str| Pattern::new(pattern).unwrap().matches(name);
        assert!(fits("vision.*", "vision.blocks.0.w") && !fits("vision.*", "a.vision.w"));
        assert!(fits("*.bias", "a.b.bias") && !fits("*.bias", "a.bias.b") && !fits("a", "ab"));
        assert!(fits("a.*.ln*.weight", "a.blocks.3.ln1.weight") && !fits("a.*.ln*.weight", "a.ln1.bias"));
        assert!(fits("*", "anything") && fits("a*a", "aa") && !fits("a*a", "a"));
    }

    #[test]
    fn lists_are_read_and_refused_with_the_part_that_is_wrong() {
        let rates =
            |text: &str| TrainerConfig { lr_groups: Some(text.into()), ..TrainerConfig::default() }.rates();
        let found = rates("vision.*=1e-5, *.bias = 0.1").unwrap();
        assert_eq!(
            found.iter().map(|(p, r)| (p.text(), *r)).collect::<Vec<_>>(),
            [("vision.*", 1e-5), ("*.bias", 0.1)]
        );
        for (text, wrong) in
            [("a", "'a' is not"), ("a=x", "'x' is no"), ("a=0", "freeze"), ("=1", "empty"), ("a b=1", "' '")]
        {
            let error = rates(text).unwrap_err();
            assert!(error.contains(wrong), "{text}: {error}");
        }
        let frozen =
            |text: &str| TrainerConfig { freeze: Some(text.into()), ..TrainerConfig::default() }.frozen();
        assert_eq!(frozen("a.*,b").unwrap().len(), 2);
        assert!(frozen("a,,b").unwrap_err().contains("empty") && frozen("a=1").is_err());
    }
}
