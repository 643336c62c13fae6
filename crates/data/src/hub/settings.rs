//! What the environment says about the hub: the same variables, with the same meaning and precedence, as the
//! hub's own Python client.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::HubError;

/// The hub itself.
const ENDPOINT: &str = "https://huggingface.co";

/// How the hub is asked and where its cache lies.
#[derive(Clone)]
pub struct Settings {
    /// Where the hub is asked, without a slash at the end.
    pub endpoint: String,
    /// The cache: the folder with `datasets--owner--name` in it.
    pub cache: PathBuf,
    /// Sent to the endpoint, and to it alone.
    pub(super) token: Option<String>,
    /// Where the token comes from, or where none was found.
    pub(super) token_from: String,
    /// The variable that forbids requests.
    pub offline: Option<&'static str>,
    /// The longest time without a byte.
    pub timeout: Duration,
    /// How often something is tried that may pass.
    pub attempts: u32,
    /// How long to wait before the second attempt; each later wait is twice as long.
    pub first_wait: Duration,
    /// A file with the certificates to trust (PEM) instead of the built-in ones.
    pub certificates: Option<PathBuf>,
    /// From the usual variables.
    pub proxy: Option<ureq::Proxy>,
}

impl fmt::Debug for Settings {
    /// Without the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("endpoint", &self.endpoint)
            .field("cache", &self.cache)
            .field("token_from", &self.token_from)
            .field("offline", &self.offline)
            .finish_non_exhaustive()
    }
}

impl Settings {
    /// The settings of this process' environment.
    ///
    /// # Errors
    /// If a variable makes no sense, or there is no place for the cache.
    pub fn from_env() -> Result<Self, HubError> {
        let settings = Self::read(&|name| std::env::var_os(name).filter(|value| !value.is_empty()))?;
        Ok(Self { proxy: ureq::Proxy::try_from_env(), ..settings })
    }

    /// The settings of an environment, without a proxy.
    ///
    /// # Errors
    /// If a variable makes no sense, or there is no place for the cache.
    pub fn read(get: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, HubError> {
        let text = |name: &str| get(name).map(|value| value.to_string_lossy().trim().to_string());
        let path = |name: &str| get(name).map(|value| expand_home(PathBuf::from(value)));
        let flag = |name: &&str| {
            text(name).is_some_and(|v| ["1", "ON", "YES", "TRUE"].contains(&v.to_ascii_uppercase().as_str()))
        };
        let home = path("HF_HOME")
            .or_else(|| path("XDG_CACHE_HOME").map(|p| p.join("huggingface")))
            .or_else(|| std::env::home_dir().map(|p| p.join(".cache/huggingface")));
        let cache = path("HF_HUB_CACHE").or_else(|| path("HUGGINGFACE_HUB_CACHE"));
        let cache = cache.or_else(|| home.clone().map(|home| home.join("hub"))).ok_or_else(no_home)?;
        let token_file = path("HF_TOKEN_PATH").or_else(|| home.map(|home| home.join("token")));
        let forbidden = "HF_HUB_DISABLE_IMPLICIT_TOKEN";
        let (token, token_from) = if flag(&forbidden) {
            (None, format!("nowhere, since {forbidden} is set"))
        } else {
            token(&text, token_file)?
        };
        Ok(Self {
            endpoint: endpoint(text("HF_ENDPOINT"))?,
            cache,
            token,
            token_from,
            offline: ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"].into_iter().find(flag),
            timeout: timeout(text("HF_HUB_DOWNLOAD_TIMEOUT"))?,
            attempts: 5,
            first_wait: Duration::from_millis(500),
            certificates: ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"]
                .into_iter()
                .find_map(path),
            proxy: None,
        })
    }
}

fn no_home() -> HubError {
    let why = "there is no home folder to keep the hub's cache in: set it to a folder".into();
    HubError::Setting { what: "HF_HOME".into(), why }
}

fn endpoint(given: Option<String>) -> Result<String, HubError> {
    let endpoint = given.unwrap_or_else(|| ENDPOINT.into());
    let endpoint = endpoint.trim_end_matches('/').to_string();
    let parsed = endpoint.parse::<ureq::http::Uri>().ok().filter(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty())
    });
    let wrong = |why| Err(HubError::Setting { what: "HF_ENDPOINT".into(), why });
    match parsed {
        // Not shown: there may be a password in it.
        _ if endpoint.contains('@') => {
            wrong("an address with a user name in it is not supported; use HF_TOKEN".into())
        }
        Some(uri) if uri.query().is_none() => Ok(endpoint),
        _ => wrong(format!("'{endpoint}' is not an address such as {ENDPOINT}")),
    }
}

fn timeout(given: Option<String>) -> Result<Duration, HubError> {
    let Some(text) = given else { return Ok(Duration::from_secs(30)) };
    let seconds = text.parse::<u32>().ok().filter(|seconds| *seconds > 0);
    seconds.map(|seconds| Duration::from_secs(seconds.into())).ok_or_else(|| HubError::Setting {
        what: "HF_HUB_DOWNLOAD_TIMEOUT".into(),
        why: format!("'{text}' is not a number of seconds above 0"),
    })
}

