//! The binary on a terminal, and what stands on its screen.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const ROWS: u16 = 200;
const COLUMNS: u16 = 110;

/// A program on a terminal of its own.
pub struct OnTerminal {
    child: Child,
    keys: File,
    screen: Arc<Mutex<vt100::Parser>>,
    /// The terminal has shown Ctrl-C, if only for a moment.
    echoed: Arc<AtomicBool>,
    reader: JoinHandle<()>,
}

impl OnTerminal {
    pub fn start(mut command: Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let size = Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let slave = File::options().read(true).write(true).open(name).unwrap();
        command.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave);
        let child = command.env("TERM", "xterm").spawn().unwrap();
        // It holds the other end: without it the program's end would not be seen.
        drop(command);
        let keys = File::from(master);
        let screen = Arc::new(Mutex::new(vt100::Parser::new(ROWS, COLUMNS, 0)));
        let (mut from, to) = (keys.try_clone().unwrap(), screen.clone());
        let echoed = Arc::new(AtomicBool::new(false));
        let seen = echoed.clone();
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The end of the program is an error here.
            while let Ok(n @ 1..) = from.read(&mut bytes) {
                seen.fetch_or(bytes[..n].contains(&b'^'), Ordering::Relaxed);
                to.lock().unwrap().process(&bytes[..n]);
            }
        });
        Self { child, keys, screen, echoed, reader }
    }

    /// What stands on the screen, line by line.
    pub fn lines(&self) -> Vec<String> {
        let screen = self.screen.lock().unwrap();
        screen.screen().rows(0, COLUMNS).map(|line| line.trim_end().to_owned()).collect()
    }

    /// Waits until a line on the screen is as wanted.
    #[track_caller]
    pub fn wait_for(&self, wanted: impl Fn(&str) -> bool) {
        self.wait(|| self.lines().iter().any(|l| wanted(l)));
    }

    #[track_caller]
    fn wait(&self, until: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !until() {
            assert!(Instant::now() < deadline, "{:#?}", self.lines());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Ctrl-C: the terminal shows it; the signal is sent by hand, for the terminal controls no process.
    pub fn interrupt(&mut self) {
        self.keys.write_all(b"\x03").unwrap();
        self.wait(|| self.echoed.load(Ordering::Relaxed));
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    }

    /// Waits for the program's end; what it left on the screen.
    pub fn end(mut self) -> (ExitStatus, Vec<String>) {
        let status = self.child.wait().unwrap();
        while !self.reader.is_finished() {
            std::thread::sleep(Duration::from_millis(2));
        }
        let mut lines = self.lines();
        lines.truncate(lines.iter().rposition(|l| !l.is_empty()).map_or(0, |last| last + 1));
        (status, lines)
    }
}
