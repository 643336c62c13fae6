//! Content on its way: what came is kept in a file and continued, by this process or the next.
//!
//! Invariants: at most the wanted bytes are written; the file holds a beginning of the content as it came, and the
//! running hash is of exactly that.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use ureq::http::Method;

use super::cache::{Cache, make_folder_of};
use super::client::{Answer, Client};
use super::digest::Running;
use super::download::Wanted;
use super::failure::{self, Failure};
use super::{HubError, Told};

/// Bytes read at a time.
const CHUNK: usize = 128 << 10;

/// Content on its way.
pub(super) struct Partial<'a> {
    wanted: &'a Wanted,
    /// The file.
    pub(super) path: PathBuf,
    file: File,
    /// Bytes that are there.
    have: u64,
    /// Bytes that an earlier process left.
    pub(super) inherited: u64,
    /// The most bytes that ever were there: less is no progress, or a server that cuts and cannot go on is asked forever.
    furthest: u64,
    hash: Option<Running>,
}

impl<'a> Partial<'a> {
    /// Takes over what an earlier process left in `path`.
    pub(super) fn open(wanted: &'a Wanted, path: PathBuf) -> Result<Self, HubError> {
        make_folder_of(&path)?;
        let io = |source| HubError::Io { path: path.clone(), doing: "written", source };
        let file =
            File::options().read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let mut this = Self { wanted, path, file, have: 0, inherited: 0, furthest: 0, hash: None };
        this.restart_hash();
        if length > wanted.size {
            this.restart()?;
        } else {
            this.inherit(length)?;
        }
        Ok(this)
    }

    /// Takes over what is there.
    fn inherit(&mut self, length: u64) -> Result<(), HubError> {
        let mut buffer = vec![0; CHUNK];
        while self.have < length {
            match self.file.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => self.count(&buffer[..n]),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(self.io("read", source)),
            }
        }
        self.inherited = self.have;
        Ok(())
    }

    fn restart_hash(&mut self) {
        self.hash = self.wanted.checksum.as_ref().map(|checksum| checksum.start(self.wanted.size));
    }

    /// From the first byte again.
    pub(super) fn restart(&mut self) -> Result<(), HubError> {
        let done = self.file.set_len(0).and_then(|()| self.file.seek(SeekFrom::Start(0)));
        done.map_err(|source| self.io("written", source))?;
        (self.have, self.inherited) = (0, 0);
        self.restart_hash();
        Ok(())
    }

    fn count(&mut self, bytes: &[u8]) {
        self.have += bytes.len() as u64;
        if let Some(hash) = &mut self.hash {
            hash.add(bytes);
        }
    }

    /// Asks for what is missing and takes what comes.
    pub(super) fn attempt(
        &mut self,
        client: &Client<'_>,
        tell: &mut dyn FnMut(Told<'_>),
    ) -> Result<(), Failure> {
        if self.have == self.wanted.size {
            return Ok(());
        }
        self.furthest = self.furthest.max(self.have);
        let answer = client.ask(&Method::GET, &self.wanted.url, self.have)?;
        self.agree(&answer)?;
        let mut body = answer.response.into_body().into_reader();
        let patience = client.settings.timeout.as_secs();
        client
            .waiting
            .begin(format!("nothing more of {}, asked for again after {patience} s, came", self.wanted.name));
        let taken = self.take(&mut body, client, tell);
        client.waiting.end();
        taken.map_err(|failure| Failure { progressed: self.have > self.furthest, ..failure })
    }

    /// Checks that the answer begins where we stand and ends where it should.
    fn agree(&mut self, answer: &Answer) -> Result<(), Failure> {
        let number = |text: Option<&str>| text.and_then(|t| t.trim().parse::<u64>().ok());
        let total = match answer.response.status().as_u16() {
            200 => {
                if self.have > 0 {
                    self.restart()?;
                }
                number(answer.header("content-length"))
            }
            206 => {
                // `bytes 5-9/10`
                let range = answer.header("content-range").and_then(|range| range.strip_prefix("bytes "));
                let (first, rest) = range.and_then(|range| range.split_once('-')).unwrap_or_default();
                if number(Some(first)) != Some(self.have) {
                    self.restart()?;
                    return Err(self.cut_off("the server sent another part than was asked for"));
                }
                number(rest.split_once('/').map(|(_, total)| total))
            }
            416 => {
                self.restart()?;
                return Err(self.cut_off("the server cannot go on from there"));
            }
            other => {
                return Err(failure::answer(
                    &answer.url,
                    &format!("an answer of status {other} is not content"),
                ));
            }
        };
        match total {
            Some(total) if total != self.wanted.size => {
                let (kind, wanted, found) = ("size", self.wanted.size.to_string(), total.to_string());
                Err(HubError::Checksum { url: answer.url.clone(), kind, wanted, found }.into())
            }
            _ => Ok(()),
        }
    }

    fn take(
        &mut self,
        body: &mut dyn Read,
        client: &Client<'_>,
        tell: &mut dyn FnMut(Told<'_>),
    ) -> Result<(), Failure> {
        let mut buffer = vec![0; CHUNK];
        while self.have < self.wanted.size {
            if client.stopped() {
                return Err(self.cut_off("interrupted"));
            }
            let room = usize::try_from(self.wanted.size - self.have).unwrap_or(CHUNK).min(CHUNK);
            match body.read(&mut buffer[..room]) {
                Ok(0) => return Err(self.cut_off("the connection ended")),
                Ok(n) => {
                    self.file.write_all(&buffer[..n]).map_err(|e| self.unwritten(e))?;
                    self.count(&buffer[..n]);
                    client.waiting.moved();
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(self.cut_off(&e.to_string())),
            }
            tell(Told::Progress { name: &self.wanted.name, done: self.have, total: self.wanted.size });
        }
        Ok(())
    }

    /// Compares the checksum; to be asked once, when all is there.
    pub(super) fn check(&mut self) -> Result<(), HubError> {
        let (Some(checksum), Some(hash)) = (&self.wanted.checksum, self.hash.take()) else { return Ok(()) };
        let found = hash.value();
        if found == checksum.wanted() {
            return Ok(());
        }
        let (kind, wanted) = (checksum.kind(), checksum.wanted().to_string());
        Err(HubError::Checksum { url: self.wanted.url.clone(), kind, wanted, found })
    }

    /// Gives the content its name.
    pub(super) fn finish(self, cache: &Cache) -> Result<(), HubError> {
        self.file.sync_all().map_err(|source| self.io("written", source))?;
        let blob = cache.blob(&self.wanted.content);
        fs::rename(&self.path, &blob).map_err(|source| HubError::Io { path: blob, doing: "made", source })
    }

    fn io(&self, doing: &'static str, source: std::io::Error) -> HubError {
        HubError::Io { path: self.path.clone(), doing, source }
    }

    fn unwritten(&self, source: std::io::Error) -> HubError {
        if !matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) {
            return self.io("written", source);
        }
        let folder = self.path.parent().unwrap_or(&self.path).to_path_buf();
        let free = super::free_bytes(&folder);
        HubError::NoSpace { folder, needed: self.wanted.size - self.have, free }
    }

    fn cut_off(&self, why: &str) -> Failure {
        Failure::passing(HubError::CutOff {
            url: self.wanted.url.clone(),
            wanted: self.wanted.size,
            found: self.have,
            why: super::text::harmless(why),
            partial: self.path.clone(),
        })
    }
}
