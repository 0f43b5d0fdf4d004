//! The driver for the threads of one process. Without any staleness the shards sit beside the client in the process;
//! otherwise the client's cache is the master copy and there are no shards at all.

use crate::checkpoint::{Checkpoint, CheckpointError, Checkpoints, Keeper, Rests, Saver, Vault};
use crate::deployment::{Observer, Outcome, Program, WorkerSplit};
use crate::error::Error;
use crate::host::{Carrier, Core, Host};
use crate::worker::Worker;
use hemiola_core::checkpoint::{Owner, Planner};
use hemiola_core::coordinator::{Coordinator, ToCoordinator};
use hemiola_core::peer::{Broadcast, Peer};
use hemiola_core::sabotage::Sabotage;
use hemiola_core::shard::tasks::panic_message;
use hemiola_core::task::service::{Service, Tenant};
use hemiola_core::{Client, ClientId, Clock, Embedded, Job, Shard, ShardId, TableSchema, WorkerId};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::Duration;

pub(crate) fn run(
    (workers, timeout): (u32, Duration),
    tables: &[TableSchema],
    tenants: &[Tenant],
    checkpoints: Option<&Checkpoints>,
    program: &Program<'_>,
    observer: &mut Observer<'_>,
) -> Result<Outcome, Error> {
    let workers = workers + tenants.len() as u32;
    let job = Job { tables: tables.to_vec(), workers_per_client: vec![workers], shards: 1, budget: None };
    job.validate()?;
    let mut core = if tenants.is_empty() && Embedded::suits(&job) {
        Core::Embedded(Embedded::new(&job))
    } else {
        let shards = (0..job.shards).map(|shard| Shard::new(ShardId(shard), &job, Sabotage::None)).collect();
        Core::Cached { client: Client::new(ClientId(0), &job, Sabotage::None), shards }
    };
    if let (Core::Cached { client, shards }, false) = (&mut core, tenants.is_empty()) {
        let service = Arc::new(Service::new(tenants, &job));
        client.serve(&service);
        shards.iter_mut().for_each(|shard| shard.serve(&service));
    }
    let coordinator = Some(Coordinator::new(&job));
    let outcome;
    let host;
    if let Some(checkpoints) = checkpoints {
        let (mut publisher, resumed) = checkpoints.prepare(&job)?;
        if let Some(checkpoint) = &resumed {
            checkpoint.restore(|part| core.restore(part))?;
            core.resume(checkpoint.clock());
        }
        let clock = resumed.as_ref().map_or(Clock(0), Checkpoint::clock);
        let (saver, tasks) = Saver::new(publisher.directory.clone());
        let vault = Vault::new(checkpoints.every, Keeper::Files(saver), states(resumed.as_ref(), 0..workers)?);
        host = Arc::new(Host::new(core, coordinator, Carrier::Threads, timeout, Some(vault)));
        host.plan(Planner::new(&job, checkpoints.every, clock));
        outcome = std::thread::scope(|scope| {
            let host = &host;
            scope.spawn(move || {
                for task in tasks {
                    let part = |rests: &mut Rests| host.checkpoint_part(rests);
                    let saved = task.run(&publisher.directory, Owner::Shard(ShardId(0)), part);
                    if matches!(saved, ToCoordinator::Saved { outcome: Err(_), owner: Owner::Shard(_), .. }) {
                        host.end_checkpoint();
                    }
                    if let Some(whole) = host.tell_coordinator(saved) {
                        publisher.conclude(&whole);
                    }
                }
                host.open_checkpoint().into_iter().for_each(|clock| publisher.directory.discard(clock));
            });
            let outcome = run_workers(host, 0..workers, workers, program, observer);
            host.vault.iter().for_each(Vault::close);
            outcome
        });
    } else {
        host = Arc::new(Host::new(core, coordinator, Carrier::Threads, timeout, None));
        outcome = run_workers(&host, 0..workers, workers, program, observer);
    }
    let (results, splits) = outcome?;
    let (histogram, savings) = host.deliver(|state| (state.core.histogram(), state.core.savings()));
    Ok(Outcome { results, histogram, splits, seconds: host.seconds(), savings })
}

