//! Measured choices in a file: one for each GPU, driver and library.
//!
//! Choices are only added, at the end: one that was made stays, and a [mark](Store::mark) of the first of them stays true
//! while the file grows. A file that was damaged or is another machine's is found out and made anew. Files are written
//! whole under another name and then renamed; one that cannot be read or written is no error.

use ocelli_ir::rng::hash_name;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Counts layouts of the file.
const FORMAT: u32 = 1;

/// How one thing is computed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// What is computed: all that decides which ways there are and how fast each is.
    pub key: String,
    /// The way that was taken.
    pub way: String,
    /// Microseconds that it took; none if it was taken unmeasured.
    pub us: Option<f64>,
}

#[derive(Serialize, Deserialize)]
struct File {
    format: u32,
    /// GPU, driver, library.
    machine: String,
    /// Of all choices.
    hash: String,
    choices: Vec<Choice>,
}

/// The choices of a machine.
#[derive(Debug, Default)]
pub struct Store {
    path: Option<PathBuf>,
    machine: String,
    choices: Vec<Choice>,
    places: HashMap<String, usize>,
}

impl Store {
    /// The choices made so far on `machine`, whose words name GPU, driver and library; kept in `folder`, if there is one.
    pub fn open(folder: Option<&Path>, machine: &str) -> Self {
        let plain =
            |c: char| if c.is_ascii_alphanumeric() || c == '.' { c.to_ascii_lowercase() } else { '-' };
        let name: String = machine.chars().map(plain).collect();
        let path = folder.map(|folder| folder.join(format!("{name}.json")));
        let mut store = Self { path, machine: machine.into(), ..Self::default() };
        store.choices = store.read();
        store.index();
        store
    }

    /// The choice for a key.
    pub fn get(&self, key: &str) -> Option<&Choice> {
        self.places.get(key).map(|&i| &self.choices[i])
    }

    /// Adds choices and writes the file. Those that another process has written since come first, and count.
    pub fn add(&mut self, new: Vec<Choice>) {
        let mut all = self.read();
        if !all.starts_with(&self.choices) {
            all.clone_from(&self.choices);
        }
        self.choices = all;
        self.index();
        for choice in new {
            if !self.places.contains_key(&choice.key) {
                self.places.insert(choice.key.clone(), self.choices.len());
                self.choices.push(choice);
            }
        }
        let _ = self.write();
    }

    /// What stands for the choices made so far: their number and a hash.
    pub fn mark(&self) -> String {
        format!("{}:{}", self.choices.len(), hash(&self.choices))
    }

    /// True if the choices that a mark stands for are still made.
    pub fn holds(&self, mark: &str) -> bool {
        let number = mark.split_once(':').and_then(|(n, hash)| Some((n.parse::<usize>().ok()?, hash)));
        number.is_some_and(|(n, then)| self.choices.get(..n).is_some_and(|first| hash(first) == then))
    }

    fn index(&mut self) {
        self.places = self.choices.iter().enumerate().map(|(i, c)| (c.key.clone(), i)).collect();
    }

    /// The choices in the file; none if it is not there, damaged, or another machine's.
    fn read(&self) -> Vec<Choice> {
        let text = self.path.as_ref().and_then(|path| std::fs::read_to_string(path).ok());
        let file = text.and_then(|text| serde_json::from_str::<File>(&text).ok());
        let whole = |f: &File| f.format == FORMAT && f.machine == self.machine && f.hash == hash(&f.choices);
        file.filter(whole).map_or(Vec::new(), |f| f.choices)
    }

    fn write(&self) -> std::io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        let (machine, choices) = (self.machine.clone(), self.choices.clone());
        let file = File { format: FORMAT, machine, hash: hash(&choices), choices };
        let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
        std::fs::write(&temporary, serde_json::to_vec_pretty(&file)?)?;
        std::fs::rename(&temporary, path).inspect_err(|_| drop(std::fs::remove_file(&temporary)))
    }
}

