//! What the user is told when a command fails, in one line, and the exit code: 1 for a failure, 2 for wrong usage.

use crate::progress::say;
use clap::error::ErrorKind;
use std::io;
use std::process::ExitCode;

/// Options that are each right and together wrong, in one sentence.
pub(crate) fn usage(sentence: impl std::fmt::Display) -> anyhow::Error {
    clap::Error::raw(ErrorKind::ArgumentConflict, sentence).into()
}

/// Says what went wrong and gives the exit code for it. Whoever closes our standard output has read enough.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    if error.chain().any(is_broken_pipe) {
        return ExitCode::SUCCESS;
    }
    let Some(usage) = error.downcast_ref::<clap::Error>() else {
        say(&format!("hemiola: {error}"));
        return ExitCode::FAILURE;
    };
    if !usage.use_stderr() {
        return match usage.print() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    if usage.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        say(usage.render().to_string().trim_end());
    } else {
        say(&format!("hemiola: {}", one_line(&usage.render().to_string())));
    }
    ExitCode::from(2)
}

fn is_broken_pipe(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The parser's message without its heading and its blank lines, and with a hint instead of its summary of the usage.
fn one_line(message: &str) -> String {
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let ends = |line: &&str| !line.starts_with("Usage:") && !line.starts_with("For more information");
    // Nobody means an option that there is not as the name of a file.
    let helps = |line: &&str| !line.is_empty() && !line.starts_with("tip: to pass '--");
    let mut sentence = String::new();
    for line in message.lines().take_while(ends).map(str::trim).filter(helps) {
        if !sentence.is_empty() {
            sentence.push_str(if line.starts_with("tip:") { "; " } else { " " });
        }
        sentence.push_str(line);
    }
    if let Some(usage) = message.lines().find_map(|line| line.strip_prefix("Usage: ")) {
        let in_name = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
        let command: Vec<&str> = usage.split(' ').take_while(|word| word.chars().all(in_name)).collect();
        sentence.push_str(&format!("; see '{} --help'", command.join(" ")));
    }
    sentence
}
