//! A directory with many packets: it starts and has them. How fast is printed, not judged.

use crate::serving::Serving;
use crate::sizes::size;
use crate::wire::push;

const QUEUES: u32 = 10;

#[test]
#[expect(clippy::disallowed_methods, reason = "the time is printed for people")]
fn many_packets_are_there_after_a_kill_and_after_a_stop() {
    let all = size("PINPRIQ_TEST_PUSHES", 100_000);
    let flags = ["--pinpriq-ttl-zero", "forever"];
    let data = tempfile::tempdir().unwrap();
    let server = Serving::start(data.path(), &flags);
    let mut wire = server.connect();
    for block in 0..all.div_ceil(1_000) {
        let numbers = block * 1_000..all.min((block + 1) * 1_000);
        let pushes: Vec<u8> = numbers
            .flat_map(|number| {
                let queue = format!("queue {}", number % QUEUES);
                push(queue.as_bytes(), 0, 1, &number.to_be_bytes(), &[7; 100])
            })
            .collect();
        wire.fenced(&pushes);
    }
    server.kill();
    for after in ["a kill", "a stop"] {
        let begun = std::time::Instant::now();
        let server = Serving::start(data.path(), &flags);
        println!("{all} packets after {after}: {} ms to start", begun.elapsed().as_millis());
        let opened = server.logged("\"opened\"");
        assert!(opened.contains(&format!("\"tasks\":{all},")), "{opened}");
        server.stop();
    }
    let server = Serving::start(data.path(), &flags);
    let mut wire = server.connect();
    for number in (0..all).rev().take(1_000) {
        let queue = format!("queue {}", number % QUEUES);
        let packet = (number.to_be_bytes().to_vec(), vec![7; 100]);
        assert_eq!(wire.pop(queue.as_bytes()), [packet]);
    }
    server.stop();
}
