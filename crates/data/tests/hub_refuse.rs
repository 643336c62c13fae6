//! What is refused, and what a person is told about it.

mod hub_common;

use hub_common::*;
use ocelli_data::hub::{DataSet, HubError};
use ocelli_testkit::hub::{Reply, Repository, Server};
use serde_json::json;

/// An address that nobody listens at.
fn nobody() -> String {
    serve(repository()).url()
}

#[test]
fn without_a_network_the_message_says_how_to_do_without() {
    let (endpoint, begin) = (nobody(), std::time::Instant::now());
    let bench = Bench::new(&endpoint);
    bench.fetch().refused(&[&endpoint, "refused", "data_config.data_path", "HF_HOME", "HF_ENDPOINT"]);
    assert!(begin.elapsed().as_secs() < 2, "no attempts where nobody is");
}

#[test]
fn offline_makes_no_request() {
    let server = serve(repository());
    let bench = Bench::with(&server.url(), &[("HF_HUB_OFFLINE", "1")]);
    bench.fetch().refused(&["HF_HUB_OFFLINE", "not in the cache", bench.folder().to_str().unwrap()]);
    // With a part of the files.
    let mut online = bench;
    let offline = online.settings.offline.take();
    online.fetch().done();
    std::fs::remove_file(online.snapshot(TRAIN)).unwrap();
    std::fs::write(online.snapshot(VALIDATION), "").unwrap();
    let before = server.asked().len();
    online.settings.offline = offline;
    let wrong = [TRAIN, "absent", VALIDATION, "0 bytes instead of 1000", "HF_HUB_OFFLINE"];
    online.fetch().refused(&wrong);
    assert_eq!(server.asked().len(), before);
}

#[test]
fn what_another_program_left_serves_without_a_network() {
    let bench = Bench::new(&nobody());
    let commit = "b".repeat(40);
    let snapshot = bench.folder().join("snapshots").join(&commit);
    std::fs::create_dir_all(&snapshot).unwrap();
    std::fs::create_dir_all(bench.folder().join("refs")).unwrap();
    std::fs::write(bench.folder().join("refs/main"), &commit).unwrap();
    std::fs::write(snapshot.join("train.parquet"), "T").unwrap();
    let said = bench.fetch();
    assert!(said.warnings[0].contains("could not be asked"), "{:?}", said.warnings);
    assert_eq!(read(&said.done().train), [b"T"]);
    // A gap in a series is no whole.
    std::fs::rename(snapshot.join("train.parquet"), snapshot.join("train-00001-of-00002.parquet")).unwrap();
    bench.fetch().refused(&["cannot reach"]);
}

#[test]
fn a_hub_that_wants_a_token_says_where_one_was_looked_for() {
    let server = serve(Repository { token: Some("hf_right".into()), ..repository() });
    let none = Bench::new(&server.url());
    let file = none.dir.path().join("token");
    let parts = ["401", "restricted", "HF_TOKEN", file.to_str().unwrap(), "/settings/tokens", "conditions"];
    none.fetch().refused(&parts);
    let wrong = Bench::with(&server.url(), &[("HF_TOKEN", "hf_wrong")]);
    let message = wrong.fetch().refused(&["The token of HF_TOKEN does not open it"]);
    assert!(!message.contains("hf_wrong"));
}

#[test]
fn a_data_set_that_is_not_there() {
    let server = serve(Repository::new("other/one"));
    let bench = Bench::new(&server.url());
    bench.fetch().refused(&["no such data set", ID, "no file or folder", "Repository not found", "HF_TOKEN"]);
    // The hub tells strangers that they have no access.
    let hidden = Server::start(|_| Reply::new(401, "").with("X-Error-Code", "RepoNotFound"));
    Bench::new(&hidden.url()).fetch().refused(&["no such data set", "HF_TOKEN"]);
    // A model of that name.
    let model = Server::start(|asked| match asked.path.starts_with("/api/models/") {
        true => Reply::new(200, "{}"),
        false => Reply::new(404, "").with("X-Error-Code", "RepoNotFound"),
    });
    Bench::new(&model.url()).fetch().refused(&["RIW/small-coco is a model"]);
}

#[test]
fn a_revision_that_is_not_there() {
    let server = serve(repository());
    let mut bench = Bench::new(&server.url());
    bench.set = DataSet::new(ID, Some("v2")).unwrap();
    bench.fetch().refused(&["no such revision", "data_config.revision", "v2"]);
}

#[test]
fn no_parquet_anywhere() {
    let server = serve(Repository::new(ID).with("data.zip", "PK"));
    Bench::new(&server.url()).fetch().refused(&[
        "no parquet file",
        "refs/convert/parquet",
        "data_config.dataset",
    ]);
    let server = serve(Repository::new(ID).with("test.parquet", "T"));
    Bench::new(&server.url()).fetch().refused(&["has no split `train`", "`test`", "data_config.train_split"]);
}

