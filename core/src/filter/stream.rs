//! The encoding filters of all tables, applied to the messages of one direction of one connection.
//!
//! Of a body that some filter has changed the header says which filters those were, how long it is now, and how long its
//! row ids. A body that no filter has changed travels as it would without any.

use super::ledger::Ledger;
use super::{Arrived, Body, Decoder, Direction, Encoder, Encoding, Filter, FilterError, Reason};
use crate::array::{Array, Frame};
use crate::codec::{BodyCheck, CodecError, Encoded, Header, Message, Plain};
use crate::coordinator::Process;
use crate::schema::Job;
use crate::task::TaskId;
use std::borrow::Cow;
use std::sync::Arc;
use thiserror::Error;

/// Longer bodies travel without filters, so that what filters make of a body has a length of 32 bits.
const BODY_BYTES_MAX: u64 = 2 << 30;
/// A filter may make a body longer by so much: signatures and lengths.
const SLACK_BYTES: usize = 64;

/// The encoding filters of all tables in one direction, from which those of a connection are made.
#[derive(Debug)]
pub struct Encodings {
    tables: Vec<Chain>,
    direction: Direction,
    node: Process,
    ledger: Ledger,
}

/// The encoding filters of a table, with the place of each in the whole chain.
#[derive(Debug)]
struct Chain {
    table: String,
    filters: Vec<(usize, Arc<dyn Encoding>)>,
}

/// Encodes what one end of a connection sends.
#[derive(Debug)]
pub struct Outgoing {
    shared: Arc<Encodings>,
    encoders: Vec<Vec<Box<dyn Encoder>>>,
}

/// Decodes what one end of a connection receives.
#[derive(Debug)]
pub struct Incoming {
    shared: Arc<Encodings>,
    decoders: Vec<Vec<Box<dyn Decoder>>>,
}

/// A message that cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the sentences of the sources say it")]
pub enum IncomingError {
    #[error(transparent)]
    Codec(#[from] CodecError),
    #[error(transparent)]
    Filter(#[from] FilterError),
}

impl Encodings {
    /// Those of a job; `None` if no table has any in this direction. `node` is the process that they work in, and
    /// `ledger` counts what they save: of one direction, one end of each connection counts.
    #[must_use]
    pub fn new(job: &Job, direction: Direction, node: Process, ledger: &Ledger) -> Option<Arc<Self>> {
        let encoding = |(place, filter): (usize, &Filter)| match filter {
            Filter::Encoding(encoding) => Some((place, Arc::clone(encoding))),
            Filter::Selection(_) => None,
        };
        let chain = |schema: &crate::TableSchema| Chain {
            table: schema.name.clone(),
            filters: schema.filters.chain(direction).iter().enumerate().filter_map(encoding).collect(),
        };
        let tables: Vec<Chain> = job.tables.iter().map(chain).collect();
        let any = tables.iter().any(|chain| !chain.filters.is_empty());
        any.then(|| Arc::new(Self { tables, direction, node, ledger: ledger.clone() }))
    }

    /// The sender's end of a new connection.
    #[must_use]
    pub fn outgoing(self: &Arc<Self>) -> Outgoing {
        let encoders = |chain: &Chain| chain.filters.iter().map(|(_, filter)| filter.encoder()).collect();
        Outgoing { encoders: self.tables.iter().map(encoders).collect(), shared: Arc::clone(self) }
    }

    /// The receiver's end of a new connection.
    #[must_use]
    pub fn incoming(self: &Arc<Self>) -> Incoming {
        let decoders = |chain: &Chain| chain.filters.iter().map(|(_, filter)| filter.decoder()).collect();
        Incoming { decoders: self.tables.iter().map(decoders).collect(), shared: Arc::clone(self) }
    }

    fn failed(&self, table: usize, filter: usize, reason: &Reason) -> FilterError {
        let chain = &self.tables[table];
        FilterError {
            filter: chain.filters[filter].1.name().to_owned(),
            table: chain.table.clone(),
            node: self.node.to_string(),
            reason: reason.to_string(),
        }
    }

    fn count(&self, table: usize, filter: usize, bytes_in: usize, bytes_out: usize) {
        let place = self.tables[table].filters[filter].0;
        self.ledger.count((table, self.direction, place), bytes_in as u64, bytes_out as u64);
    }
}

impl FilterError {
    /// The same, about a message that carries a task.
    fn about(mut self, task: Option<TaskId>) -> Self {
        if let Some(task) = task {
            self.node = format!("{} on {task}", self.node);
        }
        self
    }
}

impl Outgoing {
    /// The message as it will be written.
    ///
    /// # Errors
    /// If a filter fails.
    pub fn encode<'a>(&mut self, plain: Plain<'a>) -> Result<Encoded<'a>, FilterError> {
        let Some(table) = plain.filtered_table().filter(|&table| table < self.encoders.len()) else {
            return Ok(plain.seal());
        };
        if self.encoders[table].is_empty() || plain.body_bytes() > BODY_BYTES_MAX {
            return Ok(plain.seal());
        }
        let [keys, values @ ..] = plain.sections();
        let mut body = Body { keys: Cow::Borrowed(keys), values: values.map(Cow::Borrowed) };
        let mut changed_by = 0u32;
        for (i, encoder) in self.encoders[table].iter_mut().enumerate() {
            let before = body.len();
            if encoder.encode(&mut body).map_err(|reason| self.shared.failed(table, i, &reason).about(plain.task()))? {
                changed_by |= 1 << i;
            }
            self.shared.count(table, i, before, body.len());
        }
        if changed_by == 0 {
            return Ok(plain.seal());
        }
        if u32::try_from(body.len()).is_err() {
            let longest = changed_by.ilog2() as usize;
            return Err(self.shared.failed(table, longest, &"it made a message longer than four gigabytes".into()));
        }
        let [first, second, third] = body.values;
        Ok(plain.seal_filtered(changed_by, [body.keys, first, second, third]))
    }
}

