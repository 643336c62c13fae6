//! What a run leaves on a terminal's screen.
#![cfg(unix)]

#[path = "support/pty.rs"]
mod pty;
mod support;

use pty::OnTerminal;
use support::{Bench, csv, tiny, with};

fn start(b: &Bench, args: &[&str]) -> OnTerminal {
    OnTerminal::start(b.command(&tiny(args)))
}

/// The changing line begins with the step's number, the plain one with a word.
fn changing(line: &str) -> bool {
    line.starts_with(|c: char| c.is_ascii_digit()) && line.contains(" loss ")
}

#[test]
fn the_training_loss_stays_beside_each_validation_and_at_the_end() {
    let b = Bench::new();
    let (status, lines) = start(
        &b,
        &["trainer_config.max_iters=30", "trainer_config.eval_interval=10", "trainer_config.log_interval=7"],
    )
    .end();
    assert!(status.success(), "{lines:#?}");
    for step in [10, 20, 30] {
        let validation = format!("Validation Loss after step {step}: ");
        let at =
            lines.iter().position(|l| l.starts_with(&validation)).unwrap_or_else(|| panic!("{lines:#?}"));
        let training = format!("step {step}/30 epoch 0 loss ");
        assert!(lines[..at].iter().rev().take(2).any(|l| l.starts_with(&training)), "{lines:#?}");
    }
    assert!(!lines.iter().any(|l| changing(l)), "{lines:#?}");
    assert_eq!(lines.iter().filter(|l| l.starts_with("step ")).count(), 3, "{lines:#?}");
}

#[test]
fn without_validation_the_last_loss_stays() {
    let b = Bench::new();
    let args = with(&csv(&b, 8, 0), &["trainer_config.max_iters=5", "trainer_config.log_interval=2"]);
    let (status, lines) = start(&b, &args).end();
    assert!(status.success() && lines.iter().any(|l| l.starts_with("step 5/5 epoch 0 loss ")), "{lines:#?}");
    assert!(!lines.iter().any(|l| changing(l)), "{lines:#?}");
}

#[test]
fn an_interrupt_leaves_no_old_progress_line() {
    let b = Bench::new();
    let mut run = start(&b, &["trainer_config.max_iters=1000000", "trainer_config.log_interval=20"]);
    run.wait_for(changing);
    run.interrupt();
    let (status, lines) = run.end();
    assert!(status.success(), "{lines:#?}");
    assert!(!lines.iter().any(|l| changing(l)), "{lines:#?}");
    assert!(lines.iter().any(|l| l.starts_with("ending as soon as the work in hand is done")), "{lines:#?}");
    assert_eq!(lines.iter().filter(|l| l.starts_with("step ")).count(), 1, "{lines:#?}");
    assert!(lines.last().unwrap().starts_with("interrupted and saved: "), "{lines:#?}");
}
