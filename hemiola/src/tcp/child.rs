//! A process that a launcher started: its role, from the environment, and its connection to the launcher.

use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::tcp::control::ControlSender;
use crate::tcp::handshake::{Hello, Reader, Secret, introduce, receive_control, send_control};
use crate::tcp::{Config, TcpError, say, spawn};
use hemiola_core::coordinator::{FromCoordinator, Process};
use hemiola_core::{ClientId, ShardId};
use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::net::TcpStream;
use std::path::Path;

const ROLE: &str = "HEMIOLA_ROLE";
const COORDINATOR: &str = "HEMIOLA_COORDINATOR";
const SECRET: &str = "HEMIOLA_SECRET";
const RESUME: &str = "HEMIOLA_RESUME";

/// What this process knows from its launcher.
pub(crate) struct Child {
    pub(crate) process: Process,
    pub(crate) coordinator: String,
    pub(crate) secret: Secret,
}

/// The way back from the launcher.
pub(crate) struct ControlReceiver {
    process: Process,
    reader: Reader,
}

/// What the launcher of a job made this process, if one started it: then the process ends within its first call of
/// [`run`](crate::run()) over tcp, and has nothing to show to anyone before.
#[must_use]
pub fn role() -> Option<Process> {
    parse_role(&std::env::var(ROLE).ok()?)
}

fn parse_role(text: &str) -> Option<Process> {
    let (role, number) = text.split_once(':')?;
    let number = number.parse().ok()?;
    match role {
        "server" => Some(Process::Server(ShardId(number))),
        "worker" => Some(Process::Worker(ClientId(number))),
        _ => None,
    }
}

/// The variable by which a process of the job is told what the launcher found to go on from.
pub(crate) fn resume_variable(checkpoint: &Checkpoint) -> (&'static str, OsString) {
    (RESUME, checkpoint.path.clone().into_os_string())
}

/// The checkpoint that this process of a job goes on from, if it does.
pub(crate) fn resumed() -> Result<Option<Checkpoint>, CheckpointError> {
    std::env::var_os(RESUME).map(|path| Checkpoint::open(Path::new(&path))).transpose()
}

/// The environment that makes a process a child of this launcher.
pub(crate) fn environment(process: Process, coordinator: &str, secret: &Secret) -> [(&'static str, String); 3] {
    let role = match process {
        Process::Server(shard) => format!("server:{}", shard.0),
        Process::Worker(client) => format!("worker:{}", client.0),
    };
    [(ROLE, role), (COORDINATOR, coordinator.to_owned()), (SECRET, secret.to_text())]
}

impl Child {
    /// The role of this process, if it was started by a launcher.
    pub(crate) fn from_environment() -> Result<Option<Self>, TcpError> {
        let Ok(role) = std::env::var(ROLE) else { return Ok(None) };
        let variable = |variable: &'static str| {
            let missing = |_| TcpError::Environment { variable, value: String::new() };
            std::env::var(variable).map_err(missing)
        };
        let (coordinator, secret) = (variable(COORDINATOR)?, variable(SECRET)?);
        let process = parse_role(&role).ok_or(TcpError::Environment { variable: ROLE, value: role })?;
        let secret =
            Secret::from_text(&secret).ok_or(TcpError::Environment { variable: SECRET, value: "…".to_owned() })?;
        Ok(Some(Self { process, coordinator, secret }))
    }

    pub(crate) fn hello(&self, job: u64, address: Option<String>, received: u64) -> Hello {
        Hello { secret: self.secret.clone(), job, process: self.process, address, received }
    }

    /// Joins the job with this fingerprint.
    pub(crate) fn join(
        &self,
        job: u64,
        address: Option<String>,
        config: &Config,
    ) -> Result<(ControlSender, ControlReceiver), TcpError> {
        let stream = TcpStream::connect(&self.coordinator)?;
        let (_, reader) = introduce(&stream, &self.hello(job, address, 0), config.message_bytes_max)?;
        let sender = ControlSender::default();
        let (writer, mut output) = (sender.clone(), BufWriter::new(sender.paced(stream)));
        let mut send = move |message: &_| send_control(&mut output, message).is_ok() && output.flush().is_ok();
        let write = move || writer.write_forever(&mut send);
        spawn("the connection to the launcher", write)?;
        Ok((sender, ControlReceiver { process: self.process, reader }))
    }
}

impl ControlReceiver {
    pub(crate) fn receive(&mut self) -> Result<FromCoordinator, TcpError> {
        receive_control(&mut self.reader)
    }

    /// Hears what the launcher says until it says to stop, or is gone; then ends the process.
    pub(crate) fn listen(mut self, mut hear: impl FnMut(FromCoordinator)) -> ! {
        loop {
            match self.receive() {
                Ok(FromCoordinator::Stop) => std::process::exit(0),
                Ok(message) => hear(message),
                Err(error) => leave(self.process, &format!("the launcher is gone ({error})")),
            }
        }
    }
}

/// Ends the process with a sentence.
pub(crate) fn leave(process: Process, why: &str) -> ! {
    say(&format!("{process}: {why}"));
    std::process::exit(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_what_the_launcher_wrote() {
        for process in [Process::Server(ShardId(0)), Process::Worker(ClientId(12))] {
            let [(_, role), ..] = environment(process, "here:1", &Secret::random());
            assert_eq!(parse_role(&role), Some(process));
        }
        assert_eq!(parse_role("server"), None);
        assert_eq!(parse_role("boss:1"), None);
        assert_eq!(parse_role("worker:x"), None);
    }
}
