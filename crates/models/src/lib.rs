//! Models of the core's synchronization: its own source, with loom's locks and atomics in place of
//! the standard library's, run in every order in which its threads can run.

#[cfg(test)]
#[path = "../../../src/exec/buffer_pool.rs"]
mod buffer_pool;
#[cfg(test)]
#[path = "../../../src/exec/parking_queue.rs"]
mod parking_queue;
#[cfg(test)]
mod process;

#[cfg(test)]
mod tests {
    use std::ptr;
    use std::time::Instant;

    use arrow_buffer::MutableBuffer;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
    use loom::thread;

    use crate::buffer_pool::BufferPool;
    use crate::parking_queue::ParkingQueue;
    use crate::process::slot::value_or_make;

    type Source = std::ops::Range<u32>;

    /// Runs a source as a worker of the pool does, until it parks or ends.
    fn work(queue: &ParkingQueue<u32, Source>, mut source: Source, capacity: usize) {
        while let Some(item) = source.next() {
            match queue.push(item, source, |length| length >= capacity) {
                Some(resumed) => source = resumed,
                None => return,
            }
        }
        queue.end(None);
    }

    fn start(
        queue: &Arc<ParkingQueue<u32, Source>>,
        source: Source,
        capacity: usize,
    ) -> thread::JoinHandle<()> {
        let queue = Arc::clone(queue);
        thread::spawn(move || work(&queue, source, capacity))
    }

    #[test]
    fn a_parked_source_is_run_to_its_end() {
        for capacity in [1, 2] {
            loom::model(move || {
                let queue = Arc::new(ParkingQueue::new());
                let mut workers = vec![start(&queue, 0..3, capacity)];
                let mut items = Vec::new();
                while let Some((item, parked)) = queue.recv() {
                    items.push(item);
                    if let Some(source) = parked {
                        // At most one worker runs a source, so the other one has ended.
                        for worker in workers.drain(..) {
                            worker.join().unwrap();
                        }
                        workers.push(start(&queue, source, capacity));
                    }
                }
                assert_eq!(items, [0, 1, 2]);
                assert!(queue.is_empty());
                for worker in workers {
                    worker.join().unwrap();
                }
            });
        }
    }

    #[test]
    fn a_last_item_ends_the_queue() {
        loom::model(|| {
            let queue = Arc::new(ParkingQueue::<u32, Source>::new());
            let worker = {
                let queue = Arc::clone(&queue);
                thread::spawn(move || {
                    assert_eq!(queue.push(1, 0..9, |_| false), Some(0..9));
                    queue.end(Some(2));
                })
            };
            assert_eq!(queue.recv(), Some((1, None)));
            assert_eq!(queue.recv(), Some((2, None)));
            assert_eq!(queue.recv(), None);
            worker.join().unwrap();
        });
    }

    #[test]
    fn a_consumer_that_leaves_does_not_hold_a_worker() {
        loom::model(|| {
            let queue = Arc::new(ParkingQueue::new());
            let worker = start(&queue, 0..2, 1);
            let (first, _) = queue.recv().unwrap();
            assert_eq!(first, 0);
            drop(queue);
            worker.join().unwrap();
        });
    }

    /// Takes a buffer or makes one, marks it as its own, and gives it back.
    fn use_buffer(pool: &BufferPool, mark: u8) {
        const SIZE: usize = 64 << 10;
        let mut buffer = pool
            .take(SIZE)
            .unwrap_or_else(|| MutableBuffer::from_len_zeroed(SIZE));
        buffer.as_slice_mut().fill(mark);
        thread::yield_now();
        assert!(buffer.as_slice().iter().all(|byte| *byte == mark));
        drop(pool.put(buffer, Instant::now()));
    }

    #[test]
    fn a_pooled_buffer_has_one_user() {
        loom::model(|| {
            let pool = Arc::new(BufferPool::default());
            let threads: Vec<_> = [1, 2]
                .map(|mark| {
                    let pool = Arc::clone(&pool);
                    thread::spawn(move || use_buffer(&pool, mark))
                })
                .into();
            use_buffer(&pool, 3);
            for thread in threads {
                thread.join().unwrap();
            }
            let (buffers, bytes) = pool.held();
            assert!((1..=3).contains(&buffers));
            assert_eq!(bytes, buffers * (64 << 10));
        });
    }

    #[test]
    fn threads_that_fill_a_slot_get_one_value() {
        loom::model(|| {
            // Freed with the model, as the slot of a static never is.
            let slot = Arc::new(AtomicPtr::<usize>::new(ptr::null_mut()));
            let made = Arc::new(AtomicUsize::new(0));
            let value = |slot: &AtomicPtr<usize>, made: &AtomicUsize| {
                let make = || Ok::<_, ()>(made.fetch_add(1, Ordering::Relaxed));
                // SAFETY: the slot was null and is freed after all threads have ended.
                *unsafe { value_or_make(slot, |_| true, make) }.unwrap()
            };
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let (slot, made) = (Arc::clone(&slot), Arc::clone(&made));
                    thread::spawn(move || value(&slot, &made))
                })
                .collect();
            let own = value(&slot, &made);
            for thread in threads {
                assert_eq!(thread.join().unwrap(), own);
            }
            let pointer = slot.load(Ordering::Acquire);
            // SAFETY: from `Box::into_raw`, and no thread uses it any more.
            drop(unsafe { Box::from_raw(pointer) });
        });
    }

    #[test]
    fn a_value_of_another_process_is_replaced_once() {
        loom::model(|| {
            let foreign = Box::into_raw(Box::new(0));
            let slot = Arc::new(AtomicPtr::new(foreign));
            let value = |slot: &AtomicPtr<usize>, number: usize| {
                // SAFETY: both pointers are freed after all threads have ended.
                *unsafe { value_or_make(slot, |known| *known != 0, || Ok::<_, ()>(number)) }
                    .unwrap()
            };
            let other = {
                let slot = Arc::clone(&slot);
                thread::spawn(move || value(&slot, 1))
            };
            let own = value(&slot, 2);
            assert_eq!(other.join().unwrap(), own);
            let pointer = slot.load(Ordering::Acquire);
            for pointer in [pointer, foreign] {
                // SAFETY: from `Box::into_raw`, and no thread uses it any more.
                drop(unsafe { Box::from_raw(pointer) });
            }
        });
    }
}
