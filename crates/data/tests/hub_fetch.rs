//! What is fetched from the hub, how it lies in the cache, and when nothing is asked.

mod hub_common;

use hub_common::*;
use ocelli_data::hub::DataSet;
use ocelli_testkit::hub::{COMMIT, Reply, Repository, Server};

#[test]
fn the_wanted_splits_are_fetched_into_the_layout_of_the_hub() {
    let server = serve(repository());
    let bench = Bench::new(&server.url());
    let said = bench.fetch();
    assert_eq!(said.notes.len(), 1, "{:?}", said.notes);
    for part in [ID, &COMMIT[..8], &server.url(), "3 files", "501 kB", bench.folder().to_str().unwrap()] {
        assert!(said.notes[0].contains(part), "no {part} in {}", said.notes[0]);
    }
    assert!(said.progress.contains(&(TRAIN.into(), 300_000, 300_000)), "{:?}", said.progress);
    let fetched = said.done();
    assert_eq!(fetched.commit, COMMIT);
    assert!(fetched.note.as_ref().unwrap().contains("`train` to train on, `validation` to validate on"));
    assert_eq!(fetched.train, [bench.snapshot(TRAIN), bench.snapshot(TRAIN_2)]);
    assert_eq!(read(&fetched.train), [content(1, 300_000), content(2, 200_000)]);
    assert_eq!(fetched.validation, [bench.snapshot(VALIDATION)]);
    assert_eq!(std::fs::read_to_string(bench.folder().join("refs/main")).unwrap(), COMMIT);
    assert_eq!(bench.blobs().len(), 3, "the test split is left alone");
    #[cfg(unix)]
    {
        let link = std::fs::read_link(bench.snapshot(TRAIN)).unwrap();
        assert!(link.starts_with("../../../blobs"), "{}", link.display());
    }
    let leftovers: Vec<_> = sizes(bench.dir.path())
        .into_iter()
        .filter(|(path, _)| {
            path.to_string_lossy().ends_with(".tmp") || path.to_string_lossy().ends_with("incomplete")
        })
        .collect();
    assert!(leftovers.is_empty(), "{leftovers:?}");
}

#[test]
fn a_full_cache_makes_no_request() {
    let server = serve(repository());
    let bench = Bench::new(&server.url());
    let first = bench.fetch().done();
    let requests = server.asked().len();
    let again = bench.fetch();
    assert!(again.notes[0].contains("from the cache"), "{:?}", again.notes);
    assert_eq!(again.done(), first);
    assert_eq!(server.asked().len(), requests);
    // Nor with the commit as the revision.
    let mut pinned = bench;
    pinned.set = DataSet::new(ID, Some(COMMIT)).unwrap();
    assert_eq!(pinned.fetch().done(), first);
    assert_eq!(server.asked().len(), requests);
}

#[test]
fn only_what_is_wanting_is_fetched() {
    let server = serve(repository());
    let bench = Bench::new(&server.url());
    bench.fetch().done();
    std::fs::remove_file(bench.snapshot(TRAIN)).unwrap();
    let before = server.asked().len();
    // The content is still there: it is linked again, and the list alone is asked for.
    let said = bench.fetch();
    assert!(said.notes.is_empty(), "{:?}", said.notes);
    said.done();
    assert_eq!(server.asked().len(), before + 1);
    assert_eq!(std::fs::read(bench.snapshot(TRAIN)).unwrap(), content(1, 300_000));
}

#[test]
fn damaged_content_is_fetched_again() {
    let server = serve(repository());
    let bench = Bench::new(&server.url());
    bench.fetch().done();
    std::fs::write(bench.snapshot(TRAIN), "").unwrap();
    let blob = std::fs::canonicalize(bench.snapshot(TRAIN_2)).unwrap();
    std::fs::remove_file(blob).unwrap();
    let said = bench.fetch();
    assert_eq!(said.warnings.len(), 2, "{:?}", said.warnings);
    assert!(said.warnings[0].contains("0 bytes instead of 300000"), "{:?}", said.warnings);
    assert_eq!(read(&said.done().train), [content(1, 300_000), content(2, 200_000)]);
}

