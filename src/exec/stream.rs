//! Ordered, bounded, parallel prefetch: many sources in, one iterator out.
//!
//! Each *lane* is an iterator that runs on the pool until its queue is full, then parks. The
//! consumer drains the lanes in order, so the output order is that of the sources, independent of
//! the threads; memory is lanes in flight x queue length, and for items with a weight
//! ([`OrderedPrefetch::with_byte_budget`]) no more than the process's byte budget and one item per
//! lane.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::budget::BudgetGuard;
use super::parking_queue::ParkingQueue;
use super::{CancellationToken, IN_FLIGHT, parallelism, spawn};
use crate::error::{Error, Result};

/// The error of a stream that a forked child inherited from its parent.
pub(crate) const AFTER_FORK: &str =
    "the stream was opened before the process was forked; open one in the child";

/// Items of one lane.
pub type ItemSource<T> = Box<dyn Iterator<Item = Result<T>> + Send>;

struct PrefetchLane<T> {
    queue: ParkingQueue<(Result<T>, BudgetGuard), ItemSource<T>>,
    cancel: CancellationToken,
    capacity: usize,
    item_size: ItemSizer<T>,
}

/// The bytes of an item.
type ItemSizer<T> = Option<fn(&T) -> usize>;

impl<T: Send + 'static> PrefetchLane<T> {
    fn start(self: &Arc<Self>, mut source: ItemSource<T>) {
        let lane = Arc::clone(self);
        let queued = spawn(move || {
            while let Some(item) = lane.pull(&mut source) {
                let item_size = lane.item_size.zip(item.as_ref().ok());
                let bytes = item_size.map_or(0, |(weigh, item)| weigh(item));
                let held = BudgetGuard::new(bytes as u64);
                if item.is_err() {
                    return lane.queue.end(Some((item, held)));
                }
                let is_last = held.is_last();
                let is_full = |length| length >= lane.capacity || is_last;
                match lane.queue.push((item, held), source, is_full) {
                    Some(resumed) => source = resumed,
                    None => return,
                }
            }
            lane.queue.end(None);
        });
        if let Err(error) = queued {
            self.queue.end(Some((Err(error), BudgetGuard::new(0))));
        }
    }

    fn pull(&self, source: &mut ItemSource<T>) -> Option<Result<T>> {
        if self.cancel.is_cancelled() {
            return None;
        }
        catch_unwind(AssertUnwindSafe(|| source.next()))
            .unwrap_or_else(|panic| Some(Err(panic_error("a worker", &*panic))))
    }

    fn recv(self: &Arc<Self>) -> Option<Result<T>> {
        let ((item, _), parked) = self.queue.recv()?;
        if let Some(source) = parked {
            self.start(source);
        }
        Some(item)
    }
}

/// The message of a panic's payload.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "unknown".to_owned())
}

/// The error of a panic in `who`: its payload if that is an error, an exhausted resource, or else a
/// defect.
pub(crate) fn panic_error(who: &str, panic: &(dyn std::any::Any + Send)) -> Error {
    if let Some(error) = panic.downcast_ref::<Error>() {
        return error.clone();
    }
    let text = panic_text(panic);
    // Panics of libraries if the system refuses a thread; they do not return an error.
    let no_thread = ["failed to spawn thread", "can't spawn worker thread"]
        .iter()
        .any(|what| text.contains(what));
    if no_thread {
        return Error::no_thread(&text);
    }
    allocation(&text)
        .map(|bytes| Error::no_memory("an array", bytes))
        .or_else(|| Error::library_without_memory(&text))
        .unwrap_or_else(|| Error::internal(format!("{who} panicked: {text}")))
}

/// The size of the buffer that Arrow could not allocate, from the message of its panic.
fn allocation(text: &str) -> Option<u64> {
    let (_, layout) = text.split_once("failed to allocate memory for layout")?;
    let (_, size) = layout.split_once("size: ")?;
    size.split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

/// An iterator over the items of many sources, in the order of the sources. See
/// [`ordered_prefetch`].
pub struct OrderedPrefetch<T> {
    waiting: Box<dyn Iterator<Item = ItemSource<T>> + Send>,
    running: VecDeque<Arc<PrefetchLane<T>>>,
    window: usize,
    capacity: usize,
    item_size: ItemSizer<T>,
    cancel: CancellationToken,
    failed: bool,
    process: u32,
}

impl<T> OrderedPrefetch<T> {
    /// Also keeps queued items within the process's byte budget; `weigh` returns the bytes of an
    /// item.
    #[must_use]
    pub fn with_byte_budget(mut self, weigh: fn(&T) -> usize) -> Self {
        self.item_size = Some(weigh);
        self
    }
}

/// Pulls `sources` in parallel, `window` of them at once, each at most `capacity` items ahead; ends
/// at the first error.
///
/// Dropping the iterator cancels running work.
pub fn ordered_prefetch<T: Send + 'static>(
    sources: impl Iterator<Item = ItemSource<T>> + Send + 'static,
    window: usize,
    capacity: usize,
    cancel: &CancellationToken,
) -> OrderedPrefetch<T> {
    OrderedPrefetch {
        waiting: Box::new(sources),
        running: VecDeque::new(),
        window: window.max(1),
        capacity: capacity.max(1),
        item_size: None,
        cancel: cancel.child(),
        failed: false,
        process: std::process::id(),
    }
}

