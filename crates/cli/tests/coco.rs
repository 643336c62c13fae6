//! The preset `coco_train` on a data set of the hub, through the real binary: a server on this machine stands in.

mod support;

use ocelli_testkit::hub::{COMMIT, Reply, Repository, Server};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use support::{Bench, Said, TINY, said};

const ID: &str = "RIW/small-coco";
const SHARDS: [(&str, &[u8]); 3] = [
    ("train-00000-of-00002.parquet", include_bytes!("coco/train-00000-of-00002.parquet")),
    ("train-00001-of-00002.parquet", include_bytes!("coco/train-00001-of-00002.parquet")),
    ("validation-00000-of-00001.parquet", include_bytes!("coco/validation-00000-of-00001.parquet")),
];
const STEPS: &str = "trainer_config.max_iters=2";

/// 18 pairs to train on, 5 to validate on.
fn repository() -> Repository {
    SHARDS.iter().fold(Repository::new(ID), |set, (name, bytes)| set.with(&format!("data/{name}"), *bytes))
}

fn serve(repository: Repository) -> Server {
    Server::start(move |asked| repository.answer(asked))
}

/// A folder with an empty home of the hub.
struct Hub {
    bench: Bench,
    endpoint: String,
}

impl Hub {
    fn new(endpoint: String) -> Self {
        Self { bench: Bench::new(), endpoint }
    }

    fn command(&self, more: &[&str], variables: &[(&str, &str)]) -> Command {
        let preset = ["train", "--config-name", "coco_train", "data_config.vocab_path=auto", STEPS];
        self.any(&[&preset, TINY, more].concat(), variables)
    }