#[test]
fn a_branch_or_tag_has_a_reference_of_its_own() {
    let server = serve(Repository { branch: "refs/pr/1".into(), ..repository() });
    let mut bench = Bench::new(&server.url());
    bench.set = DataSet::new(ID, Some("refs/pr/1")).unwrap();
    bench.fetch().done();
    assert!(bench.folder().join("refs/refs/pr/1").is_file());
    assert!(asked(&server)[0].contains("/revision/refs%2Fpr%2F1"), "{:?}", asked(&server));
}

#[test]
fn what_the_hub_made_of_a_set_without_parquet_is_taken() {
    let main = Repository::new(ID).with("data.zip", "PK");
    let converted = Repository::new(ID)
        .with("default/train/0000.parquet", "T")
        .with("default/validation/0000.parquet", "V");
    let converted = Repository { branch: "refs/convert/parquet".into(), ..converted };
    let server = Server::start(move |asked| {
        let of_main = asked.path.contains("/revision/main");
        if of_main {
            // Another commit than the branch's.
            let mut reply = main.answer(asked);
            let text = String::from_utf8(reply.body).unwrap();
            reply.body = text.replace(COMMIT, &"a".repeat(40)).into_bytes();
            return reply;
        }
        converted.answer(asked)
    });
    let bench = Bench::new(&server.url());
    let fetched = bench.fetch().done();
    assert_eq!(read(&fetched.train), [b"T"]);
    assert_eq!(read(&fetched.validation), [b"V"]);
    let before = server.asked().len();
    assert_eq!(bench.fetch().done(), fetched);
    assert_eq!(server.asked().len(), before, "the cache knows that the main branch holds none");
}

#[test]
fn a_server_that_lists_no_sizes_is_asked_for_each() {
    let server = serve(Repository { sizes: false, ..repository() });
    let bench = Bench::new(&server.url());
    assert_eq!(read(&bench.fetch().done().validation), [content(3, 1_000)]);
    assert_eq!(asked(&server).iter().filter(|line| line.starts_with("HEAD")).count(), 3);
    // Its files are a whole series: nothing else can be wanting.
    let before = server.asked().len();
    bench.fetch().done();
    assert_eq!(server.asked().len(), before);
}

#[test]
fn one_of_several_sets_is_named_by_its_folder() {
    let server = serve(Repository::new(ID).with("en/train.parquet", "E").with("de/train.parquet", "D"));
    let mut bench = Bench::new(&server.url());
    bench.fetch().refused(&["several sets", "de, en", "data_config.data_path=RIW/small-coco/de"]);
    bench.set = DataSet::new(&format!("{ID}/en"), None).unwrap();
    assert_eq!(read(&bench.fetch().done().train), [b"E"]);
}

#[test]
fn the_token_goes_to_the_hub_alone() {
    let private = Repository { token: Some("hf_secret".into()), ..repository() };
    let store = private.clone();
    let elsewhere = Server::start(move |asked| store.answer_elsewhere(asked));
    let server = serve(Repository { elsewhere: Some(elsewhere.url()), ..private });
    let bench = Bench::with(&server.url(), &[("HF_TOKEN", "hf_secret")]);
    bench.fetch().done();
    let bearer = Some("Bearer hf_secret");
    assert!(server.asked().iter().all(|asked| asked.header("authorization") == bearer));
    assert_eq!(elsewhere.asked().len(), 3);
    assert!(elsewhere.asked().iter().all(|asked| asked.header("authorization").is_none()));
}

#[test]
fn a_renamed_data_set_is_followed_with_the_token() {
    let moved = Repository { token: Some("hf_secret".into()), ..repository() };
    let server = Server::start(move |asked| {
        let mut asked = asked.clone();
        if asked.path.contains("RIW/small-coco") {
            return Reply::redirect(&asked.path.replace("RIW/small-coco", "new/name"));
        }
        asked.path = asked.path.replace("new/name", "RIW/small-coco");
        moved.answer(&asked)
    });
    let bench = Bench::with(&server.url(), &[("HF_TOKEN", "hf_secret")]);
    bench.fetch().done();
}