impl<T: Send + 'static> Iterator for OrderedPrefetch<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        if self.process != std::process::id() {
            // The threads that fill the lanes belong to the parent.
            self.failed = true;
            return Some(Err(Error::invalid(AFTER_FORK)));
        }
        loop {
            while self.running.len() < self.window {
                let Some(source) = self.waiting.next() else {
                    break;
                };
                let lane = Arc::new(PrefetchLane {
                    queue: ParkingQueue::new(),
                    cancel: self.cancel.clone(),
                    capacity: self.capacity,
                    item_size: self.item_size,
                });
                lane.start(source);
                self.running.push_back(lane);
            }
            let front = self.running.front()?;
            match front.recv() {
                Some(Ok(item)) => return Some(Ok(item)),
                Some(Err(error)) => {
                    self.failed = true;
                    self.cancel.cancel();
                    return Some(Err(error));
                }
                None if self.cancel.is_cancelled() => {
                    self.failed = true;
                    return Some(Err(Error::Cancelled));
                }
                None => {
                    self.running.pop_front();
                }
            }
        }
    }
}

impl<T> Drop for OrderedPrefetch<T> {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Applies `job` to every input on the pool; results in the order of the inputs, or the first
/// error.
///
/// # Errors
/// The first error of any job, in input order.
pub fn map_all<I, T>(
    inputs: impl IntoIterator<Item = I>,
    job: impl Fn(I) -> Result<T> + Send + Sync + 'static,
) -> Result<Vec<T>>
where
    I: Send + 'static,
    T: Send + 'static,
{
    let inputs: Vec<I> = inputs.into_iter().collect();
    if inputs.len() == 1 {
        return inputs.into_iter().map(job).collect();
    }
    let job = Arc::new(job);
    let sources = inputs.into_iter().map(move |input| {
        let job = Arc::clone(&job);
        Box::new(std::iter::once_with(move || job(input))) as ItemSource<T>
    });
    ordered_prefetch(
        sources,
        IN_FLIGHT.max(parallelism() * 4),
        1,
        &CancellationToken::default(),
    )
    .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn numbers(from: u32, to: u32) -> ItemSource<u32> {
        Box::new((from..to).map(Ok))
    }

    #[test]
    fn items_come_in_the_order_of_the_sources() {
        let all: Vec<u32> = ordered_prefetch(
            (0..40).map(|n| numbers(n * 10, n * 10 + 10)),
            7,
            2,
            &CancellationToken::default(),
        )
        .collect::<Result<_>>()
        .unwrap();
        assert_eq!(all, (0..400).collect::<Vec<_>>());
    }

    #[test]
    fn streams_that_wait_do_not_starve_each_other() {
        let mut idle: Vec<_> = (0..parallelism() * 4)
            .map(|_| {
                ordered_prefetch(
                    (0..8).map(|_| numbers(0, 1000)),
                    8,
                    1,
                    &CancellationToken::default(),
                )
            })
            .collect();
        for stream in &mut idle {
            assert_eq!(stream.next().unwrap().unwrap(), 0);
        }
        assert_eq!(
            ordered_prefetch(
                (0..8).map(|_| numbers(0, 1000)),
                8,
                1,
                &CancellationToken::default()
            )
            .count(),
            8000
        );
        assert_eq!(idle.pop().unwrap().count(), 7999);
    }

    #[test]
    fn a_spent_budget_leaves_an_item_a_lane() {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let counted = || {
            Box::new((0..100).map(|n| Ok(MADE.fetch_add(1, Ordering::SeqCst).min(n))))
                as ItemSource<usize>
        };
        // The budget is that of the process, so any one of these spends it.
        let mut stream = ordered_prefetch(
            (0..4).map(move |_| counted()),
            4,
            50,
            &CancellationToken::default(),
        )
        .with_byte_budget(|_| 1 << 58);
        stream.next().unwrap().unwrap();
        while stream.running.iter().any(|lane| lane.queue.is_empty()) {
            std::thread::yield_now();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(
            MADE.load(Ordering::SeqCst) <= 1 + 4,
            "one was taken, four wait"
        );
        assert_eq!(stream.count(), 399);
    }

    #[test]
    fn a_panic_is_an_error_and_ends_the_stream() {
        let bad: ItemSource<u32> = Box::new(std::iter::once_with(|| panic!("boom")));
        let mut stream = ordered_prefetch(
            [numbers(0, 1), bad, numbers(0, 1)].into_iter(),
            1,
            1,
            &CancellationToken::default(),
        );
        assert_eq!(stream.next().unwrap().unwrap(), 0);
        assert!(
            stream
                .next()
                .unwrap()
                .unwrap_err()
                .to_string()
                .contains("boom")
        );
        assert!(stream.next().is_none());
    }

    #[test]
    fn cancelling_ends_in_an_error_not_in_a_short_result() {
        let cancel = CancellationToken::default();
        let mut stream = ordered_prefetch((0..4).map(|_| numbers(0, 10)), 1, 1, &cancel);
        stream.next().unwrap().unwrap();
        cancel.cancel();
        assert!(matches!(
            stream.find(Result::is_err),
            Some(Err(Error::Cancelled))
        ));
    }
}