/// Runs a program on the peers of a job, each with a replica of its own.
pub(crate) fn run_peers(
    timeout: Duration,
    job: &Job,
    broadcast: &Broadcast,
    program: &Program<'_>,
    observer: &mut Observer<'_>,
) -> Result<Outcome, Error> {
    let workers = job.workers();
    let peers = (0..workers).map(|peer| Peer::new(WorkerId(peer), broadcast, Sabotage::None)).collect();
    let coordinator = Some(Coordinator::new(job));
    let host = Arc::new(Host::new(Core::Peers(peers), coordinator, Carrier::Threads, timeout, None));
    let (results, splits) = run_workers(&host, 0..workers, workers, program, observer)?;
    let histogram = host.deliver(|state| state.core.histogram());
    Ok(Outcome { results, histogram, splits, seconds: host.seconds(), savings: Vec::new() })
}

/// What workers go on from.
pub(crate) fn states(
    checkpoint: Option<&Checkpoint>,
    workers: std::ops::Range<u32>,
) -> Result<BTreeMap<WorkerId, (u32, Vec<u8>)>, CheckpointError> {
    let Some(checkpoint) = checkpoint else { return Ok(BTreeMap::new()) };
    workers.map(WorkerId).map(|worker| Ok((worker, checkpoint.worker(worker)?))).collect()
}

/// Runs the workers of this process, each on a thread of its own, and shows the observer what they report.
pub(crate) fn run_workers(
    host: &Arc<Host>,
    ids: std::ops::Range<u32>,
    workers: u32,
    program: &Program<'_>,
    observer: &mut Observer<'_>,
) -> Result<(Vec<Vec<u8>>, Vec<WorkerSplit>), Error> {
    let (ended, ends) = mpsc::channel();
    let mut outcomes: Vec<Option<(Vec<u8>, WorkerSplit)>> = ids.clone().map(|_| None).collect();
    let mut failure: Option<Error> = None;
    std::thread::scope(|scope| {
        for id in ids.clone() {
            let ended = ended.clone();
            scope.spawn(move || {
                let outcome = run_worker(host, WorkerId(id), workers, program);
                if let Err(error) = &outcome {
                    host.stop(&error.to_string());
                }
                host.retire();
                ended.send((id, outcome)).expect("the receiver outlives the workers");
            });
        }
        let mut left = ids.len();
        while left > 0 {
            // The workers announce their ends; reports are looked after in between.
            match ends.recv_timeout(Duration::from_millis(20)) {
                Ok((id, Ok(outcome))) => {
                    outcomes[(id - ids.start) as usize] = Some(outcome);
                    left -= 1;
                }
                Ok((_, Err(error))) => {
                    // The others were stopped by the first failure, and would only repeat it.
                    failure.get_or_insert(error);
                    left -= 1;
                }
                Err(_) => {}
            }
            host.take_observations().iter().for_each(&mut *observer);
        }
    });
    match failure {
        Some(error) => Err(error),
        None => Ok(outcomes.into_iter().flatten().unzip()),
    }
}

/// Runs one worker on the calling thread.
pub(crate) fn run_worker(
    host: &Arc<Host>,
    id: WorkerId,
    workers: u32,
    program: &Program<'_>,
) -> Result<(Vec<u8>, WorkerSplit), Error> {
    let mut worker = Worker::new(id, workers, Arc::clone(host));
    match catch_unwind(AssertUnwindSafe(|| program(&mut worker))) {
        Ok(Ok(result)) => Ok((result, worker.split())),
        Ok(Err(error)) => Err(error),
        Err(panic) => Err(Error::Panicked { worker: id, message: panic_message(panic.as_ref()) }),
    }
}