#[test]
fn answers_of_another_kind() {
    let cases: [(Reply, &[&str]); 6] = [
        (
            Reply::new(200, "<html>log in</html>").with("Content-Type", "text/html"),
            &["a web page", "HF_ENDPOINT"],
        ),
        (Reply::new(200, "  <!doctype html>"), &["a web page"]),
        (Reply::new(200, "hello \u{1b}[31m"), &["not the hub's list", "'hello [31m'"]),
        (Reply::new(200, "[]"), &["not the hub's list"]),
        (Reply::redirect("ftp://h/x"), &["neither http nor https"]),
        (Reply::redirect("/again"), &["more than 10 times"]),
    ];
    for (reply, parts) in cases {
        let server = Server::start(move |_| reply.clone());
        Bench::new(&server.url()).fetch().refused(parts);
    }
}

#[test]
fn a_portal_that_redirects_to_its_page_gets_no_token() {
    let portal = Server::start(|_| Reply::new(200, "<html>").with("Content-Type", "text/html"));
    let page = format!("{}/login?session=1", portal.url());
    let server = Server::start(move |_| Reply::redirect(&page));
    let bench = Bench::with(&server.url(), &[("HF_TOKEN", "hf_secret")]);
    bench.fetch().refused(&["a web page", &format!("{}/login", portal.url())]);
    assert!(portal.asked()[0].header("authorization").is_none());
}

#[test]
fn names_that_lead_out_of_the_cache_are_refused() {
    let blob = "0".repeat(64);
    let hostile = [
        json!({ "rfilename": "../../../escaped.parquet", "size": 1, "blobId": blob }),
        json!({ "rfilename": "/escaped.parquet", "size": 1, "blobId": blob }),
        json!({ "rfilename": "train.parquet", "size": 1, "blobId": "../../../../escaped" }),
    ];
    for file in hostile {
        let list = json!({ "sha": "c".repeat(40), "siblings": [file] }).to_string();
        let server = Server::start(move |_| Reply::new(200, list.clone()));
        let bench = Bench::new(&server.url());
        bench.fetch().refused(&["refused"]);
        assert_eq!(sizes(bench.dir.path()), []);
    }
    let list = json!({ "sha": "../../escaped", "siblings": [] }).to_string();
    let server = Server::start(move |_| Reply::new(200, list.clone()));
    Bench::new(&server.url()).fetch().refused(&["no commit"]);
}

#[test]
fn a_set_that_does_not_fit_on_the_disk_is_refused_before() {
    let list = json!({ "sha": "c".repeat(40), "siblings": [
        { "rfilename": "train.parquet", "size": 1u64 << 60, "blobId": "0".repeat(40) },
    ]})
    .to_string();
    let server = Server::start(move |_| Reply::new(200, list.clone()));
    let bench = Bench::new(&server.url());
    bench.fetch().refused(&["not enough space", "1.15 EB needed", "free", "HF_HOME"]);
    assert_eq!(server.asked().len(), 1, "nothing is fetched");
}

#[test]
fn wrong_content_is_thrown_away() {
    let right = repository();
    let server = Server::start(move |asked| match asked.path.contains("/resolve/") {
        true => Reply::content(asked, &content(9, 300_000)),
        false => right.answer(asked),
    });
    let bench = Bench::new(&server.url());
    bench.fetch().refused(&["sha256", "wanted", "found", TRAIN]);
    assert!(bench.blobs().is_empty(), "{:?}", bench.blobs());
    assert!(!bench.snapshot(TRAIN).exists());
}

#[test]
fn content_of_another_size_is_refused() {
    for length in [299_999, 300_001] {
        let right = repository();
        let server = Server::start(move |asked| match asked.path.contains("/resolve/") {
            true => Reply::content(asked, &content(1, length)),
            false => right.answer(asked),
        });
        let error = Bench::new(&server.url()).fetch().refused(&["size 300000 wanted", &length.to_string()]);
        assert!(error.contains(TRAIN), "{error}");
    }
}

#[test]
fn a_cache_that_cannot_be_written() {
    let server = serve(repository());
    let bench = Bench::new(&server.url());
    std::fs::create_dir_all(bench.settings.cache.parent().unwrap()).unwrap();
    std::fs::write(&bench.settings.cache, "a file").unwrap();
    let error = bench.fetch().result.unwrap_err();
    assert!(matches!(error, HubError::Io { .. }), "{error}");
    assert!(error.to_string().contains("HF_HOME"), "{error}");
}
