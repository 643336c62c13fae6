//! Downloads that are cut, slow, doubled or interrupted.

mod hub_common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hub_common::*;
use ocelli_data::hub::Told;
use ocelli_testkit::hub::{Asked, Reply, Server};

/// Serves the data set; `spoil` may change an answer with content.
fn spoiled(spoil: impl Fn(&Asked, Reply) -> Reply + Send + Sync + 'static) -> Server {
    let repository = repository();
    Server::start(move |asked| {
        let reply = repository.answer(asked);
        if asked.path.contains("/resolve/") { spoil(asked, reply) } else { reply }
    })
}

fn cut(reply: Reply, at: usize) -> Reply {
    Reply { cut: Some(at), ..reply }
}

fn partials(bench: &Bench) -> Vec<(std::path::PathBuf, u64)> {
    sizes(&bench.folder()).into_iter().filter(|(p, _)| p.to_string_lossy().ends_with(".incomplete")).collect()
}

#[test]
fn a_cut_download_goes_on_where_it_was_cut() {
    // More often than attempts without progress are made.
    let server = spoiled(|_, reply| cut(reply, 40_000));
    let bench = Bench::new(&server.url());
    assert_eq!(read(&bench.fetch().done().train), [content(1, 300_000), content(2, 200_000)]);
    let from: Vec<usize> =
        server.asked().iter().filter(|a| a.path.contains(TRAIN)).map(Asked::from).collect();
    assert_eq!(from, [0, 40_000, 80_000, 120_000, 160_000, 200_000, 240_000, 280_000]);
}

#[test]
fn a_download_that_does_not_get_on_is_refused_and_resumed_by_the_next_run() {
    let server = spoiled(|asked, reply| if asked.from() == 0 { cut(reply, 1_234) } else { cut(reply, 0) });
    let mut bench = Bench::new(&server.url());
    bench.fetch().refused(&[
        "cut off",
        "300 kB wanted",
        "1234 bytes came",
        ".incomplete",
        "goes on from there",
    ]);
    assert_eq!(server.asked().iter().filter(|a| a.path.contains("/resolve/")).count(), 5, "attempts");
    assert_eq!(partials(&bench)[0].1, 1_234);
    let good = serve(repository());
    bench.settings.endpoint = good.url();
    let said = bench.fetch();
    assert!(said.notes[0].contains("500 kB"), "{:?}", said.notes);
    said.done();
    assert_eq!(good.asked().iter().find(|a| a.path.contains(TRAIN)).map(Asked::from), Some(1_234));
    assert_eq!(partials(&bench), []);
}

#[test]
fn a_wrong_beginning_of_an_earlier_process_is_fetched_anew() {
    let server = spoiled(|asked, reply| if asked.from() == 0 { cut(reply, 1_000) } else { cut(reply, 0) });
    let mut bench = Bench::new(&server.url());
    bench.fetch().refused(&["cut off"]);
    let partial = partials(&bench).remove(0).0;
    for wrong in [content(7, 1_000), content(7, 300_000), content(7, 400_000)] {
        std::fs::write(&partial, wrong).unwrap();
        let good = serve(repository());
        bench.settings.endpoint = good.url();
        assert_eq!(read(&bench.fetch().done().train)[0], content(1, 300_000));
        std::fs::remove_file(std::fs::canonicalize(bench.snapshot(TRAIN)).unwrap()).unwrap();
    }
}

#[test]
fn servers_that_cannot_go_on_start_again() {
    let whole = content(1, 300_000);
    let ignores = spoiled(move |asked, reply| match (asked.path.contains(TRAIN), asked.from()) {
        (true, 0) if asked.header("range").is_none() => cut(reply, 5_000),
        (true, _) => Reply::new(200, whole.clone()),
        _ => reply,
    });
    assert_eq!(read(&Bench::new(&ignores.url()).fetch().done().train)[0], content(1, 300_000));
    let count = AtomicUsize::new(0);
    let refuses = spoiled(move |asked, reply| match (asked.from(), count.fetch_add(1, Ordering::Relaxed)) {
        (0, 0) => cut(reply, 5_000),
        (0, _) => reply,
        _ => Reply::new(416, ""),
    });
    assert_eq!(read(&Bench::new(&refuses.url()).fetch().done().train)[0], content(1, 300_000));
    let elsewhere = spoiled(move |asked, reply| match asked.from() {
        0 => cut(reply, 5_000),
        from => {
            let range = format!("bytes {}-299999/300000", from + 1);
            Reply::new(206, vec![0; 299_999 - from]).with("Content-Range", &range)
        }
    });
    // It never gets further than the first cut: given up, not asked for ever.
    Bench::new(&elsewhere.url()).fetch().refused(&["cut off", "5000 bytes came"]);
}

