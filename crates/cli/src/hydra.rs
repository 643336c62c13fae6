//! Options of Hydra's command line: two are ours under another name, the others are refused by name.
//!
//! The parser knows one letter behind one dash, and Hydra has two: so its options are told from the arguments themselves.

use clap::Error;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;

/// Hydra's names for options that are here too.
const OURS: [(&str, &str); 2] = [("-cn", "--config-name"), ("-cp", "--config-path")];

const PRINT: &str = "to see the configuration, with where each value comes from, use --print-config";

/// Hydra's other options, and what to use instead.
const REFUSED: [(&[&str], &str); 9] = [
    (&["--config-dir", "-cd"], "to search a folder for a configuration first, use --config-path"),
    (&["--cfg", "-c"], PRINT),
    (&["--resolve"], PRINT),
    (&["--info", "-i"], PRINT),
    (&["--package", "-p"], "--print-config shows the whole configuration, and a shell can cut it"),
    (&["--run", "-r"], "leave it out: `ocelli train` runs"),
    (&["--experimental-rerun"], "to go on from a run, use --resume with its folder"),
    (&["--hydra-help"], "see `ocelli train --help`, and `ocelli config` for the keys"),
    (&["--shell-completion", "-sc"], "there is no completion for shells"),
];

/// The arguments with Hydra's names replaced by ours.
pub fn translated(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut options = true;
    args.map(|arg| {
        // Behind `--` there are no options.
        options &= arg != "--";
        let text = arg.to_str().filter(|_| options).unwrap_or_default();
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        match (OURS.iter().find(|(theirs, _)| *theirs == name), value) {
            (Some((_, ours)), Some(value)) => format!("{ours}={value}").into(),
            (Some((_, ours)), None) => ours.into(),
            (None, _) => arg,
        }
    })
    .collect()
}

/// The parser's error; if it is about an option of Hydra's among `args`, with what to use instead; if an argument is
/// no text, with which one.
pub fn explained(mut error: Error, args: &[OsString]) -> Error {
    if error.kind() == ErrorKind::InvalidUtf8 {
        return Error::raw(ErrorKind::InvalidUtf8, not_text(args));
    }
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidArg).cloned() else {
        return error;
    };
    let Some((name, instead)) = args.iter().find_map(|arg| known(arg.to_str()?, &wrong)) else {
        return error;
    };
    error.remove(ContextKind::SuggestedArg);
    error.insert(ContextKind::InvalidArg, ContextValue::String(name.into()));
    let tip = StyledStr::from(format!("{name} is an option of Hydra's: {instead}"));
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    error
}

/// Which arguments are no text.
fn not_text(args: &[OsString]) -> String {
    let bad = args.iter().enumerate().filter(|(_, arg)| arg.to_str().is_none());
    let bad = bad.map(|(i, arg)| format!("argument {i}, `{}`, ", arg.as_encoded_bytes().escape_ascii()));
    format!("{}is not UTF-8 text: give the file another name, or a link to it\n", bad.collect::<String>())
}

/// Hydra's option that `arg` is, if the parser stumbled over it: of `-cd` it names `-c`.
fn known<'a>(arg: &'a str, wrong: &str) -> Option<(&'a str, &'static str)> {
    let name = arg.split('=').next()?;
    let (_, instead) = REFUSED.iter().find(|(names, _)| names.contains(&name))?;
    (name == wrong || name.strip_prefix(wrong).is_some_and(|_| wrong.len() == 2)).then_some((name, *instead))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_up_to_the_double_dash() {
        let of = |args: &[&str]| translated(args.iter().map(|a| OsString::from(*a)));
        let same = ["ocelli", "train", "-m", "-cnx", "a=-cn"];
        assert_eq!(of(&same), same);
        assert_eq!(
            of(&["train", "-cn", "x", "-cp=a=b", "--", "-cn"]),
            ["train", "--config-name", "x", "--config-path=a=b", "--", "-cn"]
        );
    }
}