/// The token and where it comes from.
fn token(
    text: &dyn Fn(&str) -> Option<String>,
    file: Option<PathBuf>,
) -> Result<(Option<String>, String), HubError> {
    let clean =
        |value: String| Some(value.replace(['\r', '\n'], "").trim().to_string()).filter(|v| !v.is_empty());
    for name in ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"] {
        if let Some(value) = text(name).and_then(clean) {
            return Ok((Some(sendable(value, name)?), name.into()));
        }
    }
    let Some(file) = file else { return Ok((None, "HF_TOKEN".into())) };
    let place = file.display().to_string();
    match std::fs::read_to_string(&file) {
        Ok(value) => Ok(match clean(value) {
            Some(value) => (Some(sendable(value, &place)?), place),
            None => (None, format!("HF_TOKEN and {place} (empty)")),
        }),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok((None, format!("HF_TOKEN and {place}"))),
        Err(e) => Ok((None, format!("HF_TOKEN and {place} (cannot be read: {e})"))),
    }
}

/// A token goes into a header: visible ASCII alone. It is never shown.
fn sendable(token: String, place: &str) -> Result<String, HubError> {
    if token.bytes().all(|b| b.is_ascii_graphic()) {
        return Ok(token);
    }
    let why = "it holds blanks or characters that no token has; a token looks like hf_AbC123".into();
    Err(HubError::Setting { what: format!("the token in {place}"), why })
}

fn expand_home(path: PathBuf) -> PathBuf {
    match (path.strip_prefix("~"), std::env::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, HubError> {
        let get = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v));
        Settings::read(&get)
    }

    #[test]
    fn the_cache_is_where_the_python_client_has_it() {
        let cache = |variables: &[(&str, &str)]| read(variables).unwrap().cache;
        assert_eq!(cache(&[("HF_HOME", "/h")]), PathBuf::from("/h/hub"));
        assert_eq!(cache(&[("XDG_CACHE_HOME", "/x")]), PathBuf::from("/x/huggingface/hub"));
        assert_eq!(cache(&[("HF_HOME", "/h"), ("HUGGINGFACE_HUB_CACHE", "/old")]), PathBuf::from("/old"));
        let all = [("HF_HOME", "/h"), ("HUGGINGFACE_HUB_CACHE", "/old"), ("HF_HUB_CACHE", "/new")];
        assert_eq!(cache(&all), PathBuf::from("/new"));
    }

    #[test]
    fn the_token_comes_from_the_variable_then_from_the_file_and_is_never_shown() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().to_str().unwrap();
        let none = read(&[("HF_HOME", home)]).unwrap();
        assert!(none.token.is_none() && none.token_from.contains(home), "{}", none.token_from);
        std::fs::write(dir.path().join("token"), " hf_file\n").unwrap();
        assert_eq!(read(&[("HF_HOME", home)]).unwrap().token.as_deref(), Some("hf_file"));
        let both = read(&[("HF_HOME", home), ("HF_TOKEN", "hf_variable")]).unwrap();
        assert_eq!(both.token.as_deref(), Some("hf_variable"));
        assert!(!format!("{both:?}").contains("hf_variable"));
        let elsewhere = dir.path().join("token");
        let elsewhere = elsewhere.to_str().unwrap();
        let token = read(&[("HF_HOME", "/h"), ("HF_TOKEN_PATH", elsewhere)]).unwrap().token;
        assert_eq!(token.as_deref(), Some("hf_file"));
        let implicit = [("HF_HOME", home), ("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")];
        assert_eq!(read(&implicit).unwrap().token, None);
        let error = read(&[("HF_HOME", home), ("HF_TOKEN", "two words")]).unwrap_err().to_string();
        assert!(error.contains("HF_TOKEN") && !error.contains("two words"), "{error}");
    }

    #[test]
    fn flags_addresses_and_times() {
        let base = ("HF_HOME", "/h");
        for (value, offline) in [("1", true), ("true", true), ("0", false), ("no", false)] {
            assert_eq!(read(&[base, ("HF_HUB_OFFLINE", value)]).unwrap().offline.is_some(), offline);
        }
        assert_eq!(read(&[base, ("HF_ENDPOINT", "http://m.x:1/hf/")]).unwrap().endpoint, "http://m.x:1/hf");
        for bad in ["m.x", "ftp://m.x", "http://", "http://user:secret@m.x", "http://a b"] {
            let error = read(&[base, ("HF_ENDPOINT", bad)]).unwrap_err().to_string();
            assert!(error.contains("HF_ENDPOINT") && !error.contains("secret"), "{error}");
        }
        assert_eq!(read(&[base, ("HF_HUB_DOWNLOAD_TIMEOUT", "7")]).unwrap().timeout.as_secs(), 7);
        assert!(read(&[base, ("HF_HUB_DOWNLOAD_TIMEOUT", "0")]).is_err());
    }
}