#[test]
fn a_busy_server_is_asked_again() {
    for status in [429, 500, 503] {
        let count = AtomicUsize::new(0);
        let repository = repository();
        let server = Server::start(move |asked| match count.fetch_add(1, Ordering::Relaxed) % 2 {
            0 => Reply::new(status, "").with("Retry-After", "0"),
            _ => repository.answer(asked),
        });
        Bench::new(&server.url()).fetch().done();
    }
    let server = Server::start(|_| Reply::new(503, "").with("X-Error-Message", "down"));
    Bench::new(&server.url()).fetch().refused(&["503", "down", "Try again later", "data_config.data_path"]);
    assert_eq!(server.asked().len(), 5);
}

/// Who is told to come back in an hour says so and ends.
#[test]
fn a_server_that_wants_a_long_pause_is_not_asked_again() {
    let server = Server::start(|_| Reply::new(429, "").with("Retry-After", "3600"));
    Bench::new(&server.url()).fetch().refused(&[
        "429",
        "asked again in 3600 s",
        "more than the 60 s",
        "Try again later",
    ]);
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn a_pause_is_told_before_it() {
    let count = AtomicUsize::new(0);
    let repository = repository();
    let server = Server::start(move |asked| match count.fetch_add(1, Ordering::Relaxed) {
        0 => Reply::new(429, "").with("Retry-After", "6"),
        _ => repository.answer(asked),
    });
    let (bench, mut waits) = (Bench::new(&server.url()), Vec::new());
    let fetched = bench.fetch_with(&mut |told| {
        if let Told::Waiting(line) = told {
            waits.push(line.to_string());
        }
    });
    assert_eq!(read(&fetched.unwrap().train), [content(1, 300_000), content(2, 200_000)]);
    assert!((1..=2).contains(&waits.len()), "{waits:?}");
    assert!(
        waits[0].contains("status 429: asked again in 6 s") && waits[0].contains(&server.url()),
        "{waits:?}"
    );
}

#[test]
fn a_server_without_a_word_is_left_in_time() {
    let server =
        spoiled(|asked, reply| Reply { stall: true, ..cut(reply, if asked.from() == 0 { 10 } else { 0 }) });
    let mut bench = Bench::new(&server.url());
    (bench.settings.timeout, bench.settings.attempts) = (Duration::from_millis(200), 2);
    let begin = Instant::now();
    bench.fetch().refused(&["cut off", "time"]);
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
}

#[test]
fn a_stop_ends_a_stalled_download_at_once_and_keeps_what_came() {
    let server = spoiled(|_, reply| Reply { stall: true, ..cut(reply, 65_000) });
    let bench = Arc::new(Bench::new(&server.url()));
    let other = bench.clone();
    let fetching = std::thread::spawn(move || other.fetch());
    while partials(&bench).first().is_none_or(|(_, size)| *size < 65_000) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let begin = Instant::now();
    bench.stop.store(true, Ordering::Relaxed);
    fetching.join().unwrap().refused(&["interrupted", "kept in", "goes on from there"]);
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    assert_eq!(partials(&bench)[0].1, 65_000);
}

/// The lock on one file's content is held until the fetch says that it waits.
#[test]
fn who_waits_for_another_program_says_so() {
    let server = spoiled(|_, reply| reply);
    let first = Bench::new(&server.url());
    first.fetch().done();
    let locks = sizes(&first.settings.cache.join(".locks"));
    let bench = Bench::new(&server.url());
    let name = locks[0].0.strip_prefix(&first.settings.cache).unwrap();
    let path = bench.settings.cache.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = std::fs::File::create(&path).unwrap();
    file.try_lock().unwrap();
    let (mut held, mut waits) = (Some(file), Vec::new());
    let fetched = bench.fetch_with(&mut |told| {
        if let Told::Note(line) = told
            && line.contains("another program is fetching it, waiting")
        {
            waits.push(line.to_string());
            held = None;
        }
    });
    assert_eq!(read(&fetched.unwrap().train), [content(1, 300_000), content(2, 200_000)]);
    assert_eq!(waits.len(), 1, "{waits:?}");
}

#[test]
fn two_at_once_fetch_once() {
    let server = spoiled(|_, reply| {
        std::thread::sleep(Duration::from_millis(300));
        reply
    });
    let bench = Arc::new(Bench::new(&server.url()));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let bench = bench.clone();
            std::thread::spawn(move || bench.fetch())
        })
        .collect();
    let said: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    // Whether the second one waits for the first, or comes when all is there, is a matter of moments.
    let fetched: Vec<_> = said.into_iter().map(Said::done).collect();
    assert_eq!(fetched[0], fetched[1]);
    assert_eq!(read(&fetched[0].train), [content(1, 300_000), content(2, 200_000)]);
    assert_eq!(server.asked().iter().filter(|a| a.path.contains("/resolve/")).count(), 3);
}
