//! The last few results of a pure function, kept for who asks again: no result depends on it.
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// How many are kept: of two, one may begin while the other ends.
const KEPT: usize = 2;

/// Results by what they are of.
#[derive(Debug)]
pub(super) struct Memo<K, V>(Mutex<VecDeque<(K, Arc<V>)>>);

impl<K, V> Default for Memo<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Copy + PartialEq, V> Memo<K, V> {
    /// What `make` gives for `key`, made unless it is kept.
    pub(super) fn get(&self, key: K, make: impl FnOnce() -> V) -> Arc<V> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, kept)) = lock().iter().find(|(k, _)| *k == key) {
            return kept.clone();
        }
        let made = Arc::new(make());
        let mut kept = lock();
        kept.truncate(KEPT - 1);
        kept.push_front((key, made.clone()));
        made
    }
}
