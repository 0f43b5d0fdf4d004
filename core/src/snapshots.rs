//! What a shard remembers of the versions of a table's rows, and until when.
//!
//! A snapshot is held by every row of every message that carried its version, and by every update of that version that
//! waits to be applied; it is freed with its last holder. A client says `Seen { through }` when every update that it
//! sends from then on is of rows as they were after its first `through` messages of the table, or later. The shard
//! then drops what those messages hold, but for the last of them that carried a row.
//!
//! Why no update comes whose snapshot is gone: an update is tagged with the version that its worker read in the same
//! clock. A client whose slowest worker ends clock `k − 1` sends all updates of the clocks before `k`, and then `Seen`
//! with the number of messages that it had taken when the first of its workers reached clock `k`. Every later update is
//! of clock `k` or later, so its read was made after that moment, and found what the last message with the row before
//! the read had brought: either the last one of those `through` that carried the row, or a later one. Both
//! still hold their versions. Messages of a client arrive in order, so no update that was sent before `Seen` comes
//! after it.
//!
//! How many there can be: of each row a client holds the version that it has seen last, and one for every message with
//! the row that it has not yet said to have seen. Under staleness `s` a row is asked for or pushed once a clock, and a
//! worker that reaches clock `k` has been sent everything up to clock `k − 1 − s`. So a client holds at most `s + 3`
//! versions of a row, all clients together no more than `clients · (s + 3)`, and updates that wait to be applied
//! hold none that their client did not hold in the last `s + 1` clocks. Without a bound (Async) the messages between
//! shard and client take the place of `s`. Only what is sent beyond that, early, is left to
//! [`Procedure::may_send`](crate::procedure::Procedure::may_send).

use crate::column::Column;
use crate::ids::ClientId;
use crate::slab::Shape;
use std::collections::VecDeque;

#[derive(Debug)]
pub(crate) struct Snapshots {
    width: usize,
    /// The numbers of all slots, free ones included.
    numbers: Vec<f32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    rows: Column<RowVersion>,
    clients: Vec<Held>,
}

/// One snapshot. Links to slots are stored plus one, so that zero means none.
#[derive(Debug)]
struct Slot {
    row: u64,
    version: u32,
    holders: u32,
    /// The snapshot of the row before this one.
    older: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct RowVersion {
    version: u32,
    /// Whether the row was updated since it was last sent.
    updated: bool,
    newest: u32,
}

/// What one client holds.
#[derive(Debug)]
struct Held {
    /// The slots of the messages that it has not said to have seen, with their numbers.
    unseen: VecDeque<(u64, Vec<u32>)>,
    /// Of every row, the slot of the last message that it has seen.
    seen: Column<u32>,
}

impl Snapshots {
    pub(crate) fn new(shape: Shape, width: usize, clients: usize) -> Self {
        let held = || Held { unseen: VecDeque::new(), seen: Column::new(shape) };
        Self {
            width,
            numbers: Vec::new(),
            slots: Vec::new(),
            free: Vec::new(),
            rows: Column::new(shape),
            clients: (0..clients).map(|_| held()).collect(),
        }
    }

