//! Members that do not read, or are gone: they hold up no others.

use pinpriq_proto::wire::resp::put_command;

use super::client::{Client, World, elements, number, receipt, show, with_clients};
use crate::world::{START_MS, in_memory, test};

/// A payload of which few fit between a server and a client that does not read.
const LARGE_BYTES: usize = 60_000;

/// How many of them are published.
const LARGE: usize = 200;

/// A server, a member `quick` and one `slow` in the topic `t`, and the connection of the first.
async fn quick_and_slow(lease_ms: u64) -> (World, Client) {
    let mut config = in_memory();
    config.limits.in_flight_max = 16;
    let world = World::start(config).await;
    let mut quick = world.connect().await;
    quick.ask("JOIN t quick LEASE 100000").await;
    quick.ask(&format!("JOIN t slow LEASE {lease_ms}")).await;
    (world, quick)
}

/// Publishes large payloads, and has the quick one take and acknowledge each at once.
async fn publish_large(quick: &mut Client, lanes: &str) {
    let payload = vec![b'p'; LARGE_BYTES];
    for _ in 0..LARGE {
        let published = quick.ask_words(&[b"PUBLISH", b"t", &payload]).await;
        assert_eq!(show(&published), lanes);
        let taken = quick.ask("TAKE t TTR 1000 MEMBER quick").await;
        assert_eq!(elements(&elements(&taken)[0])[3].as_bytes(), Some(&payload[..]));
        assert_eq!(quick.reply(&format!("ACK t {}", receipt(&taken))).await, "OK");
    }
}

#[test]
fn a_subscribed_member_that_does_not_read_delays_no_other() {
    test(async || {
        let (world, mut quick) = quick_and_slow(1_000).await;
        let mut slow = Client::connect_narrow(world.address).await;
        slow.ask("SUBSCRIBE t TTR 100000 MEMBER slow").await;
        slow.ask("CREDIT 1000000").await;
        publish_large(&mut quick, "2").await;
        let stats = quick.ask("STATS t MEMBER slow").await;
        let counts = super::client::field(&stats, "counts");
        let (ready, taken) = (number(counts, "R"), number(counts, "T"));
        assert_eq!(ready + taken, i64::try_from(LARGE).unwrap());
        assert!(ready > 50, "only {ready} are left in the lane");
        // Deliveries are no sign of life, so all this ends with the lease.
        world.advance(1_000);
        assert_eq!(number(&quick.ask("STATS").await, "present"), 0);
        assert_eq!(quick.reply("LEAVE slow").await, "0");
        publish_large(&mut quick, "1").await;
    });
}

#[test]
fn a_member_that_takes_and_never_reads_delays_no_other() {
    test(async || {
        let (world, mut quick) = quick_and_slow(1_000).await;
        publish_large(&mut quick, "2").await;
        let mut slow = Client::connect_narrow(world.address).await;
        let mut bytes = Vec::new();
        for _ in 0..LARGE {
            put_command(&mut bytes, &[b"TAKE", b"t", b"TTR", b"100000", b"MEMBER", b"slow"]);
        }
        slow.send_bytes(&bytes).await;
        let mut taken = 0;
        while taken == 0 {
            let stats = quick.ask("STATS t MEMBER slow").await;
            taken = number(super::client::field(&stats, "counts"), "T");
        }
        publish_large(&mut quick, "2").await;
        // The takes that were carried out were signs of life, and there are no others.
        world.advance(1_000);
        assert_eq!(quick.reply("PUBLISH t p").await, "1");
        assert_eq!(number(&quick.ask("STATS").await, "present"), 1);
        // What was promised before is still told, and behind it that the member has ended.
        let mut told = (0, 0);
        for _ in 0..LARGE {
            let answer = show(&slow.value().await);
            if answer == "NOTFOUND" {
                told.1 += 1;
            } else {
                assert_eq!((told.1, answer.starts_with("[[t ")), (0, true));
                told.0 += 1;
            }
        }
        assert!(told.0 >= taken && told.1 > 0, "{told:?} of which {taken} were seen");
    });
}

#[test]
fn a_reply_that_could_not_be_sent_is_no_sign_of_life() {
    let mut config = in_memory();
    config.limits.payload_bytes_max = 16 << 20;
    with_clients(config, async |world, [control]| {
        let payload = vec![b'p'; 16 << 20];
        for request in ["POP t MEMBER m", "TAKE t TTR 100000 MEMBER m"] {
            control.ask("JOIN t m LEASE 1000").await;
            control.ask_words(&[b"PUBLISH", b"t", &payload]).await;
            // More than the sockets hold, and it is never read.
            let mut client = world.connect().await;
            let name = client.name();
            client.say(request).await;
            while show(&control.ask("PEEK t MEMBER m").await) != "[]" {}
            world.advance(999);
            drop(client);
            control.see_gone(&name).await;
            assert_eq!(elements(&control.ask("PEEK t MEMBER m").await).len(), 1, "{request}");
            world.advance(1);
            assert_eq!(control.reply("MEMBERS t").await, "[]", "{request}");
        }
    });
}

#[test]
fn a_deadline_is_meant_by_the_wall_clock() {
    with_clients(in_memory(), async |world, [client]| {
        client.ask("JOIN t m LEASE 100000000").await;
        let start = i64::try_from(START_MS).unwrap();
        let mut passed = 0;
        for ahead in [0, 7_200_000, -7_200_000] {
            world.set_ahead_of_wall(ahead);
            let wall = start + passed - ahead;
            let past = format!("PUBLISH t late DEADLINE {wall}");
            assert_eq!(show(&client.ask(&past).await), "0", "{ahead} ms ahead");
            let publish = format!("PUBLISH t work DEADLINE {}", wall + 10_000);
            assert_eq!(show(&client.ask(&publish).await), "1", "{ahead} ms ahead");
            world.advance(9_999);
            assert_eq!(number(&client.ask("STATS t MEMBER m").await, "present"), 1, "{ahead}");
            world.advance(1);
            assert_eq!(number(&client.ask("STATS t MEMBER m").await, "present"), 0, "{ahead}");
            passed += 10_000;
        }
        // The moments of the far past and future stay what they are.
        for (moment, lanes) in [("0", "0"), ("253402300799999", "1")] {
            let publish = format!("PUBLISH t work DEADLINE {moment}");
            assert_eq!(show(&client.ask(&publish).await), lanes, "{moment}");
        }
    });
}
