//! Requests to the hub: redirects, the token, attempts, and what an answer that is none means.
//!
//! Invariants: the token goes to the endpoint's host alone, and never from https to http; nothing waits longer
//! than the settings say, and what takes long is told; a stop from outside ends every request in flight.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ureq::http::{HeaderMap, Method, Response, Uri, header};
use ureq::tls::{PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};
use ureq::{Agent, Body};

use super::address::{redirected, same_host};
use super::relay::relay;
use super::waiting::{EVERY, Waiting};
use super::{HubError, Settings, Told, failure};
use failure::Failure;

/// Redirects followed for one request.
const REDIRECTS: usize = 10;

/// How often a waiting thread looks whether it shall stop.
pub(super) const GLANCE: Duration = Duration::from_millis(50);

/// A client of one endpoint, for one data set.
pub(super) struct Client<'a> {
    agent: Agent,
    pub(super) settings: &'a Settings,
    stop: &'a AtomicBool,
    /// Something has answered: what fails from now on may come back.
    reached: AtomicBool,
    pub(super) waiting: Waiting,
}

/// An answer with a status below 400.
pub(super) struct Answer {
    /// Who gave it, after redirects, without the part behind `?`, which may hold a signature.
    pub(super) url: String,
    pub(super) response: Response<Body>,
    /// The headers of the first answer with the hub's own `x-` headers, which the last server does not know.
    pub(super) hub: HeaderMap,
}

impl Answer {
    /// A header of the last answer as text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }
}

impl<'a> Client<'a> {
    /// No request is made yet.
    pub(super) fn new(settings: &'a Settings, stop: &'a AtomicBool) -> Result<Self, HubError> {
        let tls =
            TlsConfig::builder().provider(TlsProvider::Rustls).root_certs(certificates(settings)?).build();
        let patience = Some(settings.timeout);
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .user_agent(concat!("ocelli/", env!("CARGO_PKG_VERSION")))
            .proxy(settings.proxy.clone())
            .tls_config(tls)
            .timeout_resolve(patience)
            .timeout_connect(patience)
            .timeout_send_request(patience)
            .timeout_recv_response(patience)
            .timeout_per_read(patience);
        Ok(Self {
            agent: config.build().into(),
            settings,
            stop,
            reached: AtomicBool::new(false),
            waiting: Waiting::default(),
        })
    }

    /// Runs `work` on a thread of its own, tells what it and long waits have to say, and ends all requests when a stop
    /// is asked for.
    pub(super) fn guarded<T: Send>(
        &self,
        tell: &mut dyn FnMut(Told<'_>),
        work: impl FnOnce(&mut dyn FnMut(Told<'_>)) -> T + Send,
    ) -> T {
        let (speaker, listener) = relay();
        let mut ended = false;
        let idle = |tell: &mut dyn FnMut(Told<'_>)| {
            if self.stopped() && !std::mem::replace(&mut ended, true) {
                self.agent.clone().shutdown();
            } else if let Some(line) = self.waiting.due(EVERY).filter(|_| !ended) {
                tell(Told::Waiting(&line));
            }
        };
        std::thread::scope(|scope| {
            let worker = scope.spawn(move || work(&mut |told| speaker.tell(told)));
            listener.listen(GLANCE, tell, idle);
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// True once a stop was asked for.
    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// One attempt: `url`, from byte `from` on, through redirects.
    pub(super) fn ask(&self, method: &Method, url: &str, from: u64) -> Result<Answer, Failure> {
        let mut at: Uri = url.parse().map_err(|e| failure::answer(url, &format!("no address: {e}")))?;
        let mut hub = HeaderMap::new();
        for _ in 0..=REDIRECTS {
            let patience = self.settings.timeout.as_secs();
            self.waiting.begin(format!(
                "no answer yet from {}, where an attempt ends after {patience} s,",
                failure::shown(&at)
            ));
            let response = self.send(method, &at, from);
            self.waiting.end();
            let response = response?;
            self.reached.store(true, Ordering::Relaxed);
            if hub.is_empty() && response.headers().keys().any(|name| name.as_str().starts_with("x-linked-"))
            {
                hub = response.headers().clone();
            }
            let target =
                response.headers().get(header::LOCATION).filter(|_| response.status().is_redirection());
            // A body sent elsewhere is wanted from there; of a HEAD, what the hub itself says.
            let elsewhere = |next: &Uri| method == Method::HEAD && !same_host(next, &at);
            match target.map(|target| redirected(&at, target)).transpose() {
                Ok(Some(next)) if !elsewhere(&next) => at = next,
                Ok(_) => return self.judge(response, &at, hub),
                Err(why) => return Err(failure::answer(&failure::shown(&at), &why)),
            }
        }
        Err(failure::answer(url, &format!("sent on more than {REDIRECTS} times; check HF_ENDPOINT")))
    }

    fn send(&self, method: &Method, at: &Uri, from: u64) -> Result<Response<Body>, Failure> {
        let mut request = match *method {
            Method::HEAD => self.agent.head(at),
            _ => self.agent.get(at),
        };
        if from > 0 {
            request = request.header(header::RANGE, format!("bytes={from}-"));
        }
        let home: Option<Uri> = self.settings.endpoint.parse().ok();
        if let (Some(token), Some(home)) = (&self.settings.token, home)
            && same_host(at, &home)
        {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        request.call().map_err(|error| failure::transport(at, &error, self.reached.load(Ordering::Relaxed)))
    }

    /// Lets good answers through. A range that cannot be served is for the caller to see.
    fn judge(&self, response: Response<Body>, at: &Uri, hub: HeaderMap) -> Result<Answer, Failure> {
        let status = response.status().as_u16();
        if status < 400 || status == 416 {
            return Ok(Answer { url: failure::shown(at), response, hub });
        }
        Err(failure::status(at, &response, self.settings))
    }

    /// Tries until it succeeds, fails for good, or has failed too often without getting on.
    pub(super) fn insist<T>(&self, mut attempt: impl FnMut() -> Result<T, Failure>) -> Result<T, HubError> {
        let mut failed = 0;
        loop {
            let failure = match attempt() {
                Ok(value) => return Ok(value),
                Err(failure) => failure,
            };
            failed = if failure.progressed { 1 } else { failed + 1 };
            if self.stopped() || !failure.passing || failed >= self.settings.attempts {
                return Err(failure.error);
            }
            let doubled = self.settings.first_wait.saturating_mul(1 << (failed - 1).min(16));
            let time = failure.after.unwrap_or(doubled);
            self.waiting.pause(failure.error.cause(), time);
            self.wait(time);
            self.waiting.end();
        }
    }

    /// Waits, unless a stop is asked for.
    pub(super) fn wait(&self, time: Duration) {
        let end = Instant::now() + time;
        while !self.stopped() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(GLANCE));
        }
    }
}

/// The certificates that servers are judged by.
fn certificates(settings: &Settings) -> Result<RootCerts, HubError> {
    let Some(path) = &settings.certificates else { return Ok(RootCerts::WebPki) };
    let io = |source| HubError::Io { path: path.clone(), doing: "read", source };
    let pem = std::fs::read(path).map_err(io)?;
    let found = parse_pem(&pem).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    });
    let found: Vec<_> = found.collect();
    if found.is_empty() {
        let why =
            "SSL_CERT_FILE, REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE names it, but it holds no certificate (PEM)";
        return Err(HubError::Setting { what: path.display().to_string(), why: why.into() });
    }
    Ok(RootCerts::new_with_certs(&found))
}
