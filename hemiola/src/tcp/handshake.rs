//! How a connection begins: the caller says who it is and proves that it knows the job's secret; a stranger gets no
//! answer.

use crate::patience::{Attempt, Patience};
use crate::tcp::TcpError;
use crate::tcp::connection::{FrameReader, WireError, write_frames};
use hemiola_core::codec::Message;
use hemiola_core::coordinator::Process;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::io::{self, Read};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a caller may take to introduce itself, and a peer to answer.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// So many connections may be introducing themselves at once beside those that are expected.
const STRANGERS_MAX: usize = 64;
/// No introduction is longer than this.
const HANDSHAKE_BYTES_MAX: u64 = 1024;

/// How many connections are introducing themselves to somebody who listens.
pub(crate) struct Unintroduced {
    now: AtomicUsize,
    max: usize,
}

impl Unintroduced {
    /// Nobody yet; so many of the job will call, perhaps all at once.
    pub(crate) fn new(expected: usize) -> Self {
        Self { now: AtomicUsize::new(0), max: expected + STRANGERS_MAX }
    }

    /// Whether one more may; otherwise it is to be dropped.
    pub(crate) fn admit(&self) -> bool {
        let is_admitted = self.now.fetch_add(1, Ordering::Relaxed) < self.max;
        if !is_admitted {
            self.end();
        }
        is_admitted
    }

    /// One is introduced, or refused.
    pub(crate) fn end(&self) {
        self.now.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What every process of a job knows and nobody else.
#[derive(Clone, Serialize, Deserialize)]
pub struct Secret([u8; 32]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// A secret that nobody knows yet.
    #[must_use]
    pub fn random() -> Self {
        // A RandomState is keyed by the operating system's randomness, and its keyed hash does not give the key away.
        let state = RandomState::new();
        let mut bytes = [0; 32];
        for (i, part) in bytes.chunks_exact_mut(8).enumerate() {
            part.copy_from_slice(&state.hash_one(i).to_le_bytes());
        }
        Self(bytes)
    }

    pub(crate) fn to_text(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
        let bytes: Vec<u8> =
            digits?.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
        bytes.try_into().ok().map(Self)
    }

    /// Takes the same time wherever the first difference is.
    fn matches(&self, other: &Self) -> bool {
        let difference = self.0.iter().zip(&other.0).fold(0, |difference, (a, b)| difference | (a ^ b));
        std::hint::black_box(difference) == 0
    }
}

/// A number that tells jobs apart by everything that their processes must agree on, which is written out for it.
#[must_use]
pub fn fingerprint(job: &impl fmt::Debug) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{job:?}").hash(&mut hasher);
    hasher.finish()
}

/// What a caller says first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hello {
    /// The job's secret.
    pub secret: Secret,
    /// The job, as [`fingerprint`] tells them apart.
    pub job: u64,
    /// Who calls.
    pub process: Process,
    /// Where a server that joins listens.
    pub address: Option<String>,
    /// How many messages of this stream the caller has received on earlier connections.
    pub received: u64,
}

/// The answer to a [`Hello`] with the right secret.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Answer {
    Welcome { received: u64 },
    Refused { reason: String },
}

/// A stream whose reads all end by one deadline while one is set, and then wait with [`Patience`].
#[derive(Debug)]
pub struct DeadlineStream {
    stream: TcpStream,
    deadline: Option<Instant>,
    patience: Patience,
}

impl Read for DeadlineStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(deadline) = self.deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.stream.set_read_timeout(Some(left))?;
            return self.stream.read(buffer);
        }
        self.patience.wait(|attempt| {
            let flags = if attempt == Attempt::Look { RecvFlags::DONTWAIT } else { RecvFlags::empty() };
            match recv(&self.stream, &mut *buffer, flags) {
                Err(Errno::AGAIN | Errno::INTR) => None,
                received => Some(received.map(|(count, _)| count).map_err(io::Error::from)),
            }
        })
    }
}

/// The reading half of an introduced connection.
pub type Reader = FrameReader<DeadlineStream>;

