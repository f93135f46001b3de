//! Puts that are held back until a moment: it is the same one however they come.

use super::client::{Client, elements, show, with_clients};
use crate::world::{START_MS, in_memory};

/// Returns when this task is ready.
async fn ready_at(client: &mut Client, id: &str) -> u64 {
    let shown = client.reply(&format!("GET q {id}")).await;
    let (_, rest) = shown.split_once("ready_at=").unwrap();
    rest.split([',', ' ', '}', ']']).next().unwrap().parse().unwrap()
}

#[test]
fn a_moment_does_not_depend_on_when_a_transaction_is_carried_out() {
    with_clients(in_memory(), async |world, [client]| {
        client.ask("HELLO 3").await;
        let put = format!("PUT q p AT {}", START_MS + 60_000);
        client.ask("MULTI").await;
        client.ask(&put).await;
        world.advance(20_000);
        let ids = client.ask("EXEC").await;
        let first = show(&elements(&ids)[0]);
        let second = client.reply(&put).await;
        let moments = [ready_at(client, &first).await, ready_at(client, &second).await];
        assert_eq!(moments, [START_MS + 60_000; 2]);
    });
}

#[test]
fn equal_moments_stay_equal_while_time_is_drawn_towards_the_wall_clock() {
    with_clients(in_memory(), async |world, [client]| {
        client.ask("HELLO 3").await;
        let at = START_MS + 90_000_000;
        for (ahead, moved) in [(0, 0), (7_200_000, 7_200_000), (-7_199_700, -7_200_000)] {
            let mut moments = Vec::new();
            for drawn in 0..3 {
                world.set_ahead_of_wall(ahead - drawn * 100);
                let id = client.reply(&format!("PUT q p AT {at}")).await;
                moments.push(ready_at(client, &id).await);
            }
            assert_eq!(moments, [at.saturating_add_signed(moved); 3], "{ahead} ms ahead");
        }
    });
}