impl Incoming {
    /// The message with this header and the body in `frame`, all of which must have been through `check`.
    ///
    /// # Errors
    /// If it is damaged, or no filters of the table have made it.
    pub fn decode(&mut self, header: &Header, frame: &Arc<Frame>, check: BodyCheck) -> Result<Message, IncomingError> {
        if !header.is_filtered() {
            if let Some(table) = header.filtered_table().filter(|&table| table < self.decoders.len()) {
                // It was offered to every filter, and left alone.
                let bytes = header.body_bytes() as usize;
                (0..self.decoders[table].len()).for_each(|i| self.shared.count(table, i, bytes, bytes));
            }
            return Ok(header.decode(frame, check)?);
        }
        header.verify(check)?;
        let table = header.filtered_table().filter(|&table| table < self.decoders.len()).ok_or(CodecError::Filtered)?;
        let bytes = Array::<u8>::in_frame(frame, 0, header.wire_bytes() as usize).ok_or(CodecError::Counts)?;
        let ((changed_by, keys), decoders) = (header.changes(), &mut self.decoders[table]);
        if keys > bytes.len() || u64::from(changed_by) >> decoders.len() != 0 {
            return Err(CodecError::Filtered.into());
        }
        let mut body = Arrived { keys: bytes.part(0..keys), values: bytes.part(keys..bytes.len()) };
        let bytes_max = header.body_bytes() as usize + SLACK_BYTES;
        for (i, decoder) in decoders.iter_mut().enumerate().rev() {
            let after = body.keys.len() + body.values.len();
            if changed_by & 1 << i != 0 {
                let decoded = decoder.decode(&mut body, bytes_max);
                decoded.map_err(|reason| self.shared.failed(table, i, &reason))?;
            }
            self.shared.count(table, i, body.keys.len() + body.values.len(), after);
        }
        Ok(header.assemble(&body.keys, &body.values)?)
    }
}

impl Body<'_> {
    fn len(&self) -> usize {
        self.keys.len() + self.values.iter().map(|piece| piece.len()).sum::<usize>()
    }
}