    /// How many are kept.
    pub(crate) fn kept(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn numbers(&self, slot: u32) -> &[f32] {
        &self.numbers[slot as usize * self.width..][..self.width]
    }

    /// The version of a row that was sent last.
    pub(crate) fn newest(&self, row: u64) -> u32 {
        self.rows.get(row).version
    }

    /// Takes note that a row has been updated.
    pub(crate) fn updated(&mut self, row: u64) {
        self.rows.get_mut(row).updated = true;
    }

    /// The versions of rows that are sent to a client in message `number` of the table; `take` writes the snapshot of
    /// a row where there is none of its version.
    pub(crate) fn send(
        &mut self,
        client: ClientId,
        number: u64,
        rows: &[u64],
        mut take: impl FnMut(u64, &mut [f32]),
    ) -> Vec<u32> {
        let mut versions = Vec::with_capacity(rows.len());
        let mut slots = Vec::with_capacity(rows.len());
        for &row in rows {
            let at = self.rows.get_mut(row);
            if std::mem::take(&mut at.updated) {
                at.version = at.version.wrapping_add(1);
            }
            let RowVersion { version, newest, .. } = *at;
            let slot = match newest.checked_sub(1) {
                Some(slot) if self.slots[slot as usize].version == version => slot,
                _ => {
                    let slot = self.take_slot(Slot { row, version, holders: 0, older: newest });
                    self.rows.get_mut(row).newest = slot + 1;
                    take(row, &mut self.numbers[slot as usize * self.width..][..self.width]);
                    slot
                }
            };
            self.slots[slot as usize].holders += 1;
            versions.push(version);
            slots.push(slot);
        }
        self.clients[client.index()].unseen.push_back((number, slots));
        versions
    }

    fn take_slot(&mut self, slot: Slot) -> u32 {
        if let Some(free) = self.free.pop() {
            self.slots[free as usize] = slot;
            return free;
        }
        self.slots.push(slot);
        self.numbers.resize(self.slots.len() * self.width, 0.0);
        self.slots.len() as u32 - 1
    }

    /// A client sends no more updates of versions before those of its first `through` messages.
    pub(crate) fn seen(&mut self, client: ClientId, through: u64) {
        while self.clients[client.index()].unseen.front().is_some_and(|(number, _)| *number <= through) {
            let (_, slots) = self.clients[client.index()].unseen.pop_front().expect("just looked at");
            for slot in slots {
                let row = self.slots[slot as usize].row;
                let before = std::mem::replace(self.clients[client.index()].seen.get_mut(row), slot + 1);
                if let Some(before) = before.checked_sub(1) {
                    self.release(before);
                }
            }
        }
    }

    /// Holds the snapshots of an update's rows until it has been applied: their slots.
    ///
    /// # Errors
    /// The first row whose version has none.
    pub(crate) fn hold(&mut self, rows: &[u64], versions: &[u32]) -> Result<Vec<u32>, (u64, u32)> {
        let find = |(&row, &version): (&u64, &u32)| self.find(row, version).ok_or((row, version));
        let slots: Vec<u32> = rows.iter().zip(versions).map(find).collect::<Result<_, _>>()?;
        slots.iter().for_each(|&slot| self.slots[slot as usize].holders += 1);
        Ok(slots)
    }

    fn find(&self, row: u64, version: u32) -> Option<u32> {
        let mut link = self.rows.get(row).newest;
        while let Some(slot) = link.checked_sub(1) {
            if self.slots[slot as usize].version == version {
                return Some(slot);
            }
            link = self.slots[slot as usize].older;
        }
        None
    }

    /// Lets go of a snapshot once.
    pub(crate) fn release(&mut self, slot: u32) {
        let Slot { row, holders, older, .. } = &mut self.slots[slot as usize];
        *holders -= 1;
        if *holders > 0 {
            return;
        }
        let (row, older) = (*row, *older);
        self.free.push(slot);
        let newest = self.rows.get_mut(row);
        if newest.newest == slot + 1 {
            newest.newest = older;
            return;
        }
        let mut link = newest.newest;
        while let Some(newer) = link.checked_sub(1) {
            link = self.slots[newer as usize].older;
            if link == slot + 1 {
                self.slots[newer as usize].older = older;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::TableSchema;

    const A: ClientId = ClientId(0);
    const B: ClientId = ClientId(1);

    fn snapshots() -> Snapshots {
        let shape = Shape::new(&TableSchema::dense("t", 10, 1)).expect("a flat table");
        Snapshots::new(shape, 1, 2)
    }

    fn send(snapshots: &mut Snapshots, client: ClientId, number: u64, rows: &[u64], content: f32) -> Vec<u32> {
        snapshots.send(client, number, rows, |_, snapshot| snapshot[0] = content)
    }

    fn content(snapshots: &Snapshots, row: u64, version: u32) -> Option<f32> {
        snapshots.find(row, version).map(|slot| snapshots.numbers(slot)[0])
    }

    #[test]
    fn a_version_is_a_state_of_a_row_that_was_sent() {
        let mut table = snapshots();
        assert_eq!(send(&mut table, A, 1, &[3, 4], 0.5), [0, 0]);
        assert_eq!(send(&mut table, B, 1, &[3], 9.0), [0], "the same state for another client");
        assert_eq!((table.kept(), content(&table, 3, 0)), (2, Some(0.5)));
        table.updated(3);
        table.updated(3);
        assert_eq!(send(&mut table, B, 2, &[3, 4], 1.5), [1, 0]);
        assert_eq!((content(&table, 3, 0), content(&table, 3, 1)), (Some(0.5), Some(1.5)));
    }

    #[test]
    fn a_snapshot_goes_with_the_last_client_that_may_name_it() {
        let mut table = snapshots();
        for (number, content) in [(1, 0.0), (2, 1.0), (3, 2.0)] {
            send(&mut table, A, number, &[3], content);
            send(&mut table, B, number, &[3], content);
            table.updated(3);
        }
        assert_eq!(table.kept(), 3);
        table.seen(A, 3);
        assert_eq!(table.kept(), 3, "the other client has said nothing");
        table.seen(B, 2);
        assert_eq!(table.kept(), 2, "version 1 may still be named, version 0 not");
        assert_eq!(content(&table, 3, 0), None);
        table.seen(B, 9);
        assert_eq!((table.kept(), content(&table, 3, 2)), (1, Some(2.0)), "the newest stays");
        send(&mut table, A, 4, &[3], 3.0);
        table.seen(A, 4);
        table.seen(B, 9);
        assert_eq!(table.kept(), 2, "the other client was not sent the new version");
    }

    #[test]
    fn an_update_that_waits_holds_its_snapshot() {
        let mut table = snapshots();
        send(&mut table, A, 1, &[3], 0.5);
        let slots = table.hold(&[3], &[0]).expect("it was sent");
        assert_eq!(table.hold(&[3, 3], &[0, 7]), Err((3, 7)));
        table.updated(3);
        send(&mut table, A, 2, &[3], 1.5);
        table.seen(A, 2);
        assert_eq!(table.numbers(slots[0]), [0.5]);
        table.release(slots[0]);
        assert_eq!((table.kept(), content(&table, 3, 0)), (1, None));
        assert_eq!(table.hold(&[3], &[0]), Err((3, 0)));
    }
}
