//! What users may use up.

use super::{sign_in, with_people};
use crate::people::Person;

#[test]
fn a_user_has_so_many_connections() {
    let ana = || Person::new("ana", "put:*").within(&[("max_connections", 2)]);
    let people = [ana(), Person::new("ben", "put:*")];
    with_people(&people, async |world, _, [one, two, three, ben]| {
        sign_in(one, "ana").await;
        sign_in(two, "ana").await;
        assert_eq!(three.told("AUTH ana password").await, "BUSY");
        assert_eq!(three.told("HELLO 3 AUTH ana password").await, "BUSY");
        assert_eq!(three.told("PUT q x").await, "NOAUTH");
        sign_in(ben, "ben").await;
        // Who signs in again has no further connection.
        sign_in(one, "ana").await;
        // Who becomes somebody else, or nobody, makes room.
        sign_in(two, "ben").await;
        sign_in(three, "ana").await;
        assert_eq!(two.told("AUTH ana password").await, "BUSY");
        three.ask("RESET").await;
        sign_in(two, "ana").await;
        assert_eq!(three.told("AUTH ana password").await, "BUSY");
        // So does who goes.
        let mut four = world.connect().await;
        two.half_close().await;
        assert_eq!(two.rest().await, b"");
        while four.told("AUTH ana password").await != "OK" {}
        assert_eq!(four.told("PUT q x").await, "1");
    });
}

#[test]
fn a_user_makes_so_many_requests_a_second() {
    let ana = Person::new("ana", "put:* look:*").within(&[("max_requests_per_second", 3)]);
    with_people(&[ana, Person::new("ben", "put:*")], async |world, people, [ana, again, ben]| {
        sign_in(ana, "ana").await;
        sign_in(again, "ana").await;
        sign_in(ben, "ben").await;
        for _ in 0..2 {
            assert_ne!(ana.told("PUT q x").await, "BUSY");
        }
        assert_ne!(again.told("PEEK q").await, "BUSY");
        for client in [&mut *ana, &mut *again] {
            assert_eq!(client.told("PUT q x").await, "BUSY");
        }
        for _ in 0..10 {
            assert_ne!(ben.told("PUT q x").await, "BUSY");
        }
        world.advance(333);
        assert_eq!(ana.told("PUT q x").await, "BUSY");
        world.advance(1);
        assert_ne!(ana.told("PUT q x").await, "BUSY");
        assert_eq!(again.told("PUT q x").await, "BUSY");
        // What was not used is not saved up.
        world.advance(60_000);
        for _ in 0..3 {
            assert_ne!(ana.told("PUT q x").await, "BUSY");
        }
        assert_eq!(ana.told("PUT q x").await, "BUSY");
        // A limit that is taken away is gone with the next request.
        people.write(&[Person::new("ana", "put:*"), Person::new("ben", "put:*")]);
        while ana.told("PUT q x").await == "BUSY" {
            world.advance(1_000);
        }
        for _ in 0..10 {
            assert_ne!(ana.told("PUT q x").await, "BUSY");
        }
    });
}

#[test]
fn a_transaction_is_one_request() {
    let ana = Person::new("ana", "put:*").within(&[("max_requests_per_second", 1)]);
    with_people(&[ana], async |_, _, [ana]| {
        sign_in(ana, "ana").await;
        assert_eq!(ana.told("MULTI").await, "OK");
        for _ in 0..3 {
            assert_eq!(ana.told("PUT q x").await, "QUEUED");
        }
        assert_ne!(ana.told("EXEC").await, "BUSY");
        assert_eq!(ana.told("PUT q x").await, "BUSY");
    });
}
