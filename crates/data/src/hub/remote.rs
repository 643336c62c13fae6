//! What the hub says about a data set: its list of files, and what the list lacks.

use ureq::http::Method;

use super::client::{Answer, Client};
use super::failure::{self, Failure};
use super::listing::{Kept, Listing, is_plain};
use super::text::{harmless, size};
use super::{DataSet, HubError, Missing, address};

/// The longest list of files read, in bytes.
const LONGEST_LIST: u64 = 64 << 20;

/// The files of a revision.
pub(super) fn list(client: &Client<'_>, set: &DataSet, revision: &str) -> Result<Listing, HubError> {
    let url = address::listing(&client.settings.endpoint, &set.id, revision);
    let listing = client.insist(|| {
        let answer = client.ask(&Method::GET, &url, 0)?;
        let at = answer.url.clone();
        let wrong = |found: &str| failure::answer(&at, found);
        client.waiting.begin(format!("the list of files of {} is on its way", set.id));
        let json = read_json(answer);
        client.waiting.end();
        let json = json?;
        Listing::of_answer(json).map_err(|why| wrong(&why))
    });
    listing.map_err(|error| match error {
        HubError::NotFound { url, missing, said, .. } => {
            let advice = missing_advice(client, set, revision, missing);
            HubError::NotFound { url, missing, said, advice }
        }
        other => other,
    })
}

/// What to do when there is no such thing.
fn missing_advice(client: &Client<'_>, set: &DataSet, revision: &str, missing: Missing) -> String {
    if missing == Missing::Revision {
        return format!("Check data_config.revision ('{revision}'); null is the main branch");
    }
    let url = address::model(&client.settings.endpoint, &set.id);
    if client.ask(&Method::GET, &url, 0).is_ok() {
        return format!("{} is a model; data_config.data_path wants a data set", set.id);
    }
    let token = match &client.settings.token {
        None => format!(
            "if it is private, put a token into HF_TOKEN (none was found in {})",
            client.settings.token_from
        ),
        Some(_) => format!("if it is private, the token of {} does not open it", client.settings.token_from),
    };
    format!(
        "There is no file or folder {} on this machine either. Check data_config.data_path; {token}",
        set.id
    )
}

fn read_json(answer: Answer) -> Result<serde_json::Value, Failure> {
    let html = answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html"));
    let url = answer.url;
    let mut body = answer.response.into_body();
    let text = body.with_config().limit(LONGEST_LIST).read_to_string();
    let text = text.map_err(|e| match e {
        ureq::Error::BodyExceedsLimit(limit) => {
            failure::answer(&url, &format!("a list of more than {}", size(limit)))
        }
        other => {
            Failure::passing(HubError::Unreachable { url: url.clone(), why: harmless(&other.to_string()) })
        }
    })?;
    if html || text.trim_start().starts_with('<') {
        return Err(failure::answer(
            &url,
            "a web page came instead of the list of files: log in to the network (a hotel's or an office's page), or check \
             HF_ENDPOINT and the proxy",
        ));
    }
    serde_json::from_str(&text).map_err(|e| {
        let start = harmless(&text.chars().take(60).collect::<String>());
        failure::answer(&url, &format!("not the hub's list of files ({e}): '{start}'. Check HF_ENDPOINT"))
    })
}

/// Asks for size and content's name of one file, where the list lacks them.
pub(super) fn complete(
    client: &Client<'_>,
    set: &DataSet,
    listing: &mut Listing,
    name: &str,
) -> Result<(), HubError> {
    let commit = &listing.commit;
    if listing.files.get(name).is_some_and(|file| file.bytes().is_some() && file.content().is_some()) {
        return Ok(());
    }
    let url = address::file(&client.settings.endpoint, &set.id, commit, name);
    let kept = client.insist(|| {
        let answer = client.ask(&Method::HEAD, &url, 0)?;
        let hub = |header: &str| answer.hub.get(header).and_then(|value| value.to_str().ok());
        let bytes =
            hub("x-linked-size").or_else(|| answer.header("content-length")).and_then(|n| n.parse().ok());
        let content = hub("x-linked-etag").or_else(|| answer.header("etag"));
        let content =
            content.map(|tag| tag.trim_start_matches("W/").trim_matches('"')).filter(|tag| is_plain(tag));
        match (bytes, content) {
            (Some(bytes), Some(content)) => Ok(Kept::of_headers(bytes, content.into())),
            _ => Err(failure::answer(
                &url,
                "neither the list nor the headers tell size and etag. Check HF_ENDPOINT",
            )),
        }
    })?;
    listing.files.insert(name.into(), kept);
    Ok(())
}