/// Of what was chosen; not of the times.
fn hash(choices: &[Choice]) -> String {
    let text: String = choices.iter().map(|c| format!("{}\n{}\n", c.key, c.way)).collect();
    format!("{:016x}", hash_name(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty folder, removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("ocelli-tuning-{}-{name}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            Self(path)
        }

        fn open(&self, machine: &str) -> Store {
            Store::open(Some(&self.0), machine)
        }

        fn file(&self) -> PathBuf {
            std::fs::read_dir(&self.0).unwrap().next().unwrap().unwrap().path()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn choice(key: &str, way: &str) -> Choice {
        Choice { key: key.into(), way: way.into(), us: Some(1.5) }
    }

    #[test]
    fn a_second_start_finds_what_was_chosen() {
        let folder = Folder::new("second");
        let mut store = folder.open("NVIDIA H200, driver 13.0");
        assert_eq!(store.get("a"), None);
        store.add(vec![choice("a", "fast"), choice("b", "slow")]);
        let again = folder.open("NVIDIA H200, driver 13.0");
        assert_eq!(again.get("a"), Some(&choice("a", "fast")));
        assert_eq!((again.mark(), again.choices.len()), (store.mark(), 2));
        assert_eq!(folder.file().file_name().unwrap(), "nvidia-h200--driver-13.0.json");
        // Another machine has another file.
        assert_eq!(folder.open("NVIDIA H200, driver 12.8").get("a"), None);
    }

    #[test]
    fn a_mark_outlives_growth_and_no_change() {
        let folder = Folder::new("marks");
        let mut store = folder.open("m");
        let none = store.mark();
        store.add(vec![choice("a", "fast")]);
        let one = store.mark();
        store.add(vec![choice("b", "slow"), choice("a", "ignored")]);
        assert!(store.holds(&none) && store.holds(&one) && store.holds(&store.mark()));
        assert_eq!(store.get("a").unwrap().way, "fast");
        let mut other = Store::open(None, "m");
        other.add(vec![choice("a", "slow")]);
        assert!(!other.holds(&one) && !other.holds(&store.mark()));
        for nonsense in ["", "1", "x:y", "1:", "99999999999999999999:0", "-1:0"] {
            assert!(!store.holds(nonsense), "{nonsense}");
        }
    }

    #[test]
    fn another_process_s_choices_count() {
        let folder = Folder::new("two");
        let [mut a, mut b] = [0, 1].map(|_| folder.open("m"));
        a.add(vec![choice("x", "of a")]);
        b.add(vec![choice("x", "of b"), choice("y", "of b")]);
        assert_eq!((&*b.get("x").unwrap().way, &*b.get("y").unwrap().way), ("of a", "of b"));
        assert!(b.holds(&a.mark()));
        assert_eq!(folder.open("m").mark(), b.mark());
    }

    #[test]
    fn a_damaged_file_is_found_out_and_made_anew() {
        let folder = Folder::new("damaged");
        folder.open("m").add(vec![choice("a", "fast"), choice("b", "slow")]);
        let whole = std::fs::read(folder.file()).unwrap();
        let swapped = String::from_utf8(whole.clone()).unwrap().replace("fast", "slow");
        for damaged in [&whole[..whole.len() / 2], b"", b"[]", b"\xff\xfe", swapped.as_bytes()] {
            std::fs::write(folder.file(), damaged).unwrap();
            let mut store = folder.open("m");
            assert_eq!(store.get("a"), None);
            store.add(vec![choice("a", "other")]);
            assert_eq!(folder.open("m").get("a").unwrap().way, "other");
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_no_error() {
        let mut store = Store::open(Some(Path::new("/proc/nowhere")), "m");
        store.add(vec![choice("a", "fast")]);
        assert_eq!(store.get("a").unwrap().way, "fast");
    }
}
