//! The size of a task, and what it keeps where.

use super::*;

#[test]
fn a_task_occupies_56_bytes() {
    assert_eq!(size_of::<Option<Task>>(), 56);
}

fn task(priority: Option<i64>, terms: Terms) -> Task {
    Task::new(NewTask {
        number: 7,
        queue: QueueSlot(0),
        epoch: 0,
        id: TaskId::Number(7),
        put_at: Timestamp::from_ms(5),
        terms,
        priority,
        expires_at: None,
        ready_at: None,
        payload: Kept::of((0, 0, false)),
    })
}

#[test]
fn jobs_of_beanstalkd_need_no_allocation() {
    for priority in [0, 1_024, 1 << 31, i64::from(u32::MAX)] {
        let ttr = Some(Span::from_ms(60_000));
        let mut task = task(Some(priority), Terms::of(None, ttr));
        assert!(task.besides.is_none(), "{priority}");
        assert_eq!((task.priority(), task.ttr()), (Some(priority), ttr));
        task.set_attempts(1);
        assert_eq!((task.priority(), task.ttr()), (Some(priority), ttr));
    }
}

#[test]
fn terms_and_priorities_are_as_they_were_set() {
    let mut task = task(None, Terms::NONE);
    let spans = [None, Some(1_000), Some(1), Some(60_500), Some(1 << 40), None];
    for ttr in spans.map(|ms| ms.map(Span::from_ms)) {
        for key in [None, Some(Bytes::from(&b"key"[..]))] {
            let terms = Terms::of(key, ttr);
            task.set_terms(terms.clone());
            assert_eq!((task.terms(), task.put_at().ms()), (terms, 5));
        }
    }
    let (above, below) = (1 << 31, -1 - (1 << 31));
    for priority in [above, -1, below, 0, i64::MAX, above - 1, 2 * above, below + 1] {
        task.set_priority(Some(priority));
        assert_eq!(task.priority(), Some(priority));
    }
    task.set_priority(None);
    assert_eq!(task.priority(), None);
}

/// The allocator has no size between 128 and 160 bytes.
#[test]
fn other_fields_occupy_at_most_160_bytes() {
    assert!(size_of::<Besides>() <= 160, "{}", size_of::<Besides>());
}
