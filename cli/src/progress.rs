//! Shows how far training is: a bar on a terminal, plain lines elsewhere, nothing when asked to be quiet.

use hemiola_models::Epoch;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write, stderr};
use std::time::Duration;

/// Writes a line to standard error; when nobody listens there is nobody to tell.
pub(crate) fn say(line: &str) {
    writeln!(stderr().lock(), "{line}").unwrap_or_default();
}

/// An epoch of any model's training.
pub(crate) trait Observed: Serialize {
    /// Epochs done.
    fn number(&self) -> u32;
    /// Seconds of training so far.
    fn seconds(&self) -> f64;
    /// How good the model is by now, for people.
    fn figures(&self) -> String;
}

/// How good a model is, for people.
pub(crate) trait Figures: Serialize {
    /// The figures in a few words.
    fn figures(&self) -> String;
}

impl<Quality: Figures> Observed for Epoch<Quality> {
    fn number(&self) -> u32 {
        self.epoch
    }

    fn seconds(&self) -> f64 {
        self.seconds
    }

    fn figures(&self) -> String {
        self.quality.figures()
    }
}

/// What there is to do.
pub(crate) struct Work {
    /// What an epoch goes through, and how many there are of them.
    pub(crate) units: (&'static str, usize),
    pub(crate) epochs: u32,
    /// Whether training may end before all epochs are done.
    pub(crate) may_stop_early: bool,
}

/// How far training is.
pub(crate) struct Progress<'a> {
    shown: Shown,
    work: &'a Work,
    seconds_before: f64,
}

/// A log has a line for each of the first epochs, and from then on whenever a twentieth of them or some seconds have gone by
/// since the last one, so that it does not grow with epochs that take no time.
const LINE_PART: u32 = 20;
const LINE_SECONDS: f64 = 10.0;

enum Shown {
    Bar(ProgressBar),
    /// The epoch of the last line, and its seconds.
    Lines(u32, f64),
    Nothing,
}

impl<'a> Progress<'a> {
    /// Begins to show how `work` goes on.
    pub(crate) fn new(quiet: bool, work: &'a Work) -> Self {
        let shown = if quiet {
            Shown::Nothing
        } else if stderr().is_terminal() {
            let bar = ProgressBar::with_draw_target(Some(u64::from(work.epochs)), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{spinner:.cyan} epoch {pos:>3}/{len} [{bar:24.cyan/dim}] {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━━╌"));
            bar.enable_steady_tick(Duration::from_millis(100));
            Shown::Bar(bar)
        } else {
            Shown::Lines(0, 0.0)
        };
        Self { shown, work, seconds_before: 0.0 }
    }

    /// Shows an epoch that has ended.
    pub(crate) fn epoch(&mut self, epoch: &impl Observed) {
        let text = self.text(epoch);
        let (number, seconds) = (epoch.number(), epoch.seconds());
        self.seconds_before = seconds;
        match &mut self.shown {
            Shown::Bar(bar) => {
                bar.set_position(u64::from(number));
                bar.set_message(text);
            }
            Shown::Lines(said, then) => {
                let is_due = LINE_PART * number.abs_diff(*said) >= number;
                if is_due || seconds - *then >= LINE_SECONDS || number == self.work.epochs {
                    say(&format!("epoch {number}: {text}"));
                    (*said, *then) = (number, seconds);
                }
            }
            Shown::Nothing => {}
        }
    }

    /// Tells a fact, if there is one, among the epochs.
    pub(crate) fn tell(&self, fact: Option<String>) {
        match (&self.shown, fact) {
            (Shown::Bar(bar), Some(fact)) => bar.println(fact),
            (Shown::Lines(..), Some(fact)) => say(&fact),
            _ => {}
        }
    }

    /// Leaves the terminal as it was.
    pub(crate) fn end(self) {
        if let Shown::Bar(bar) = self.shown {
            bar.finish_and_clear();
        }
    }

    fn text(&self, epoch: &impl Observed) -> String {
        let mut text = epoch.figures();
        let mut add = |part: std::fmt::Arguments<'_>| text.write_fmt(part).expect("a string takes any text");
        let Work { units: (unit, count), epochs, may_stop_early } = *self.work;
        let seconds = epoch.seconds() - self.seconds_before;
        if seconds > 0.0 {
            let rate = count as f64 / seconds;
            let (rate, scale) = if rate < 1e6 { (rate / 1e3, "k") } else { (rate / 1e6, "M") };
            add(format_args!(", {rate:.1} {scale} {unit}/s"));
        }
        let done = epoch.number();
        let left = f64::from(epochs - done.min(epochs)) * epoch.seconds() / f64::from(done.max(1));
        let most = if may_stop_early { "at most " } else { "" };
        add(format_args!(", {most}{} left", span(left)));
        text
    }
}

/// A span of time as people say it.
pub(crate) fn span(seconds: f64) -> String {
    match seconds {
        s if 0.0 < s && s < 1e-3 => format!("{:.1} µs", s * 1e6),
        s if 0.0 < s && s < 0.1 => format!("{:.1} ms", s * 1e3),
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn spans_are_told_in_units_that_do_not_round_them_to_nothing() {
        for (seconds, expected) in [
            (0.0, "0.0 s"),
            (4.2e-6, "4.2 µs"),
            (9.996e-4, "999.6 µs"),
            (0.0123, "12.3 ms"),
            (0.1, "0.1 s"),
            (12.0, "12 s"),
            (100.0, "2 min"),
            (7200.0, "2.0 h"),
        ] {
            assert_eq!(span(seconds), expected);
        }
    }
}
