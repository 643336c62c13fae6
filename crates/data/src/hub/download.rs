//! One file, from the server into the cache: once for all programs of this machine, checked, then renamed.
//!
//! Invariant: content gets its name only after size and checksum are right.

use std::fs;

use super::cache::{Cache, Lock};
use super::client::{Client, GLANCE};
use super::digest::Checksum;
use super::partial::Partial;
use super::{HubError, Told};

/// What is fetched.
pub(super) struct Wanted {
    /// Its name in the data set, for people and for the link.
    pub(super) name: String,
    /// The address.
    pub(super) url: String,
    /// The name of its content.
    pub(super) content: String,
    /// Bytes of it.
    pub(super) size: u64,
    /// What it must hash to, if that is known.
    pub(super) checksum: Option<Checksum>,
}

/// Fetches content unless the cache has it.
///
/// # Errors
/// [`HubError`]; what came of the content is kept unless it is wrong.
pub(super) fn fetch(
    client: &Client<'_>,
    cache: &Cache,
    wanted: &Wanted,
    tell: &mut dyn FnMut(Told<'_>),
) -> Result<(), HubError> {
    let lock = take_lock(client, cache, wanted, tell)?;
    // Another program may have been faster.
    if cache.has_blob(&wanted.content, wanted.size)? {
        return Ok(());
    }
    let mut path = cache.blob(&wanted.content).into_os_string();
    // Without locks nobody may share a partial file.
    path.push(if lock.held { ".incomplete".into() } else { format!(".{}.incomplete", std::process::id()) });
    let mut partial = Partial::open(wanted, path.into())?;
    loop {
        let done = client.insist(|| partial.attempt(client, tell));
        if client.stopped() && done.is_err() {
            return Err(HubError::Interrupted { cache: cache.folder() });
        }
        done?;
        match partial.check() {
            // What an earlier process left may be the part that is wrong.
            Err(_) if partial.inherited > 0 => partial.restart()?,
            Err(error) => {
                // The error to report is the first one.
                let _ = fs::remove_file(&partial.path);
                return Err(error);
            }
            Ok(()) => return partial.finish(cache),
        }
    }
}

/// Waits until no other program fetches the same content.
fn take_lock(
    client: &Client<'_>,
    cache: &Cache,
    wanted: &Wanted,
    tell: &mut dyn FnMut(Told<'_>),
) -> Result<Lock, HubError> {
    let mut told = false;
    loop {
        if let Some(lock) = cache.lock(&wanted.content)? {
            client.waiting.end();
            return Ok(lock);
        }
        if client.stopped() {
            return Err(HubError::Interrupted { cache: cache.folder() });
        }
        if !std::mem::replace(&mut told, true) {
            tell(Told::Note(&format!("{}: another program is fetching it, waiting", wanted.name)));
            client.waiting.begin(format!("another program is fetching {}, waiting", wanted.name));
        }
        client.wait(4 * GLANCE);
    }
}

/// Bytes that an earlier process left of the content.
pub(super) fn left_over(cache: &Cache, content: &str) -> u64 {
    let mut path = cache.blob(content).into_os_string();
    path.push(".incomplete");
    fs::metadata(path).map_or(0, |found| found.len())
}
