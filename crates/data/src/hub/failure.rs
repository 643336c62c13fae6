//! One failed attempt: what it means for a person, and whether another attempt may do better.

use std::io::ErrorKind;
use std::time::Duration;

use ureq::http::{Response, Uri, header};
use ureq::{Body, Error};

use super::text::harmless;
use super::{HubError, Missing, Settings};

/// The longest wait that a server can ask for; one that asks for more is not asked again.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Why an attempt failed.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: HubError,
    /// It may pass.
    pub(super) passing: bool,
    /// The server said when to come back.
    pub(super) after: Option<Duration>,
    /// Something was gained, so that attempts are counted anew.
    pub(super) progressed: bool,
}

impl Failure {
    /// One that may pass.
    pub(super) fn passing(error: HubError) -> Self {
        Self { error, passing: true, after: None, progressed: false }
    }
}

impl From<HubError> for Failure {
    /// One that stays.
    fn from(error: HubError) -> Self {
        Self { error, passing: false, after: None, progressed: false }
    }
}

/// An address for people: what stands behind `?` may be a signature.
pub(super) fn shown(at: &Uri) -> String {
    let text = at.to_string();
    text.split('?').next().unwrap_or_default().to_string()
}

/// An answer of another kind.
pub(super) fn answer(url: &str, found: &str) -> Failure {
    HubError::Answer { url: url.into(), found: found.into() }.into()
}

/// No answer. What cannot be connected to is given up at once, unless something has been `reached` before.
pub(super) fn transport(at: &Uri, error: &Error, reached: bool) -> Failure {
    let (why, passing) = match error {
        Error::Io(e) if e.to_string().contains("certificate") => (uncertain(&e), false),
        Error::Io(e) => (e.to_string(), reached || may_pass(e.kind())),
        Error::Timeout(kind) => (format!("no answer in time ({kind})"), true),
        Error::HostNotFound => ("there is no host of that name".into(), reached),
        Error::Protocol(e) => (format!("the answer is broken: {e}"), true),
        Error::Rustls(e) => (uncertain(&e), false),
        other => (other.to_string(), false),
    };
    let error = HubError::Unreachable { url: shown(at), why: harmless(&why) };
    Failure { passing, ..error.into() }
}

/// The server cannot prove who it is.
fn uncertain(error: &dyn std::fmt::Display) -> String {
    format!("{error} (where a network has certificates of its own, SSL_CERT_FILE names their file)")
}

/// A connection that was there and broke.
fn may_pass(kind: ErrorKind) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut, UnexpectedEof, WouldBlock};
    [BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut, UnexpectedEof, WouldBlock].contains(&kind)
}

/// An answer with a status from 400 on.
pub(super) fn status(at: &Uri, response: &Response<Body>, settings: &Settings) -> Failure {
    let text = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    let (url, status) = (shown(at), response.status().as_u16());
    let said = text("x-error-message").map_or(String::new(), |words| format!(", {}", harmless(words)));
    let missing =
        |missing| HubError::NotFound { url: url.clone(), missing, said: said.clone(), advice: String::new() };
    match (status, text("x-error-code")) {
        // The hub hides from strangers whether a data set exists.
        (404, Some("RepoNotFound")) => missing(Missing::DataSet).into(),
        (401, Some("RepoNotFound")) if settings.token.is_none() => missing(Missing::DataSet).into(),
        (404, Some("RevisionNotFound")) => missing(Missing::Revision).into(),
        (404 | 410, _) => missing(Missing::Something).into(),
        (401 | 403, code) => {
            let advice = access(settings, code == Some("GatedRepo"));
            HubError::Refused { url, status, said, advice }.into()
        }
        (408 | 429 | 500..=599, _) => {
            let after = text(header::RETRY_AFTER.as_str()).and_then(|seconds| seconds.trim().parse().ok());
            let after = after.map(Duration::from_secs);
            match after.filter(|after| *after > LONGEST_WAIT) {
                // Asking before that would only make it worse.
                Some(after) => {
                    let (after, longest) = (after.as_secs(), LONGEST_WAIT.as_secs());
                    let said = format!(
                        "{said}, and wants to be asked again in {after} s, more than the {longest} s that are waited \
                         for here"
                    );
                    HubError::Server { url, status, said }.into()
                }
                None => Failure { after, ..Failure::passing(HubError::Server { url, status, said }) },
            }
        }
        _ => HubError::Server { url, status, said }.into(),
    }
}

/// What to do about a refusal.
fn access(settings: &Settings, gated: bool) -> String {
    let accept = if gated { ", after its conditions were accepted on its page" } else { "" };
    match &settings.token {
        None => format!(
            "No token was found in {}: make one at {}/settings/tokens{accept}, and put it into HF_TOKEN",
            settings.token_from, settings.endpoint
        ),
        Some(_) => {
            format!("The token of {} does not open it: its account needs access{accept}", settings.token_from)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_not_shown() {
        let at = "https://cdn/f.parquet?X-Signature=secret".parse().unwrap();
        assert_eq!(shown(&at), "https://cdn/f.parquet");
    }

    #[test]
    fn what_cannot_be_reached_is_given_up_at_once_unless_it_was_there_before() {
        let at = "http://h/x".parse().unwrap();
        let refused = || Error::Io(ErrorKind::ConnectionRefused.into());
        assert!(!transport(&at, &refused(), false).passing);
        assert!(transport(&at, &refused(), true).passing);
        assert!(transport(&at, &Error::Io(ErrorKind::ConnectionReset.into()), false).passing);
        assert!(!transport(&at, &Error::HostNotFound, false).passing);
    }
}