    /// Any command, with this home of the hub and nothing else of it.
    fn any(&self, args: &[&str], variables: &[(&str, &str)]) -> Command {
        let mut command = self.bench.command(args);
        for name in
            ["HF_TOKEN", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"]
        {
            command.env_remove(name);
        }
        command.env("HF_ENDPOINT", &self.endpoint).env("HF_HOME", self.bench.path("hf")).env("NO_PROXY", "*");
        command.envs(variables.iter().copied());
        command
    }

    fn train(&self, more: &[&str], variables: &[(&str, &str)]) -> Said {
        said(self.command(more, variables).output().unwrap())
    }

    fn cache(&self) -> PathBuf {
        self.bench.path("hf/hub/datasets--RIW--small-coco")
    }
}

#[test]
fn the_preset_trains_from_the_hub_then_from_the_cache() {
    let server = serve(repository());
    let hub = Hub::new(server.url());
    let into = hub.cache().display().to_string();
    let first = hub.train(&[], &[]).done().mentions(&[
        &format!(
            "hub: fetching {ID} at {} from {}: 3 files, 33.5 kB, into {into}",
            &COMMIT[..8],
            server.url()
        ),
        &format!("data: parquet {ID} at {}, to train on (2 files, 18 rows)", &COMMIT[..8]),
        "splits: `train` to train on, `validation` to validate on",
        "columns: `image` holds pictures (bytes and path), `caption` captions",
        "rows: 18 to train on, 5 to validate on",
        "done: 2 steps, 8 samples",
    ]);
    assert!(!first.out.contains("kB data/"), "progress belongs on a terminal: {}", first.out);
    drop(server);
    let from = format!("hub: {ID} at {}: 3 files from the cache {into}", &COMMIT[..8]);
    hub.train(&[], &[]).done().mentions(&[&from, "rows: 18 to train on", "done: 2 steps"]);
    hub.train(&[], &[("HF_HUB_OFFLINE", "1")]).done().mentions(&[&from]);
    // A part of it does not do.
    std::fs::remove_file(hub.cache().join("snapshots").join(COMMIT).join("data").join(SHARDS[1].0)).unwrap();
    hub.train(&[], &[("HF_HUB_OFFLINE", "1")])
        .refused(&["train-00001-of-00002.parquet (absent)", "HF_HUB_OFFLINE"]);
}

#[test]
fn without_cache_and_server_the_message_says_what_to_do() {
    let nobody = serve(repository()).url();
    let hub = Hub::new(nobody.clone());
    let parts = ["cannot reach", &nobody, "refused", "data_config.data_path", "HF_HOME", "HTTPS_PROXY"];
    hub.train(&[], &[]).refused(&parts);
    hub.train(&[], &[("HF_HUB_OFFLINE", "1")]).refused(&["not in the cache", "HF_HUB_OFFLINE forbids"]);
    assert!(!hub.bench.path("runs").exists() && !hub.cache().exists());
}

#[test]
fn a_data_set_of_the_hub_can_be_looked_at_before_training() {
    let server = serve(repository());
    let hub = Hub::new(server.url());
    let checked = said(hub.any(&["data", "check", ID, "--json"], &[]).output().unwrap()).done();
    assert_eq!(checked.out.lines().count(), 1, "a line for each source: {}", checked.out);
    let found: serde_json::Value = serde_json::from_str(&checked.out).unwrap();
    let usable = |part: usize| (found["parts"][part]["rows"].clone(), found["parts"][part]["usable"].clone());
    assert_eq!((usable(0), usable(1)), ((18.into(), 18.into()), (5.into(), 5.into())));
    assert!(checked.err.contains("hub: fetching"), "{}", checked.err);
    drop(server);
    let show = ["data", "show", ID, "--index", "17", "--out", "seen.png"];
    said(hub.any(&show, &[]).output().unwrap()).done().mentions(&["row 17 of parquet RIW/small-coco"]);
}

/// The preset names `vocab.txt`, which a folder elsewhere has not.
#[test]
fn a_missing_vocabulary_is_found_before_the_fetch() {
    let server = serve(repository());
    let hub = Hub::new(server.url());
    hub.train(&["data_config.vocab_path=vocab.txt"], &[]).refused(&["vocab.txt", "No such file"]);
    assert!(server.asked().is_empty(), "{:?}", server.asked());
    assert!(!hub.cache().exists());
}

#[test]
fn nothing_is_asked_for_what_lies_on_this_machine() {
    let server = serve(repository());
    let hub = Hub::new(server.url());
    let folder = concat!("data_config.data_path=", env!("CARGO_MANIFEST_DIR"), "/tests/coco");
    hub.train(&[folder], &[]).done().mentions(&["rows: 18 to train on, 5 to validate on", "done: 2 steps"]);
    hub.train(&[folder, "data_config.revision=v1"], &[])
        .refused(&["data_config.revision", "on this machine"]);
    for (path, why) in [
        ("./data/coco", "no such file or folder"),
        ("data/coco.parquet", "no such file or folder"),
        ("coco", "owner/name"),
    ] {
        hub.train(&[&format!("data_config.data_path={path}")], &[]).refused(&[path, why]);
    }
    assert!(server.asked().is_empty(), "{:?}", server.asked());
}

#[test]
fn the_token_goes_to_the_hub_and_not_where_it_redirects() {
    let set = Repository { token: Some("hf_secret".into()), ..repository() };
    let store = set.clone();
    let elsewhere = Server::start(move |asked| store.answer_elsewhere(asked));
    let server = serve(Repository { elsewhere: Some(elsewhere.url()), ..set });
    let hub = Hub::new(server.url());
    let refused = hub.train(&[], &[("HF_TOKEN", "hf_wrong")]).refused(&["401", "token of HF_TOKEN"]);
    assert!(!refused.err.contains("hf_wrong"), "{}", refused.err);
    std::fs::create_dir_all(hub.bench.path("hf")).unwrap();
    std::fs::write(hub.bench.path("hf/token"), "hf_secret\n").unwrap();
    hub.train(&[], &[]).done();
    assert_eq!(elsewhere.asked().len(), 3);
    assert!(elsewhere.asked().iter().all(|asked| asked.header("authorization").is_none()));
}

#[test]
fn changed_content_and_missing_revisions_are_refused() {
    let right = repository();
    let server = Server::start(move |asked| {
        let mut reply = right.answer(asked);
        if asked.path.contains("train-00001") {
            reply.body[100] ^= 1;
        }
        reply
    });
    let hub = Hub::new(server.url());
    hub.train(&[], &[]).refused(&["train-00001-of-00002.parquet", "the wrong content came", "sha256"]);
    hub.train(&["data_config.revision=v9"], &[]).refused(&["no such revision", "data_config.revision", "v9"]);
    hub.train(&["data_config.train_split=dev"], &[]).refused(&[
        "no split `dev`",
        "data_config.train_split",
        ID,
    ]);
    assert!(!hub.bench.path("runs").exists());
}

/// Ctrl-C in the middle of a download.
#[cfg(unix)]
#[test]
fn an_interrupted_download_goes_on_where_it_was() {
    let right = repository();
    let slow = Server::start(move |asked| {
        let reply = right.answer(asked);
        let content = asked.path.contains("/resolve/");
        if content { Reply { cut: Some(5_000), stall: true, ..reply } } else { reply }
    });
    let mut hub = Hub::new(slow.url());
    let child = hub.command(&[], &[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let partial = || {
        let blobs = std::fs::read_dir(hub.cache().join("blobs")).into_iter().flatten().flatten();
        let mut partials = blobs.filter(|e| e.file_name().to_string_lossy().ends_with(".incomplete"));
        partials.next().map_or(0, |e| e.metadata().unwrap().len())
    };
    while partial() < 5_000 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let ended = said(child.wait_with_output().unwrap()).done();
    ended.mentions(&["interrupted while fetching", "goes on from there", "datasets--RIW--small-coco"]);
    assert_eq!(partial(), 5_000);
    assert!(!hub.bench.path("runs").exists());
    let server = serve(repository());
    hub.endpoint = server.url();
    hub.train(&[], &[]).done().mentions(&["3 files, 28.5 kB"]);
    assert!(server.asked().iter().any(|asked| asked.from() == 5_000));
}

/// A server that takes its time is spoken of, on standard error, and not every moment.
#[test]
fn a_long_wait_is_told() {
    let repository = repository();
    let server = Server::start(move |asked| {
        if asked.path.contains("/api/") {
            std::thread::sleep(std::time::Duration::from_secs(7));
        }
        repository.answer(asked)
    });
    let hub = Hub::new(server.url());
    let output = hub.command(&[], &[]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}");
    let lines: Vec<&str> = told.lines().filter(|line| line.contains("no answer yet from")).collect();
    assert_eq!(lines.len(), 1, "{told}");
    assert!(lines[0].contains(&server.url()) && lines[0].contains("after 30 s, for "), "{told}");
}