/// Introduces this process; returns how many messages the other end has received, and the reading half.
///
/// # Errors
/// If the other end refuses, breaks the connection or does not answer.
pub fn introduce(stream: &TcpStream, hello: &Hello, message_bytes_max: u64) -> Result<(u64, Reader), TcpError> {
    let mut reader = begin(stream)?;
    send_control(&mut &*stream, hello)?;
    match receive_control::<Answer>(&mut reader)? {
        Answer::Welcome { received } => Ok((received, settle(reader, message_bytes_max)?)),
        Answer::Refused { reason } => Err(TcpError::Refused { reason }),
    }
}

/// Hears who calls. Only a caller that knows the secret gets any answer: [`welcome`], or [`refuse`] if its job is another.
pub(crate) fn hear(stream: &TcpStream, secret: &Secret, job: u64) -> Result<(Hello, Reader), TcpError> {
    let mut reader = begin(stream)?;
    let hello: Hello = receive_control(&mut reader)?;
    if !hello.secret.matches(secret) {
        let address =
            stream.peer_addr().map_or_else(|_| "an unknown address".to_owned(), |address| address.to_string());
        return Err(TcpError::Secret { address });
    }
    if hello.job != job {
        return Err(TcpError::Mismatch { process: hello.process });
    }
    Ok((hello, reader))
}

/// Tells a caller why it is not let in. It may be gone by then, and that is as well.
pub(crate) fn refuse(stream: &TcpStream, reason: &TcpError) {
    drop(send_control(&mut &*stream, &Answer::Refused { reason: reason.to_string() }));
}

/// Lets a caller in that [`hear`] found right.
pub(crate) fn welcome(
    stream: &TcpStream,
    reader: Reader,
    received: u64,
    message_bytes_max: u64,
) -> Result<Reader, TcpError> {
    send_control(&mut &*stream, &Answer::Welcome { received })?;
    settle(reader, message_bytes_max)
}

fn begin(stream: &TcpStream) -> Result<Reader, TcpError> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(HANDSHAKE_TIMEOUT))?;
    let deadline = Some(Instant::now() + HANDSHAKE_TIMEOUT);
    let input = DeadlineStream { stream: stream.try_clone()?, deadline, patience: Patience::default() };
    Ok(FrameReader::new(input, HANDSHAKE_BYTES_MAX))
}

fn settle(mut reader: Reader, message_bytes_max: u64) -> Result<Reader, TcpError> {
    reader.set_limit(message_bytes_max);
    let input = reader.get_mut();
    input.deadline = None;
    input.stream.set_read_timeout(None)?;
    input.stream.set_write_timeout(None)?;
    Ok(reader)
}

pub(crate) fn send_control(output: &mut impl io::Write, message: &impl Serialize) -> Result<u64, TcpError> {
    let bytes = postcard::to_allocvec(message).expect("plain data can be encoded");
    Ok(write_frames(output, &[Message::Control(bytes.into()).encode(0, 0)])?)
}

pub(crate) fn receive_control<T: DeserializeOwned>(reader: &mut Reader) -> Result<T, TcpError> {
    let timed_out = |kind| matches!(kind, io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock);
    match reader.read() {
        Ok((_, Message::Control(bytes))) => postcard::from_bytes(&bytes).map_err(|_| TcpError::Introduction),
        Ok(_) => Err(TcpError::Introduction),
        Err(WireError::Io(error)) if timed_out(error.kind()) => {
            Err(TcpError::Silent { seconds: HANDSHAKE_TIMEOUT.as_secs() })
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_a_job_may_call_at_once_but_not_any_number() {
        let unintroduced = Unintroduced::new(100);
        let admitted = (0..1000).filter(|_| unintroduced.admit()).count();
        assert_eq!(admitted, 100 + STRANGERS_MAX);
        unintroduced.end();
        assert!(unintroduced.admit() && !unintroduced.admit());
    }

    #[test]
    fn a_secret_survives_the_environment_and_differs_from_every_other() {
        let (secret, other) = (Secret::random(), Secret::random());
        let back = Secret::from_text(&secret.to_text()).expect("our own text");
        assert!(secret.matches(&back));
        assert!(!secret.matches(&other));
        assert!(Secret::from_text("abc").is_none() && Secret::from_text(&"z".repeat(64)).is_none());
    }
}
