//! Addresses: how they are put together, where redirects lead, and which belong to one host.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ureq::http::{HeaderValue, Uri, uri::PathAndQuery};

/// All but what needs no quoting (RFC 3986), and the slash.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

/// The same with the slash: a revision is one part of a path.
const PART: &AsciiSet = &PATH.add(b'/');

/// The list of a data set's files, with their sizes and checksums.
pub(super) fn listing(endpoint: &str, id: &str, revision: &str) -> String {
    let revision = utf8_percent_encode(revision, PART);
    format!("{endpoint}/api/datasets/{id}/revision/{revision}?blobs=true")
}

/// Whether a model of this name exists.
pub(super) fn model(endpoint: &str, id: &str) -> String {
    format!("{endpoint}/api/models/{id}")
}

/// A file.
pub(super) fn file(endpoint: &str, id: &str, revision: &str, name: &str) -> String {
    let (revision, name) = (utf8_percent_encode(revision, PART), utf8_percent_encode(name, PATH));
    format!("{endpoint}/datasets/{id}/resolve/{revision}/{name}")
}

/// Where a redirect leads.
///
/// # Errors
/// If it leads nowhere, to another protocol, or from https to http.
pub(super) fn redirected(from: &Uri, target: &HeaderValue) -> Result<Uri, String> {
    let target = target.to_str().map_err(|_| "it redirects to an address that is no text".to_string())?;
    let nowhere = |_| format!("it redirects to '{}', which is no address", super::text::harmless(target));
    let scheme = from.scheme_str().unwrap_or("https");
    let next: Uri = if target.starts_with("//") {
        format!("{scheme}:{target}").parse().map_err(nowhere)?
    } else if target.starts_with('/') {
        let path: PathAndQuery = target.parse().map_err(nowhere)?;
        let authority = from.authority().map_or("", |a| a.as_str());
        format!("{scheme}://{authority}{path}").parse().map_err(nowhere)?
    } else {
        target.parse().map_err(nowhere)?
    };
    match next.scheme_str() {
        Some("https") => Ok(next),
        Some("http") if scheme == "http" => Ok(next),
        Some("http") => Err(format!("it redirects from https to http ({next}), which is refused")),
        _ => Err(format!("it redirects to '{next}', which is neither http nor https")),
    }
}

/// True if a secret for one may be sent to the other: the same host and port, and no way from https to http.
pub(super) fn same_host(at: &Uri, home: &Uri) -> bool {
    let port = |uri: &Uri| uri.port_u16().unwrap_or(if uri.scheme_str() == Some("http") { 80 } else { 443 });
    let upgraded = home.scheme_str() == Some("http") && at.scheme_str() == Some("https");
    let same_port = port(at) == port(home) || (upgraded && port(home) == 80 && port(at) == 443);
    let host = |uri: &Uri| uri.host().map(str::to_ascii_lowercase);
    host(at).is_some() && host(at) == host(home) && same_port && (upgraded || at.scheme() == home.scheme())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().unwrap()
    }

    #[test]
    fn names_are_quoted() {
        let listing = listing("http://h", "a/b", "refs/convert/parquet");
        assert_eq!(listing, "http://h/api/datasets/a/b/revision/refs%2Fconvert%2Fparquet?blobs=true");
        let file = file("http://h", "a/b", "c0", "data/x y#ü?.parquet");
        assert_eq!(file, "http://h/datasets/a/b/resolve/c0/data/x%20y%23%C3%BC%3F.parquet");
    }

    #[test]
    fn redirects_lead_where_they_say() {
        let to = |from: &str, target: &str| {
            redirected(&uri(from), &HeaderValue::from_str(target).unwrap()).map(|next| next.to_string())
        };
        assert_eq!(to("https://h:8/a", "/b?c=d").unwrap(), "https://h:8/b?c=d");
        assert_eq!(to("https://h/a", "//cdn/b").unwrap(), "https://cdn/b");
        assert_eq!(to("http://h/a", "https://cdn/b").unwrap(), "https://cdn/b");
        assert!(to("https://h/a", "http://h/b").unwrap_err().contains("https to http"));
        assert!(to("https://h/a", "ftp://h/b").unwrap_err().contains("neither"));
        assert!(to("https://h/a", "b").is_err());
        assert!(to("https://h/a", "http://").unwrap_err().contains("no address"));
    }

    #[test]
    fn secrets_stay_at_home() {
        let cases = [
            ("https://h/x", "https://H", true),
            ("https://h:443/x", "https://h", true),
            ("https://h/x", "http://h", true),
            ("http://h/x", "https://h", false),
            ("https://h:444/x", "https://h", false),
            ("https://cdn.h/x", "https://h", false),
            ("https://h.evil/x", "https://h", false),
            ("http://127.0.0.1:2/x", "http://127.0.0.1:1", false),
        ];
        for (at, home, same) in cases {
            assert_eq!(same_host(&uri(at), &uri(home)), same, "{at} {home}");
        }
    }
}
