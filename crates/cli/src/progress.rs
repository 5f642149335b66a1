//! A progress bar on standard error for statements that take longer than a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sinterdb::{Connection, Progress};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Most statements are done before anybody wonders.
const QUIET_START: Duration = Duration::from_secs(1);
const REDRAW_EVERY: Duration = Duration::from_millis(100);

/// Watches a connection until it is dropped.
pub(crate) struct Watch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts to watch what `connection` runs.
    pub(crate) fn start(connection: &Connection) -> Watch {
        let connection = connection.clone();
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || {
            let mut pause = QUIET_START;
            let mut bar = None;
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                pause = REDRAW_EVERY;
                draw(bar.get_or_insert_with(new_bar), &connection.progress().unwrap_or_default());
            }
            if let Some(bar) = bar {
                bar.finish_and_clear();
            }
        });
        Watch { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Watch {
    /// Takes the bar off the screen.
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A bar for something else than a statement, which shows nothing for the first second.
pub(crate) struct Bar {
    bar: Option<ProgressBar>,
    started: Instant,
    drawn: Instant,
    is_wanted: bool,
}

impl Bar {
    pub(crate) fn new(is_wanted: bool) -> Bar {
        Bar { bar: None, started: Instant::now(), drawn: Instant::now(), is_wanted }
    }

    /// So much of so much is done.
    pub(crate) fn set(&mut self, label: &str, done: u64, total: u64) {
        let due = if self.bar.is_some() {
            self.drawn.elapsed() >= REDRAW_EVERY
        } else {
            self.started.elapsed() >= QUIET_START
        };
        if self.is_wanted && due {
            self.drawn = Instant::now();
            draw(self.bar.get_or_insert_with(new_bar), &Progress { label: label.to_owned(), done, total: Some(total) });
        }
    }

    /// Takes the bar off the screen.
    pub(crate) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

fn new_bar() -> ProgressBar {
    ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_elapsed(QUIET_START)
}

fn draw(bar: &ProgressBar, progress: &Progress) {
    let label = if progress.label.is_empty() { "running" } else { &progress.label };
    bar.set_message(label.to_owned());
    match progress.total.filter(|total| *total > 0) {
        Some(total) => {
            bar.set_style(style("{spinner:.dim} {msg} {bar:30.cyan/dim} {percent:>3}% {elapsed:.dim}"));
            bar.set_length(total);
            bar.set_position(progress.done.min(total));
        }
        None => bar.set_style(style("{spinner:.dim} {msg} {elapsed:.dim}")),
    }
    bar.tick();
}

/// A line with a bar, a label and the time passed.
pub(crate) fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.progress_chars("━╸─").tick_chars("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ ")
}
