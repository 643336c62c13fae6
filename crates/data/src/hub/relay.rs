//! What a working thread tells, handed to the thread that called: that one alone may speak to a person.
//!
//! Invariant: the worker goes on only when its word was heard, so what is told is the present state.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::Told;

/// A word on its way.
enum Word {
    Note(String),
    Warning(String),
    Waiting(String),
    Progress(String, u64, u64),
    Done,
}

/// The worker's end.
pub(super) struct Speaker {
    words: Sender<Word>,
    heard: Receiver<()>,
}

/// The caller's end.
pub(super) struct Listener {
    words: Receiver<Word>,
    heard: Sender<()>,
}

/// The two ends.
pub(super) fn relay() -> (Speaker, Listener) {
    let ((words, to_caller), (heard, to_worker)) = (channel(), channel());
    (Speaker { words, heard: to_worker }, Listener { words: to_caller, heard })
}

impl Speaker {
    /// Hands a word over. Nobody listens any more only if the caller is unwinding.
    pub(super) fn tell(&self, told: Told<'_>) {
        let word = match told {
            Told::Note(line) => Word::Note(line.into()),
            Told::Warning(line) => Word::Warning(line.into()),
            Told::Waiting(line) => Word::Waiting(line.into()),
            Told::Progress { name, done, total } => Word::Progress(name.into(), done, total),
            Told::Done => Word::Done,
        };
        if self.words.send(word).is_ok() {
            let _ = self.heard.recv();
        }
    }
}

impl Listener {
    /// Tells what comes until the worker is done; calls `idle` whenever nothing came for so long.
    pub(super) fn listen(
        self,
        glance: Duration,
        tell: &mut dyn FnMut(Told<'_>),
        mut idle: impl FnMut(&mut dyn FnMut(Told<'_>)),
    ) {
        loop {
            match self.words.recv_timeout(glance) {
                Ok(word) => {
                    tell(match &word {
                        Word::Note(line) => Told::Note(line),
                        Word::Warning(line) => Told::Warning(line),
                        Word::Waiting(line) => Told::Waiting(line),
                        Word::Progress(name, done, total) => {
                            Told::Progress { name, done: *done, total: *total }
                        }
                        Word::Done => Told::Done,
                    });
                    let _ = self.heard.send(());
                }
                Err(RecvTimeoutError::Timeout) => idle(tell),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}
